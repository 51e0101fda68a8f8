"""One cell's program with groups of executables made one: rewritten, compiled and measured, each set of groups once."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from msgspec import structs

from bot.compiler.bindings import IR_WORKER, Bindings, Importer, working
from bot.compiler.cell_cache import CellCache, cell_key
from bot.compiler.compiler import Session
from bot.compiler.compiling import Kit, Source, artifact_of, compile_directly, module_of
from bot.compiler.diagnostics import reason
from bot.compiler.iree import open_kit
from bot.compiler.ptxas import Assembler
from bot.compiler.ptxas import installed as assembler_here
from bot.compiler.rewriting import (
    FOLD_WORKER,
    RESUME,
    FoldedGroup,
    Group,
    Groups,
    LeftGroup,
    flow_of,
    groups_of,
    rewritten,
)
from bot.compiler.schedule import Task, run_all
from bot.config.configuration import Config
from bot.core.fold import (
    FAILED,
    FOLD_KINDS,
    FOLD_SCHEMA,
    BeforeAfter,
    Bound,
    FoldAudit,
    FoldCell,
    FoldedFamily,
    FoldModel,
    FoldOptions,
    LeftFamily,
    Price,
    Run,
)
from bot.core.planned import LIFTED_LIMIT_FLAG, Model, PlannedCell
from bot.core.program import FAMILY_KINDS
from bot.core.snapshot import Cell, CellKey, Failure
from bot.core.spec import Sought
from bot.errors import MalformedBinary
from bot.explain.whole_models import fold_counts
from bot.readers.assemble import UNSPEAKABLE
from bot.readers.ir_facts import Interface, interface, probes
from bot.running.comparing import NOTHING as NOTHING_COMPARED
from bot.running.comparing import Equality, within
from bot.running.runner import MISSING, Runner, Runtime, installed, machine
from bot.study.cell import cell_of
from bot.study.prepare import Request, Show, measured, prepare, repository_at
from bot.study.run import SidePlan
from bot.system.files import is_writable, make_directory, temporary_directory
from bot.system.processes import Cancel, Meter

NOTHING: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """The program with these groups made one.

    Attributes:
        cell: as it was measured; a failed one where the program could not be rewritten.
        program: where its text is, while it is needed.
        planned: the cell that compiles it.
    """

    groups: tuple[Group, ...]
    cell: Cell
    program: Path
    planned: PlannedCell
    folded: tuple[FoldedGroup, ...] = ()
    left: tuple[LeftGroup, ...] = ()

    @property
    def artifact_bytes(self) -> int | None:
        """Of its artifact; None without one."""
        return self.cell.value("artifact_bytes") if self.cell.measured else None


@dataclass
class Attempts:
    """Attempts at one cell.

    Attributes:
        planned: the cell whose program it is.
        flow: its program at the end of the flow phase.
    """

    planned: PlannedCell
    flow: Path
    kit: Kit
    folding: Bindings
    cache: CellCache
    assembler: Assembler | None
    _known: dict[tuple[Group, ...], Attempt] = field(default_factory=dict)

    def at(self, groups: Sequence[Group]) -> Attempt:
        """The attempt with these groups, in any order."""
        key = tuple(sorted(groups))
        if key not in self._known:
            self._known[key] = self._made(key)
        return self._known[key]

    def _made(self, groups: tuple[Group, ...]) -> Attempt:
        program = self.flow.with_name(f"{self.flow.stem}.{len(self._known)}.mlir")
        try:
            result = rewritten(self.folding, self.flow, groups, program)
        except MalformedBinary as error:
            planned = self._planned(self.flow)
            return Attempt(groups, Cell(planned.key, "failed", failure=Failure("read", str(error))), self.flow, planned)
        planned = self._planned(program)
        cell = self._measured(planned)
        # One that the stack limit refuses, where the model itself is within it, is none that compiles.
        measured = cell if cell.status != "over-stack-limit" else Cell(cell.key, "failed", failure=cell.failure)
        program.unlink()  # there are many of them, and few are needed again
        return Attempt(groups, measured, program, planned, result.folded, result.left)

    def program(self, attempt: Attempt) -> Path:
        """The text of an attempt; raises MalformedBinary where it cannot be had again."""
        if not attempt.program.is_file():
            rewritten(self.folding, self.flow, attempt.groups, attempt.program)
        return attempt.program

    def _planned(self, program: Path) -> PlannedCell:
        data = program.read_bytes()
        model = self.planned.model
        shown = f"{model.name}.{self.planned.target.name}.mlir"
        resumed = Model(model.name, str(program), shown, hashlib.sha256(data).hexdigest(), len(data))
        return structs.replace(self.planned, model=resumed, user_flags=(*self.planned.user_flags, RESUME))

    def _measured(self, planned: PlannedCell) -> Cell:
        key = cell_key(self.kit.toolchain.info.digest, planned)
        known = self.cache.load(key)
        if known is not None:
            return known
        result = compile_directly(self.kit, planned.argv, Source(planned.model.name, Path(planned.model.path)))
        cell = cell_of(planned, result, None, self.assembler)
        self.cache.store(key, cell)
        return cell


# Which groups of a program are worth folding: what compiles, and of that what makes the artifact smaller.
#
# What is exact is only the artifact of the groups that are kept in the end; the sizes of dispatches decide what to try.


Try = Callable[[Sequence[Group]], Attempt]
_MOST_HALVES = 4
"""A group that fails is halved; what fails of fewer executables is left."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What is left of a search.

    Attributes:
        attempt: with the groups that are kept; one with none where nothing is.
        left: groups that are not, and why.
    """

    attempt: Attempt
    left: tuple[LeftFamily, ...]


def search(groups: Groups, attempt: Try, banned: Collection[Group] = ()) -> Searched:
    """The groups that make the artifact smaller, of those that compile; `attempt` compiles and measures."""
    tried: list[Attempt] = [attempt(NOTHING)]
    unfolded: list[LeftFamily] = []
    for level in FOLD_KINDS:
        allowed = permitted(groups.groups[level], banned)
        if allowed and not any(sorted(allowed) == sorted(one.groups) for one in tried):
            working, failed = compiling(allowed, attempt)
            unfolded += [LeftFamily(level, group, why) for group, why in failed.items()]
            tried.append(working)
    best, without = gaining(choices(groups, tried), attempt, groups.elements)
    unfolded += [LeftFamily(kind_of(groups, group) or FOLD_KINDS[-1], group, why) for group, why in without.items()]
    folded = {name for group in best.groups for name in group}
    families = {one.members: one for one in reversed(unfolded) if not folded.issuperset(one.members)}
    families.update(_outdone(groups, banned, folded.union(*families)))
    return Searched(best, tuple(reversed(families.values())))


def _outdone(groups: Groups, banned: Collection[Group], spoken: Collection[str]) -> dict[Group, LeftFamily]:
    """Groups of which nothing is folded and nothing else is said."""
    return {
        group: LeftFamily(kind_of(groups, group) or level, group, "another way to fold what it is a part of saves more")
        for level in FOLD_KINDS
        for group in permitted(groups.groups[level], banned)
        if set(group).isdisjoint(spoken)
    }


def kind_of(groups: Groups, group: Group) -> str | None:
    """The strictest level at which these executables, which may be a part of a group, are one; None where at none."""
    for level in FOLD_KINDS:
        if any(set(group) <= set(whole) for whole in groups.groups[level]):
            return level
    return None


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
    # groups whose first member the compiler's message names; none where it names all
    message = tried.cell.failure.message if tried.cell.failure else ""
    named = [group for group in groups if f"{group[0]}_" in message]
    culprits = named if len(named) < len(groups) else []
    first = [group for group in groups if group not in culprits] if culprits else list(groups[: len(groups) // 2])
    second = [group for group in groups if group not in first]
    parts = [compiling(part, attempt) for part in (first, second) if part]
    failed = {group: reason for _, reasons in parts for group, reason in reasons.items()}
    return _together([part for part, _ in parts], attempt, failed)


def _together(parts: Sequence[Attempt], attempt: Try, failed: dict[Group, str]) -> tuple[Attempt, dict[Group, str]]:
    """The groups of all parts; where they compile apart only, those of the first."""
    whole = attempt([group for part in parts for group in part.groups])
    if whole.cell.measured:
        return whole, failed
    lost = {group: f"beside the other groups: {reason_of(whole)}" for part in parts[1:] for group in part.groups}
    return parts[0], {**failed, **lost}


def reason_of(failed: Attempt) -> str:
    """Why it does not compile, without the place: cells of one reason are told together."""
    failure = failed.cell.failure
    return reason(failure.message) if failure else failed.cell.status


@dataclass(frozen=True, slots=True)
class Choice:
    """Executables that could be one, and the ways to fold them, that with the smallest code first.

    Attributes:
        apart_bytes: of their code as they are; None where it is not known.
        ways: groups, and the bytes of code that are left.
    """

    members: Group
    apart_bytes: int | None
    ways: tuple[tuple[int | None, tuple[Group, ...]], ...]

    @property
    def is_clear(self) -> bool:
        """True where less than half of the code is left: then the artifact is smaller, unless the code is tiny."""
        left_bytes = self.ways[0][0]
        return self.apart_bytes is not None and left_bytes is not None and 2 * left_bytes < self.apart_bytes

    @property
    def hopeless(self) -> str:
        """Why no way is worth a compile of its own; empty where one may be."""
        left_bytes = self.ways[0][0]
        if self.apart_bytes is None or left_bytes is None or left_bytes < self.apart_bytes:
            return ""
        return "folding it saves no code"


def choices(groups: Groups, tried: Sequence[Attempt]) -> list[Choice]:
    """Groups that compile, those that share an executable together, with what the attempts say of them.

    `tried`: the first with nothing folded.
    """
    sizes = [_sizes(one.cell) for one in tried]
    result = []
    for names in _joined([group for one in tried for group in one.groups]):
        members = tuple(name for name in groups.entries if name in names)
        entries = [groups.entries[name] for name in members]
        amounts = [_amount(size, entries) for size in sizes]
        inside = [tuple(group for group in one.groups if set(group) <= set(members)) for one in tried]
        ways = dict.fromkeys(zip(amounts[1:], inside[1:], strict=True))
        ordered = sorted((way for way in ways if way[1]), key=lambda way: (way[0] is None, way[0] or 0))
        result.append(Choice(members, amounts[0], tuple(ordered)))
    return result


def gaining(choices: Sequence[Choice], attempt: Try, elements: Mapping[str, int]) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with the ways that make the artifact smaller, and what the others give.

    What clearly does is taken at once, if all of it does; each of the others is compiled beside what is kept by then,
    and where it does not gain as a whole, its small and its large executables apart.

    `elements`: executable → how many its largest tensor has.
    """
    clear = [one for one in choices if one.is_clear]
    best, without = attempt([group for one in clear for group in one.ways[0][1]]), {}
    doubtful = [one for one in choices if one not in clear]
    if not is_smaller(best, plain := attempt(NOTHING)):
        best, doubtful = plain, list(choices)
    for one in sorted(doubtful, key=lambda one: (one.apart_bytes is None, -(one.apart_bytes or 0), one.members)):
        better = one.hopeless or _better(one, best, attempt)
        if isinstance(better, str):
            result = best
            for half in halves(one.members, elements):
                with_it = attempt([*result.groups, half])
                if is_smaller(with_it, result):
                    result = with_it
            better = (result if result is not best else None) or better
        if isinstance(better, str):
            without[one.members] = better
        else:
            best = better
    return best, without


def _better(one: Choice, best: Attempt, attempt: Try) -> Attempt | str:
    tried = [attempt([*best.groups, *groups]) for _, groups in one.ways]
    sizes = [(with_it.artifact_bytes, at) for at, with_it in enumerate(tried) if with_it.artifact_bytes is not None]
    if not sizes or best.artifact_bytes is None:
        return "it does not compile beside the others"
    size, at = min(sizes)
    if size < best.artifact_bytes:
        return tried[at]
    return "the artifact gets no smaller with it"


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


def _joined(groups: Sequence[Group]) -> list[set[str]]:
    """The groups, those that share an executable as one: levels are one inside of the other, halves are not."""
    result: list[set[str]] = []
    for group in groups:
        touching = [one for one in result if not one.isdisjoint(group)]
        result = [one for one in result if one not in touching] + [set(group).union(*touching)]
    return result


def _sizes(cell: Cell) -> dict[str, int | None]:
    """Entry point, as any target spells it → bytes of its executable where it has one of its own, else of its code."""
    return {
        _spelled(row.name): row.code_bytes if row.executable_bytes is None else row.executable_bytes
        for row in cell.dispatches
    }


def _amount(sizes: Mapping[str, int | None], entries: Sequence[str]) -> int | None:
    """Bytes of those entry points that are left; None where one is not known, or none is found."""
    amounts = [sizes[name] for name in map(_spelled, entries) if name in sizes]
    known = [size for size in amounts if size is not None]
    return sum(known) if amounts and len(known) == len(amounts) else None


def _spelled(name: str) -> str:
    return UNSPEAKABLE.sub("_", name)


# One cell's audit: its program is taken at the end of the flow phase, and searched for what is worth folding.


NOT_FOLDED = {
    "operand-order": "executables that take their operands in another order are not folded",
    "extra-operation": "executables that do something more are not folded",
    "different-fusion": "executables of other operations are not folded",
}


@dataclass(frozen=True, slots=True)
class FoldTools:
    """What an audit works with, for all cells of a side."""

    kit: Kit
    folding: Bindings
    importer: Importer
    cache: CellCache
    assembler: Assembler
    scratch: Path


@dataclass(frozen=True, slots=True)
class Audited:
    """One cell's audit.

    Attributes:
        cell: as its printed command gives it.
        planned: with the flag that lifts the compiler's stack gate where that refused it.
        source: its model's file.
        failure: why its program could not be folded at all; None where it could be.
        best: with what is worth folding; None where there is a failure.
    """

    cell: Cell
    planned: PlannedCell
    source: Path | None = None
    failure: str = ""
    attempts: Attempts | None = None
    groups: Groups | None = None
    best: Attempt | None = None
    left: tuple[LeftFamily, ...] = ()


def audit(tools: FoldTools, planned: PlannedCell, cell: Cell) -> Audited:
    """Fold what is worth it of one cell."""
    if cell.status == "over-stack-limit":
        planned = structs.replace(planned, user_flags=(*planned.user_flags, LIFTED_LIMIT_FLAG))
    if not cell.measured:
        return Audited(cell, planned, failure=reason(cell.failure.message) if cell.failure else cell.status)
    source = tools.importer.source(planned.model)
    if isinstance(source, Failure):
        return Audited(cell, planned, failure=source.first_line)
    flow = tools.scratch / f"{planned.model.name}.{planned.target.name}.mlir"
    failed = flow_of(tools.kit, planned.argv, Source(planned.model.name, source), flow)
    if failed is not None:
        return Audited(cell, planned, source, reason(failed.message))
    try:
        groups = groups_of(tools.folding, flow)
    except MalformedBinary as error:
        return Audited(cell, planned, source, str(error))
    attempts = Attempts(planned, flow, tools.kit, tools.folding, tools.cache, tools.assembler)
    return again(Audited(cell, planned, source, attempts=attempts, groups=groups), ())


def again(one: Audited, banned: Collection[Group]) -> Audited:
    """The same cell, searched without some groups."""
    if one.attempts is None or one.groups is None:
        return one
    result = search(one.groups, one.attempts.at, banned)
    if not result.attempt.cell.measured:
        return replace(one, best=None, failure=f"resumed with nothing folded: {reason_of(result.attempt)}")
    return replace(one, best=result.attempt, left=(*result.left, *_families_left(one.cell, one.groups)))


def _families_left(cell: Cell, groups: Groups) -> list[LeftFamily]:
    grouped = {name for level in groups.groups.values() for group in level for name in group}
    return [
        LeftFamily(family.kind, family.members, _why(family.kind, family.members, groups))
        for family in cell.families
        if family.kind in FAMILY_KINDS and grouped.isdisjoint(family.members)
    ]


def _why(kind: str, members: tuple[str, ...], groups: Groups) -> str:
    unfit = next((name for name in members if name in groups.unfit), None)
    if unfit is not None:
        return groups.unfit[unfit]
    if not all(name in groups.entries for name in members):
        return "its executables have other names in the program that is folded"
    return NOT_FOLDED.get(
        kind, "they differ in more than constants, offsets and static dimensions, such as an attribute"
    )


# Whether folded programs still give what they gave, and how fast: groups that fail that are not folded.


RUN_SECONDS = 120
"""How long a run may take: an interpreter is minutes over what a processor does in a second."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What runs the artifacts of one cell."""

    tools: FoldTools
    attempts: Attempts
    runtime: Runtime
    data: Path
    cancel: Cancel
    runner: Runner
    before: Path

    def artifact(self, attempt: Attempt) -> Path | str:
        """The artifact of an attempt, or why there is none."""
        out = attempt.program.with_suffix(".vmfb")
        if not out.is_file():
            source = Source(attempt.planned.model.name, self.attempts.program(attempt))
            if failed := artifact_of(self.tools.kit, attempt.planned.argv, source, out):
                return failed.first_line
        return out

    def equal(self, attempt: Attempt) -> Equality:
        """Whether an attempt gives the outputs of the printed command's artifact."""
        after = self.artifact(attempt)
        if isinstance(after, str):
            return Equality(None, after)
        equality = self.runner.outputs_equal(self.before, after)
        if equality.equal is not None or not equality.equal_note.startswith(NOTHING_COMPARED):
            return equality
        probed = self._probed(attempt)
        return probed if isinstance(probed, Equality) else equality

    def _probed(self, attempt: Attempt) -> Equality | str:
        """The same of the results of all dispatches, which both programs give beside their own; or why not."""
        texts = self.attempts.flow, self.attempts.program(attempt)
        artifacts, signature = [], None
        for text in texts:
            probed = text.with_suffix(".probed.mlir")
            try:
                probes(self.tools.folding.ask("probe", flow=str(text), probed=str(probed)) or "")
                signature = signature or interface(self.tools.folding.ask("interface", flow=str(probed)) or "")
            except MalformedBinary as error:
                return str(error)
            artifact = probed.with_suffix(".vmfb")
            source = Source(attempt.planned.model.name, probed)
            if failed := artifact_of(self.tools.kit, attempt.planned.argv, source, artifact):
                return failed.first_line
            artifacts.append(artifact)
        if signature is None:
            return "nothing was probed"
        equality = runner_of(self.tools, self.runtime, signature, self.data, self.cancel).outputs_equal(*artifacts)
        return equality._replace(equal_note=f"results of all dispatches: {equality.equal_note}")

    def price(self, attempt: Attempt) -> Price | str:
        """What an attempt costs in run time."""
        after = self.artifact(attempt)
        return after if isinstance(after, str) else self.runner.price(self.before, after)


def runner_of(tools: FoldTools, runtime: Runtime, signature: Interface, data: Path, cancel: Cancel) -> Runner:
    """What runs programs of this interface."""

    def compiled(artifact: Path, text: str) -> Path | str:
        return module_of(tools.kit, artifact, text)

    return Runner(runtime, signature, data, cancel, timeout_seconds=RUN_SECONDS, compiled=compiled)


def bench_of(tools: FoldTools, one: Audited, runtime: Runtime, data: Path, cancel: Cancel) -> Bench | str:
    """What runs this cell here, or why nothing does."""
    if one.attempts is None or one.source is None:
        return one.failure
    answer = tools.folding.ask("interface", flow=str(one.attempts.flow))
    if answer is None:
        return tools.folding.reason or "this compiler has no MLIR bindings"
    try:
        runner = runner_of(tools, runtime, interface(answer), data, cancel)
    except MalformedBinary as error:
        return str(error)
    if runner.reason is not None:
        return runner.reason
    before = one.attempts.flow.with_suffix(".before.vmfb")
    failed = artifact_of(tools.kit, one.planned.argv, Source(one.planned.model.name, one.source), before)
    return failed.first_line if failed else Bench(tools, one.attempts, runtime, data, cancel, runner, before)


def differing(bench: Bench, one: Audited, groups: Sequence[Group]) -> dict[Group, str]:
    """Which groups, each folded alone, give other outputs, and how; all of them where only together they do."""
    if one.attempts is None:
        return {}
    equalities = {group: bench.equal(one.attempts.at([group])) for group in groups}
    alone = {group: equality.equal_note for group, equality in equalities.items() if equality.equal is False}
    return alone or dict.fromkeys(groups, "not alone, but together with the others")


def affordable(
    bench: Bench, one: Audited, max_slowdown: float
) -> tuple[Attempt | None, tuple[LeftFamily, ...], Price | str]:
    """The groups that are worth their price, those that are not and why, and the price of those that are."""
    if one.best is None or one.attempts is None or one.groups is None:
        return None, (), one.failure
    price = bench.price(one.best)
    if isinstance(price, str) or within(price, max_slowdown):
        return one.best, (), price
    cheap: list[Cheap] = []
    refused: list[LeftFamily] = []
    for group in one.best.groups:
        parts, why = _affordable_parts(bench, one.attempts, group, one.groups.elements, max_slowdown)
        cheap += parts
        if dear := tuple(name for name in group if not any(name in part for _, part in parts)):
            refused.append(_left(one.groups, dear, why))
    best, dropped, price = together(cheap, one.attempts.at, bench.price, max_slowdown)
    return best, (*refused, *(_left(one.groups, group, _DEAR_TOGETHER) for group in dropped)), price


Cheap = tuple[float, Group]
"""The ratio that was measured for a group alone, and the group."""
_DEAR_TOGETHER = "alone it is worth its price, beside the other groups it is not"


def together(
    cheap: Sequence[Cheap],
    attempt: Callable[[Sequence[Group]], Attempt],
    price: Callable[[Attempt], Price | str],
    max_slowdown: float,
) -> tuple[Attempt, list[Group], Price | str]:
    """As many of the groups as are worth their price together, the dearest dropped first; those, and the price."""
    cheapest = sorted(cheap)
    dropped: list[Group] = []
    while cheapest:
        folded = attempt([group for _, group in cheapest])
        folded_price = price(folded)
        if not isinstance(folded_price, str) and within(folded_price, max_slowdown):
            return folded, dropped, folded_price
        dropped.append(cheapest.pop()[1])
    return attempt(()), dropped, "nothing is left that is worth its price"


def _left(groups: Groups, group: Group, why: str) -> LeftFamily:
    return LeftFamily(kind_of(groups, group) or FOLD_KINDS[-1], group, why)


def _affordable_parts(
    bench: Bench, attempts: Attempts, group: Group, elements: Mapping[str, int], max_slowdown: float
) -> tuple[list[Cheap], str]:
    whole_price = bench.price(attempts.at([group]))
    if not isinstance(whole_price, str) and within(whole_price, max_slowdown):
        return [(whole_price.ratio, group)], ""
    parts: list[Cheap] = []
    for half in halves(group, elements):
        alone, apart = attempts.at([half]), attempts.at(())
        price = bench.price(alone) if is_smaller(alone, apart) else ""
        if not isinstance(price, str) and within(price, max_slowdown):
            parts.append((price.ratio, half))
    return parts, _too_dear(whole_price, max_slowdown)


def _too_dear(price: Price | str, max_slowdown: float) -> str:
    if isinstance(price, str):
        return f"its price is not known: {price}"
    sure = "it is" if within(price, max_slowdown) is False else "it may be"
    return f"{sure} slower by more than {max_slowdown:.1%}"


def without(one: Audited, best: Attempt | None, left: Sequence[LeftFamily]) -> Audited:
    """The cell with more that is left, and other groups kept where these are given."""
    return replace(one, best=best or one.best, left=(*one.left, *left))


# How far each step takes a model: what is left of its dispatch regions today, and what could be.


NOTHING_INLINED = "--iree-flow-inline-constants-max-byte-length=0"
"""The compiler inlines no constant into a dispatch, so that more of them are equal."""


def model_of(tools: FoldTools, audits: Sequence[Audited], cells: Sequence[FoldCell]) -> FoldModel:
    """The counts of one model, by the first of its cells whose program could be read."""
    name = audits[0].cell.key.model
    one = next((each for each in audits if each.groups is not None), audits[0])
    today, apart = one.groups, _not_inlined(tools, one)
    folded = [cell.executables.after for cell in cells if cell.model == name and cell.equal is not False]
    measured = one.cell.measured
    return FoldModel(
        model=name,
        regions=one.cell.value("dispatch_regions") if measured else None,
        today=one.cell.value("executables") if measured else None,
        not_inlined=count(apart),
        shapes_erased=apart.classes.shapes if apart else None,
        constants_erased=today.classes.constants if today else None,
        both_erased=today.classes.both if today else None,
        folded=min((number for number in folded if number is not None), default=None),
    )


def count(groups: Groups | None) -> int | None:
    """How many executables a program has."""
    return len(groups.entries) + len(groups.unfit) if groups else None


def _not_inlined(tools: FoldTools, one: Audited) -> Groups | None:
    """The same model's program where no constant is inlined; None where it cannot be had."""
    if one.groups is None or one.source is None:
        return None
    flow = tools.scratch / f"{one.cell.key.model}.not-inlined.mlir"
    argv = (*one.planned.argv, NOTHING_INLINED)
    try:
        if flow_of(tools.kit, argv, Source(one.planned.model.name, one.source), flow) is not None:
            return None
        return groups_of(tools.folding, flow)
    except MalformedBinary:
        return None


# A cell's audit as what is told of it; its folded program goes to the output directory.


FOLDER = "folded"
"""Of the folded programs, beside `fold.json`."""


def fold_cell(one: Audited, run: Run, out: Path) -> FoldCell:
    """The audit of one cell as `fold.json` has it."""
    cell, attempt = one.cell, one.best
    counts = fold_counts(cell)
    surplus = counts.surplus_executables if counts else None
    is_folded = attempt is not None and bool(attempt.groups)
    row = FoldCell(
        model=cell.key.model,
        target=cell.key.target,
        state=_state(one),
        executables=_both(one, "executables"),
        artifact_bytes=_both(one, "artifact_bytes"),
        executable_bytes=_both(one, "executable_bytes"),
        equal=run.equal,
        folded=_folded(one),
        left=one.left,
        resumed_bytes=one.attempts.at(()).artifact_bytes if one.attempts is not None else None,
        bound=None if surplus is None else Bound(surplus, counts.surplus_bytes if counts else None),
        equal_note=run.equal_note,
        price=run.price,
        price_note=run.price_note,
        note=one.failure,
    )
    if attempt is None or one.attempts is None or not is_folded:
        return row
    module = f"{FOLDER}/{cell.key.model}.{cell.key.target}.mlir"
    make_directory(out / FOLDER)
    shutil.copyfile(one.attempts.program(attempt), out / module)
    planned = structs.replace(attempt.planned, model=structs.replace(attempt.planned.model, shown=module))
    return structs.replace(row, command=planned.command(), module=module)


def _state(one: Audited) -> str:
    if one.cell.status == "unsupported":
        return "unsupported"
    if one.best is None or not one.best.cell.measured:
        return FAILED
    return "folded" if one.best.groups else "nothing-to-fold"


def _both(one: Audited, metric: str) -> BeforeAfter:
    """A metric before and after; what is not folded stays what it was."""
    before = one.cell.value(metric) if one.cell.measured else None
    if one.best is None or not one.best.groups:
        return BeforeAfter(before, before if one.best is not None else None)
    return BeforeAfter(before, one.best.cell.value(metric))


def _folded(one: Audited) -> tuple[FoldedFamily, ...]:
    if one.best is None or one.groups is None:
        return ()
    return tuple(
        FoldedFamily(kind_of(one.groups, group.members) or FOLD_KINDS[-1], group.members, group.operands)
        for group in one.best.folded
    )


def rejected(one: Audited, banned: Mapping[Group, str]) -> tuple[LeftFamily, ...]:
    """Groups of a cell that are not folded as they change outputs, here or on another target."""
    if one.groups is None:
        return ()
    rows = [(kind_of(one.groups, group), group, why) for group, why in banned.items()]
    return tuple(LeftFamily(kind, group, why) for kind, group, why in rows if kind is not None)


def news_of(one: Audited) -> str:
    """One line while it goes on."""
    if one.best is None:
        return f"{one.cell.key}: not folded: {one.failure}"
    if not one.best.groups:
        return f"{one.cell.key}: nothing to fold"
    counts, sizes = _both(one, "executables"), _both(one, "artifact_bytes")
    changes = [f"{pair.before:,} → {pair.after:,} {unit}" for pair, unit in ((counts, "executables"), (sizes, "B"))
            if pair.before is not None and pair.after is not None]  # fmt: skip
    return f"{one.cell.key}: {', '.join(changes)}"


# From a request to its fold audit: every cell is folded, run where this machine can, timed, and told.


NOT_ASKED = "nothing was to be run"
NOTHING_FOLDED = "nothing is folded"
"""The reason why outputs are not compared, nor anything timed, where the artifact stays what it was."""


def audited(request: Request, config: Config, options: FoldOptions, show: Show, cancel: Cancel) -> FoldAudit:
    """Fold every cell that the request selects; `request.specs["head"]` names the compiler."""
    repository = repository_at(request.config, cancel)
    plan = prepare("head", request.specs["head"], request, config, repository, show, cancel)
    side = measured([plan], {}, request, config, show, cancel)["head"]
    runtime = installed() if options.run else None
    with _tools(plan, request, config, cancel) as tools:
        planned = {cell.key: cell for cell in plan.cells}
        audits = _all(tools, [(planned[cell.key], cell) for cell in side.cells], request, show, cancel)
        reason = MISSING if options.run else NOT_ASKED
        runs = dict.fromkeys(audits, Run(None, reason, None, reason))
        if runtime is not None:
            checks = _Checks(tools, audits, runtime, options, show, cancel)
            checks.all()
            audits, runs = checks.audits, checks.runs
        cells = [fold_cell(one, runs[key], request.out) for key, one in audits.items()]
        models = [
            model_of(tools, list(of), cells) for _, of in groupby(audits.values(), lambda one: one.cell.key.model)
        ]
    return FoldAudit(
        FOLD_SCHEMA,
        compiler=plan.toolchain.info,
        flags=side.flags,
        machine=machine(runtime) if runtime is not None and any(one.equal is not None for one in runs.values()) else "",
        max_slowdown=options.max_slowdown,
        models=tuple(models),
        cells=tuple(cells),
    )


@contextmanager
def _tools(plan: SidePlan, request: Request, config: Config, cancel: Cancel) -> Iterator[FoldTools]:
    toolchain, timeout = plan.toolchain, config.timeout_seconds
    with (
        temporary_directory("fold-") as scratch,
        closing(working(FOLD_WORKER, toolchain, cancel)) as folding,
        open_kit(toolchain, IR_WORKER, Session("head", scratch, timeout, cancel, Meter())) as (kit, importer),
    ):
        cache = CellCache(request.cache, is_writable(request.cache.absolute()))
        yield FoldTools(kit, folding, importer, cache, Assembler(cancel, timeout, assembler_here()), scratch)


def _all(
    tools: FoldTools, cells: Sequence[tuple[PlannedCell, Cell]], request: Request, show: Show, cancel: Cancel
) -> dict[CellKey, Audited]:
    audits: dict[CellKey, Audited] = {}

    def run(planned: PlannedCell, cell: Cell) -> None:
        one = audit(tools, planned, cell)
        audits[cell.key] = one
        show.say(news_of(one))

    tasks = [Task(planned.cost, f"fold {cell.key}", partial(run, planned, cell)) for planned, cell in cells]
    with show.progress() as progress:
        run_all(tasks, request.jobs, cancel.set, progress)
    return {key: audits[key] for key in sorted(audits)}


@dataclass
class _Checks:
    """All cells, as checking leaves them; nothing else runs beside it, as it takes times."""

    tools: FoldTools
    audits: dict[CellKey, Audited]
    runtime: Runtime
    options: FoldOptions
    show: Show
    cancel: Cancel
    runs: dict[CellKey, Run] = field(default_factory=dict)

    def all(self) -> None:
        """Run what can be run; what gives other outputs somewhere is folded nowhere."""
        with temporary_directory("fold-data-") as data:
            for model in sorted({key.model for key in self.audits}):
                keys = [key for key in self.audits if key.model == model]
                benches = {key: self._bench(key, data / model) for key in keys}
                self._equal(keys, benches)
                for key, bench in benches.items():
                    if isinstance(bench, Bench) and self.runs[key].equal:
                        # take the time; where a slowdown is the limit, keep the groups within it
                        one, limit = self.audits[key], self.options.max_slowdown
                        assert one.best is not None  # noqa: S101 - a bench is of what was folded
                        self.show.say(f"{key}: is timed before and after folding")
                        if limit is None:
                            price = bench.price(one.best)
                        else:
                            best, left, price = affordable(bench, one, limit)
                            self.audits[key] = without(one, best, left)
                            if best is not one.best:
                                self.runs[key] = self._compared(self.audits[key], bench)[0]
                        known = price if isinstance(price, Price) else None
                        self.runs[key] = structs.replace(
                            self.runs[key], price=known, price_note="" if known else str(price)
                        )
                shutil.rmtree(data / model, ignore_errors=True)

    def _bench(self, key: CellKey, data: Path) -> Bench | str:
        one = self.audits[key]
        if one.best is None or not one.best.groups:
            return one.failure or NOTHING_FOLDED
        return bench_of(self.tools, one, self.runtime, data, self.cancel)

    def _equal(self, keys: Sequence[CellKey], benches: Mapping[CellKey, Bench | str]) -> None:
        banned: dict[Group, str] = {}
        while True:
            worse = {}
            for key in keys:
                self.runs[key], bad = self._compared(self.audits[key], benches[key])
                worse.update(dict.fromkeys(bad, f"it gives other outputs on {key.target}"))
            if not worse.keys() - banned.keys():
                return
            banned.update(worse)
            for key in keys:
                self.audits[key] = without(again(self.audits[key], banned), None, rejected(self.audits[key], banned))

    def _compared(self, one: Audited, bench: Bench | str) -> tuple[Run, Mapping[Group, str]]:
        if isinstance(bench, str):
            return Run(None, bench, None, bench), {}
        if one.best is None or not one.best.groups:
            return Run(None, NOTHING_FOLDED, None, NOTHING_FOLDED), {}
        self.show.say(f"{one.cell.key}: runs before and after folding")
        equality = bench.equal(one.best)
        bad = differing(bench, one, one.best.groups) if equality.equal is False else {}
        for group, why in bad.items():
            self.show.say(f"{one.cell.key}: {group[0]} and {len(group) - 1} more give other outputs as one: {why}")
        return Run(equality.equal, equality.equal_note, None, "outputs are not known to be equal"), bad


# What an audit is made with: the request with its compiler named, and where that compiler's wheels are.


def audit_request(
    request: Request, config: Config, sought: Sought, say: Callable[[str], None]
) -> tuple[Request, Config]:
    """The request with the compiler as its head; the configuration with the places where that is looked for."""
    for note in sought.notes:
        say(note)
    if sought.places.no_index:
        say("--no-index of the requirements file is not followed here: the index counts as well")
    links = tuple(dict.fromkeys((*sought.places.find_links, *config.compiler.find_links)))
    config = structs.replace(config, compiler=structs.replace(config.compiler, find_links=links))
    return replace(request, specs={**request.specs, "head": sought.spec}), config
