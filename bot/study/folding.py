"""How far a model's executables can be folded: what of it compiles, is smaller, gives the same and is worth it.

A cell's program is taken at the end of the flow phase. Groups of its executables are made one, compiled and measured;
what is exact is only the artifact of the groups that are kept in the end, and the sizes of dispatches decide what to
try. Then programs are run where this machine can, and timed: groups that fail that are not folded.
"""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.bindings import Bindings, Importer, working
from bot.compiler.cell_cache import CellCache, cell_key
from bot.compiler.compiler import Session
from bot.compiler.compiling import Kit, Source, artifact_of, compile_directly
from bot.compiler.diagnostics import reason
from bot.compiler.iree import open_kit
from bot.compiler.ptxas import Assembler
from bot.compiler.ptxas import installed as assembler_here
from bot.compiler.schedule import Task, run_all
from bot.core import fold
from bot.core.fold import FAILED, FOLD_KINDS, FoldAudit, FoldCell, FoldModel, LeftFamily, Price, Run
from bot.core.planned import LIFTED_LIMIT_FLAG, Model, PlannedCell
from bot.core.snapshot import Cell, CellKey, Failure
from bot.errors import MalformedBinary
from bot.readers.assemble import UNSPEAKABLE
from bot.running.runner import MISSING, Equality, Runner, Runtime, installed, machine, within
from bot.study.cell import cell_of
from bot.study.prepare import Work
from bot.study.rewriting import (
    RESUME,
    FoldedGroup,
    Group,
    Groups,
    LeftGroup,
    flow_of,
    groups_of,
    interface_of,
    rewritten,
)
from bot.system.files import is_writable, make_directory, temporary_directory
from bot.system.processes import Meter

NOTHING: tuple[Group, ...] = ()
FOLDER = "folded"  # Of the folded programs, beside `fold.json`
NOT_ASKED = "nothing was to be run"
NOTHING_FOLDED = "nothing is folded"
"""The reason why outputs are not compared, nor anything timed, where the artifact stays what it was."""
NOT_FOLDED = {
    "operand-order": "executables that take their operands in another order are not folded",
    "extra-operation": "executables that do something more are not folded",
    "different-fusion": "executables of other operations are not folded",
}
_MOST_HALVES = 4  # A group that fails is halved; what fails of fewer executables is left


class FoldTools(NamedTuple):
    """What an audit works with, for all cells of a side."""

    kit: Kit
    folding: Bindings
    importer: Importer
    cache: CellCache
    assembler: Assembler
    scratch: Path


@dataclass(frozen=True, slots=True)
class Attempt:
    """The program with these groups made one."""

    groups: tuple[Group, ...]
    cell: Cell  # as it was measured; a failed one where the program could not be rewritten
    program: Path  # where its text is, while it is needed
    planned: PlannedCell  # the cell that compiles it
    folded: tuple[FoldedGroup, ...] = ()
    left: tuple[LeftGroup, ...] = ()

    @property
    def artifact_bytes(self) -> int | None:
        """Of its artifact; None without one."""
        return self.cell.value("artifact_bytes") if self.cell.measured else None


@dataclass
class Attempts:
    """Attempts at one cell: its program rewritten, compiled and measured, each set of groups once."""

    tools: FoldTools
    planned: PlannedCell
    source: Path  # its model's file
    flow: Path  # its program at the end of the flow phase
    groups: Groups  # what of that could be one
    _known: dict[tuple[Group, ...], Attempt] = field(default_factory=dict)

    def at(self, groups: Sequence[Group]) -> Attempt:
        """The attempt with these groups, in any order."""
        key = tuple(sorted(groups))
        if key not in self._known:
            self._known[key] = self._attempt(key)
        return self._known[key]

    def _attempt(self, groups: tuple[Group, ...]) -> Attempt:
        tools, program = self.tools, self.flow.with_name(f"{self.flow.stem}.{len(self._known)}.mlir")
        try:
            result = rewritten(tools.folding, self.flow, groups, program)
        except MalformedBinary as error:
            planned = self._resumed(self.flow)
            return Attempt(groups, Cell(planned.key, "failed", failure=Failure("read", str(error))), self.flow, planned)
        planned = self._resumed(program)
        key = cell_key(tools.kit.toolchain.info.digest, planned)
        if (cell := tools.cache.load(key)) is None:
            compiled = compile_directly(tools.kit, planned.argv, Source(planned.model.name, program))
            cell = cell_of(planned, compiled, None, tools.assembler)
            tools.cache.store(key, cell)
        if cell.status == "over-stack-limit":  # where the model itself is within the limit, this is none that compiles
            cell = Cell(cell.key, "failed", failure=cell.failure)
        program.unlink()  # there are many of them, and few are needed again
        return Attempt(groups, cell, program, planned, result.folded, result.left)

    def _resumed(self, program: Path) -> PlannedCell:
        data, model = program.read_bytes(), self.planned.model
        shown = f"{model.name}.{self.planned.target.name}.mlir"
        resumed = Model(model.name, str(program), shown, hashlib.sha256(data).hexdigest(), len(data))
        return structs.replace(self.planned, model=resumed, user_flags=(*self.planned.user_flags, RESUME))

    def program(self, attempt: Attempt) -> Path:
        """The text of an attempt; raises MalformedBinary where it cannot be had again."""
        if not attempt.program.is_file():
            rewritten(self.tools.folding, self.flow, attempt.groups, attempt.program)
        return attempt.program

    def artifact(self, planned: PlannedCell, text: Path, out: Path) -> Path | str:
        """The artifact of a text, written to `out`, or why there is none."""
        failed = artifact_of(self.tools.kit, planned.argv, Source(planned.model.name, text), out)
        return failed.first_line if failed else out


# Which groups of a program are worth folding: what compiles, and of that what makes the artifact smaller.

Try = Callable[[Sequence[Group]], Attempt]


class Searched(NamedTuple):
    """What is left of a search."""

    attempt: Attempt  # with the groups that are kept; one with none where nothing is
    left: tuple[LeftFamily, ...]  # groups that are not, and why


def search(groups: Groups, attempt: Try, banned: Collection[Group] = ()) -> Searched:
    """The groups that make the artifact smaller, of those that compile; `attempt` compiles and measures."""
    tried, whys = [attempt(NOTHING)], dict[Group, str]()
    levels = [permitted(groups.groups[level], banned) for level in FOLD_KINDS]
    for each in levels:
        if each and not any(sorted(each) == sorted(one.groups) for one in tried):
            working, failed = compiling(each, attempt)
            whys = {**failed, **whys}
            tried.append(working)
    best, without = gaining(choices(groups, tried), attempt, groups.elements)
    folded = {name for group in best.groups for name in group}
    whys = {group: why for group, why in {**without, **whys}.items() if not folded.issuperset(group)}
    spoken = folded.union(*whys)
    for group in chain.from_iterable(levels):
        if spoken.isdisjoint(group):
            whys[group] = "another way to fold what it is a part of saves more"
    return Searched(best, tuple(left(groups, group, why) for group, why in whys.items()))


def kind_of(groups: Groups, group: Group) -> str | None:
    """The strictest level at which these executables, which may be a part of a group, are one; None where at none."""
    for level in FOLD_KINDS:
        if any(set(group) <= set(whole) for whole in groups.groups[level]):
            return level
    return None


def left(groups: Groups, group: Group, why: str) -> LeftFamily:
    """That a group is not folded."""
    return LeftFamily(kind_of(groups, group) or FOLD_KINDS[-1], group, why)


def permitted(groups: Sequence[Group], banned: Collection[Group]) -> list[Group]:
    """The groups without the executables of banned ones that they hold, as far as two and more are left."""
    result = []
    for group in groups:
        bad = {name for one in banned if set(one) <= set(group) for name in one}
        rest = tuple(name for name in group if name not in bad)
        if len(rest) > 1:
            result.append(rest)
    return result


def compiling(groups: Sequence[Group], attempt: Try) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with as many of the groups as compile together, and why the others do not."""
    tried = attempt(groups)
    if tried.cell.measured:
        refused = {one.members: one.why for one in tried.left}
        return (attempt([group for group in groups if group not in refused]) if refused else tried), refused
    why = reason_of(tried)
    if len(groups) == 1:
        # the two halves of a group that fails; none of it where they are too small, or fail as well
        group = groups[0]
        if len(group) < _MOST_HALVES:
            return attempt(NOTHING), {group: why}
        halves = [group[: len(group) // 2], group[len(group) // 2 :]]
        working, failed = compiling(halves, attempt) if attempt(halves[:1]).cell.measured else (attempt(NOTHING), {})
        return working, failed or ({} if working.groups else {group: why})
    middle = len(groups) // 2
    parts = [compiling(part, attempt) for part in (groups[:middle], groups[middle:])]
    failed = {group: reason for _, reasons in parts for group, reason in reasons.items()}
    whole = attempt([group for part, _ in parts for group in part.groups])
    if whole.cell.measured:
        return whole, failed
    # Where they compile apart only, those of the first are left.
    lost = {group: f"beside the other groups: {reason_of(whole)}" for group in parts[1][0].groups}
    return parts[0][0], {**failed, **lost}


def reason_of(failed: Attempt) -> str:
    """Why it does not compile, without the place: cells of one reason are told together."""
    failure = failed.cell.failure
    return reason(failure.message) if failure else failed.cell.status


class Choice(NamedTuple):
    """Executables that could be one, and the ways to fold them, that with the smallest code first."""

    members: Group
    apart_bytes: int | None  # of their code as they are; None where it is not known
    left_share: float | None  # of that, with the first way
    ways: tuple[tuple[Group, ...], ...]


def choices(groups: Groups, tried: Sequence[Attempt]) -> list[Choice]:
    """Groups that compile, those that share an executable together, with what the attempts say of them.

    `tried`: the first with nothing folded.
    """
    # entry point, as any target spells it → bytes of its executable where it has one of its own, else of its code
    sizes = [
        {
            UNSPEAKABLE.sub("_", row.name): row.code_bytes if row.executable_bytes is None else row.executable_bytes
            for row in one.cell.dispatches
        }
        for one in tried
    ]
    joined: list[set[str]] = []  # levels are one inside of the other, halves are not
    for group in (group for one in tried for group in one.groups):
        touching = [names for names in joined if not names.isdisjoint(group)]
        joined = [names for names in joined if names not in touching] + [set(group).union(*touching)]
    result = []
    for names in joined:
        members = tuple(name for name in groups.entries if name in names)
        entries = [UNSPEAKABLE.sub("_", groups.entries[name]) for name in members]
        ways = dict[tuple[Group, ...], int | None]()
        for size, one in zip(sizes, tried, strict=True):
            # of those entry points that are left; None where one is not known, or none is found
            there = [size[name] for name in entries if name in size]
            known = [each for each in there if each is not None]
            inside = tuple(group for group in one.groups if set(group) <= set(members))
            ways.setdefault(inside, sum(known) if there and len(known) == len(there) else None)
        apart = ways.pop(())
        ordered = sorted(ways, key=lambda way: (ways[way] is None, ways[way] or 0))
        least = ways[ordered[0]]
        share = None if least is None or not apart else least / apart
        result.append(Choice(members, apart, share, tuple(ordered)))
    return result


def gaining(choices: Sequence[Choice], attempt: Try, elements: Mapping[str, int]) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with the ways that make the artifact smaller, and what the others give.

    What clearly does, as less than half of its code is left, is taken at once, if all of it does; each of the others is
    compiled beside what is kept by then, and where it does not gain as a whole, its small and its large executables
    apart.

    `elements`: executable → how many its largest tensor has.
    """
    clear = [one for one in choices if one.left_share is not None and one.left_share < 0.5]
    best, without = attempt([group for one in clear for group in one.ways[0]]), {}
    doubtful = [one for one in choices if one not in clear]
    if not is_smaller(best, plain := attempt(NOTHING)):
        best, doubtful = plain, list(choices)
    for one in sorted(doubtful, key=lambda one: (one.apart_bytes is None, -(one.apart_bytes or 0), one.members)):
        before, why = best, "folding it saves no code"
        if one.left_share is None or one.left_share < 1:
            tried = [attempt([*best.groups, *groups]) for groups in one.ways]
            sizes = [size for with_it in tried if (size := with_it.artifact_bytes) is not None]
            why = "the artifact gets no smaller with it" if sizes else "it does not compile beside the others"
            best = next((each for each in tried if is_smaller(each, best) and each.artifact_bytes == min(sizes)), best)
        if best is before:
            for half in halves(one.members, elements):
                with_it = attempt([*best.groups, half])
                best = with_it if is_smaller(with_it, best) else best
        if best is before:
            without[one.members] = why
    return best, without


def is_smaller(one: Attempt, other: Attempt) -> bool:
    """Whether its artifact is; not where one of both has none."""
    sizes = one.artifact_bytes, other.artifact_bytes
    return sizes[0] is not None and sizes[1] is not None and sizes[0] < sizes[1]


def halves(group: Group, elements: Mapping[str, int]) -> list[Group]:
    """A group's small and its large executables, in the program's order; none for a group of few."""
    if len(group) < _MOST_HALVES:
        return []
    by_size = sorted(group, key=lambda name: (elements.get(name, 0), group.index(name)))
    small = set(by_size[: len(group) // 2])
    return [tuple(name for name in group if (name in small) is is_small) for is_small in (True, False)]


# One cell's audit: what is worth folding of it, and whether folded programs still give what they gave, and how fast.


@dataclass(slots=True)
class Audited:
    """One cell's audit."""

    cell: Cell  # as its printed command gives it
    planned: PlannedCell
    failure: str = ""
    attempts: Attempts | None = None  # None where its program could not be had, with the reason in `failure`
    best: Attempt | None = None  # with what is worth folding; None where there is a failure
    left: tuple[LeftFamily, ...] = ()
    bench: Bench | str = ""  # what runs it here, or why nothing does
    run: Run = field(default_factory=Run)

    @property
    def groups(self) -> tuple[Group, ...]:
        """What is folded."""
        return self.best.groups if self.best else ()


def audit(tools: FoldTools, planned: PlannedCell, cell: Cell) -> Audited:
    """Fold what is worth it of one cell."""
    if cell.status == "over-stack-limit":
        planned = structs.replace(planned, user_flags=(*planned.user_flags, LIFTED_LIMIT_FLAG))
    if not cell.measured:
        return Audited(cell, planned, reason(cell.failure.message) if cell.failure else cell.status)
    source = tools.importer.source(planned.model)
    if isinstance(source, Failure):
        return Audited(cell, planned, source.first_line)
    flow = tools.scratch / f"{planned.model.name}.{planned.target.name}.mlir"
    failed = flow_of(tools.kit, planned.argv, Source(planned.model.name, source), flow)
    if failed is not None:
        return Audited(cell, planned, reason(failed.message))
    try:
        attempts = Attempts(tools, planned, source, flow, groups_of(tools.folding, flow))
    except MalformedBinary as error:
        return Audited(cell, planned, str(error))
    one = Audited(cell, planned, attempts=attempts)
    fold_best(one, attempts, ())
    return one


def fold_best(one: Audited, attempts: Attempts, banned: Collection[Group]) -> None:
    """What is worth folding of a cell without some groups."""
    groups = attempts.groups
    result = search(groups, attempts.at, banned)
    if not result.attempt.cell.measured:
        one.best, one.failure = None, f"resumed with nothing folded: {reason_of(result.attempt)}"
        return
    grouped = {name for level in groups.groups.values() for group in level for name in group}
    families = [
        LeftFamily(family.kind, family.members, _why(family.kind, family.members, groups))
        for family in one.cell.families
        if grouped.isdisjoint(family.members)
    ]
    one.best, one.left = result.attempt, (*result.left, *families)


def _why(kind: str, members: tuple[str, ...], groups: Groups) -> str:
    unfit = next((name for name in members if name in groups.unfit), None)
    if unfit is not None:
        return groups.unfit[unfit]
    if not all(name in groups.entries for name in members):
        return "its executables have other names in the program that is folded"
    more = "they differ in more than constants, offsets and static dimensions, such as an attribute"
    return NOT_FOLDED.get(kind, more)


class Bench(NamedTuple):
    """What runs the artifacts of one cell; `before` is that of its printed command."""

    attempts: Attempts
    runner: Runner
    before: Path

    def artifact(self, attempt: Attempt) -> Path | str:
        """The artifact of an attempt, or why there is none."""
        out = attempt.program.with_suffix(".vmfb")
        return out if out.is_file() else self.attempts.artifact(attempt.planned, self.attempts.program(attempt), out)

    def equal(self, attempt: Attempt) -> Equality:
        """Whether an attempt gives the outputs of the printed command's artifact."""
        after = self.artifact(attempt)
        return Equality(None, after) if isinstance(after, str) else self.runner.outputs_equal(self.before, after)

    def price(self, attempt: Attempt) -> Price | str:
        """What an attempt costs in run time."""
        after = self.artifact(attempt)
        return after if isinstance(after, str) else self.runner.price(self.before, after)


def affordable(
    best: Attempt, attempt: Try, price: Callable[[Attempt], Price | str], max_slowdown: float
) -> tuple[Attempt, dict[Group, str], Price | str]:
    """The groups that are worth their price together, why the others are not, and that price.

    What is dearest alone is dropped first. Where no price is known of all of them, all are kept.
    """
    whole, alone, whys = price(best), dict[Group, Price | str](), dict[Group, str]()
    if isinstance(whole, str):
        return best, {}, whole
    while isinstance(whole, str) or not within(whole, max_slowdown):
        alone = alone or {group: price(attempt([group])) for group in best.groups}
        ratios = {group: one.ratio if isinstance(one := alone[group], Price) else math.inf for group in best.groups}
        dearest = max(best.groups, key=lambda group: (ratios[group], group))
        whys[dearest] = _dear(alone[dearest], max_slowdown)
        best = attempt([group for group in best.groups if group != dearest])
        if not best.groups:
            return best, whys, "nothing is left that is worth its price"
        whole = price(best)
    return best, whys, whole


def _dear(alone: Price | str, max_slowdown: float) -> str:
    if isinstance(alone, str):
        return f"its price is not known: {alone}"
    is_within = within(alone, max_slowdown)
    if is_within:
        return "alone it is worth its price, beside the other groups it is not"
    return f"{'it may be' if is_within is None else 'it is'} slower by more than {max_slowdown:.1%}"


# All cells of a side: each is folded, run where this machine can, timed, and told as `fold.json` has it.


def audited(work: Work, max_slowdown: float | None, *, runs: bool) -> FoldAudit:
    """Fold every cell that the request selects; its `specs["head"]` names the compiler.

    `max_slowdown`: the price that is allowed (0.01 is 1 %), None where every fold with gain is kept; `runs`: False
    where nothing is executed, so that outputs and price are not known.
    """
    plan = work.prepare("head", work.request.specs["head"])
    side = work.measured([plan])["head"]
    runtime = installed() if runs else None
    toolchain, timeout, cache = plan.toolchain, work.config.timeout_seconds, work.request.cache
    with (
        temporary_directory("fold-") as scratch,
        closing(working(toolchain, work.cancel)) as folding,
        open_kit(toolchain, Session(scratch, timeout, work.cancel, Meter())) as (kit, importer),
    ):
        cells, assembler = (
            CellCache(cache, is_writable(cache.absolute())),
            Assembler(work.cancel, timeout, assembler_here()),
        )
        tools = FoldTools(kit, folding, importer, cells, assembler, scratch)
        planned = {cell.key: cell for cell in plan.cells}
        audits = _all(tools, [(planned[cell.key], cell) for cell in side.cells], work)
        by_model = [list(of) for _, of in groupby(audits, lambda one: one.cell.key.model)]
        if runtime is None:
            why = MISSING if runs else NOT_ASKED
            for one in audits:
                one.run = Run(None, why, None, why)
        else:  # nothing else runs beside it, as it takes times
            with temporary_directory("fold-data-") as data:
                for mine in by_model:
                    _check(mine, runtime, data, max_slowdown, work)
                    shutil.rmtree(data / mine[0].cell.key.model, ignore_errors=True)
        rows = [fold_cell(one, work.request.out) for one in audits]
        models = [model_of(mine, rows) for mine in by_model]
    ran = any(one.run.equal is not None for one in audits)
    return FoldAudit(
        fold.FOLD_SCHEMA,
        compiler=toolchain.info,
        flags=side.flags,
        machine=machine(runtime) if runtime is not None and ran else "",
        max_slowdown=max_slowdown,
        models=tuple(models),
        cells=tuple(rows),
    )


def _all(tools: FoldTools, cells: Sequence[tuple[PlannedCell, Cell]], work: Work) -> list[Audited]:
    audits: dict[CellKey, Audited] = {}

    def run(planned: PlannedCell, cell: Cell) -> None:
        one = audits[cell.key] = audit(tools, planned, cell)
        news = f"groups that are folded: {len(one.groups)}" if one.best else f"not folded: {one.failure}"
        work.show.say(f"{cell.key}: {news}")

    tasks = [Task(planned.cost, f"fold {cell.key}", partial(run, planned, cell)) for planned, cell in cells]
    with work.show.progress() as progress:
        run_all(tasks, work.request.jobs, work.cancel.set, progress)
    return [audits[key] for key in sorted(audits)]


def _check(audits: Sequence[Audited], runtime: Runtime, data: Path, max_slowdown: float | None, work: Work) -> None:
    """Run what can be run of one model; what gives other outputs on a target is folded on none."""
    banned: dict[Group, str] = {}
    for one in audits:
        one.bench = _bench(one, runtime, data / one.cell.key.model, work)
    while True:
        worse = {}
        for one in audits:
            worse.update(dict.fromkeys(_compared(one, work), f"it gives other outputs on {one.cell.key.target}"))
        if not worse.keys() - banned.keys():
            break
        banned.update(worse)
        for one in audits:
            if one.attempts is not None:
                fold_best(one, one.attempts, banned)
                kinds = {group: kind_of(one.attempts.groups, group) for group in banned}
                rejected = (LeftFamily(kind, group, banned[group]) for group, kind in kinds.items() if kind is not None)
                one.left = (*one.left, *rejected)
    for one in audits:
        bench, best = one.bench, one.best
        if isinstance(bench, str) or best is None or not one.run.equal:
            continue
        work.show.say(f"{one.cell.key}: is timed before and after folding")
        if max_slowdown is None:
            price = bench.price(best)
        else:  # the groups within the limit are kept
            one.best, dear, price = affordable(best, bench.attempts.at, bench.price, max_slowdown)
            one.left += tuple(left(bench.attempts.groups, group, why) for group, why in dear.items())
            if one.best is not best:
                _compared(one, work)
        known = price if isinstance(price, Price) else None
        one.run = structs.replace(one.run, price=known, price_note="" if known else str(price))


def _bench(one: Audited, runtime: Runtime, data: Path, work: Work) -> Bench | str:
    if one.attempts is None or not one.groups:
        return one.failure or NOTHING_FOLDED
    attempts = one.attempts
    signature = interface_of(attempts.tools.folding, attempts.flow)
    if isinstance(signature, str):
        return signature
    runner = Runner(runtime, signature, data, work.cancel)
    if runner.reason is not None:
        return runner.reason
    before = attempts.artifact(one.planned, attempts.source, attempts.flow.with_suffix(".before.vmfb"))
    return before if isinstance(before, str) else Bench(attempts, runner, before)


def _compared(one: Audited, work: Work) -> Mapping[Group, str]:
    """Compare outputs before and after folding; which groups, each folded alone, change them, and how.

    All of them where only together they do.
    """
    bench = one.bench
    if isinstance(bench, str) or one.best is None or not one.groups:
        why = bench if isinstance(bench, str) else NOTHING_FOLDED
        one.run = Run(None, why, None, why)
        return {}
    work.show.say(f"{one.cell.key}: runs before and after folding")
    equality, bad = bench.equal(one.best), dict[Group, str]()
    if equality.equal is False:
        alone = {group: bench.equal(bench.attempts.at([group])) for group in one.groups}
        bad = {group: each.equal_note for group, each in alone.items() if each.equal is False}
        bad = bad or dict.fromkeys(one.groups, "not alone, but together with the others")
    for group, why in bad.items():
        work.show.say(f"{one.cell.key}: {group[0]} and {len(group) - 1} more give other outputs as one: {why}")
    one.run = Run(equality.equal, equality.equal_note, None, "outputs are not known to be equal")
    return bad


def model_of(audits: Sequence[Audited], cells: Sequence[FoldCell]) -> FoldModel:
    """The counts of one model, by the first of its cells whose program could be read."""
    cell = next((each for each in audits if each.attempts is not None), audits[0]).cell
    folded = [one.executables.after for one in cells if one.model == cell.key.model and one.equal is not False]
    return FoldModel(
        model=cell.key.model,
        regions=cell.value("dispatch_regions") if cell.measured else None,
        today=cell.value("executables") if cell.measured else None,
        folded=min((number for number in folded if number is not None), default=None),
    )


def fold_cell(one: Audited, out: Path) -> FoldCell:
    """The audit of one cell as `fold.json` has it; its folded program goes to the output directory."""
    cell, run, command, module = one.cell, one.run, "", ""
    folded = list[fold.FoldedFamily]()
    if cell.status == "unsupported":
        state = "unsupported"
    elif one.best is None or not one.best.cell.measured:
        state = FAILED
    else:
        state = "folded" if one.groups else "nothing-to-fold"
    if one.attempts is not None and one.best is not None and one.groups:
        groups, best = one.attempts.groups, one.best
        for each in best.folded:
            kind = kind_of(groups, each.members) or FOLD_KINDS[-1]
            folded.append(fold.FoldedFamily(kind, each.members, each.operands))
        module = f"{FOLDER}/{cell.key.model}.{cell.key.target}.mlir"
        make_directory(out / FOLDER)
        shutil.copyfile(one.attempts.program(best), out / module)
        shown = structs.replace(best.planned.model, shown=module)
        command = structs.replace(best.planned, model=shown).command()
    return FoldCell(
        model=cell.key.model,
        target=cell.key.target,
        state=state,
        executables=_both(one, "executables"),
        artifact_bytes=_both(one, "artifact_bytes"),
        equal=run.equal,
        folded=tuple(folded),
        left=one.left,
        resumed_bytes=one.attempts.at(()).artifact_bytes if one.attempts is not None else None,
        equal_note=run.equal_note,
        price=run.price,
        price_note=run.price_note,
        command=command,
        module=module,
        note=one.failure,
    )


def _both(one: Audited, metric: str) -> fold.BeforeAfter:
    """A metric before and after; what is not folded stays what it was."""
    before = one.cell.value(metric) if one.cell.measured else None
    if one.best is None or not one.groups:
        return fold.BeforeAfter(before, before if one.best is not None else None)
    return fold.BeforeAfter(before, one.best.cell.value(metric))
