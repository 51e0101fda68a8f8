"""How far a model's executables can be folded: each cell's audit, and the whole one as `fold.json` has it.

Of each cell what is worth it is folded. Then programs are run where this machine can,
before and after, and timed: groups that give other outputs, or cost too much, are not
folded.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.bindings import working
from bot.compiler.cell_cache import CellCache
from bot.compiler.compiler import Session
from bot.compiler.compiling import CompileInput
from bot.compiler.diagnostics import reason
from bot.compiler.iree import open_setup
from bot.compiler.ptxas import Assembler
from bot.compiler.ptxas import installed as assembler_here
from bot.compiler.schedule import Task, run_all
from bot.core import fold
from bot.core.fold import (
    FAILED,
    FOLD_KINDS,
    FoldAudit,
    FoldCell,
    FoldModel,
    LeftFamily,
    Price,
    Run,
)
from bot.core.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.snapshot import Cell, CellKey, Failure
from bot.errors import MalformedBinary
from bot.running.runner import MISSING, Equality, Runner, Runtime, installed, machine
from bot.show.filters import plural
from bot.study.fold_attempts import Attempt, Attempts, FoldTools
from bot.study.fold_search import affordable, kind_of, left, reason_of, search
from bot.study.prepare import Work
from bot.study.rewriting import Group, Groups, flow_of, groups_of, interface_of
from bot.system.files import is_writable, make_directory, temporary_directory
from bot.system.processes import Meter

FOLDER = "folded"  # Of the folded programs, beside `fold.json`
NOT_ASKED = "--no-run was given"
NOTHING_FOLDED = "nothing is folded"
"""The reason why outputs are not compared, nor anything timed, where the artifact stays what it was."""
NOT_FOLDED = {
    "operand-order": "executables with another operand order are not folded",
    "extra-operation": "executables with extra operations are not folded",
    "different-fusion": "executables with different operations are not folded",
}


@dataclass(slots=True)
class Audited:
    """One cell's audit."""

    cell: Cell  # as its printed command gives it
    planned: PlannedCell
    failure: str = ""
    attempts: Attempts | None = (
        None  # None where its program could not be had, with the reason in `failure`
    )
    best: Attempt | None = (
        None  # with what is worth folding; None where there is a failure
    )
    left: tuple[LeftFamily, ...] = ()
    bench: Bench | str = ""  # what runs it here, or why nothing does
    run: Run = field(default_factory=Run)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that are folded."""
        return self.best.groups if self.best else ()


def audit(tools: FoldTools, planned: PlannedCell, cell: Cell) -> Audited:
    """Fold what is worth it of one cell."""
    if cell.status == "over-stack-limit":
        planned = structs.replace(
            planned, user_flags=(*planned.user_flags, LIFTED_LIMIT_FLAG)
        )
    if not cell.measured:
        return Audited(
            cell, planned, reason(cell.failure.message) if cell.failure else cell.status
        )
    source = tools.importer.source(planned.model)
    if isinstance(source, Failure):
        return Audited(cell, planned, source.first_line)
    flow = tools.scratch / f"{planned.model.name}.{planned.target.name}.mlir"
    failed = flow_of(
        tools.setup,
        argv=planned.argv,
        source=CompileInput(planned.model.name, source),
        out=flow,
    )
    if failed is not None:
        return Audited(cell, planned, reason(failed.message))
    try:
        attempts = Attempts(
            tools=tools,
            planned=planned,
            source=source,
            flow=flow,
            groups=groups_of(tools.folding, flow),
        )
    except MalformedBinary as error:
        return Audited(cell, planned, str(error))
    audited = Audited(cell, planned, attempts=attempts)
    fold_best(audited, attempts, ())
    return audited


def fold_best(audited: Audited, attempts: Attempts, banned: Collection[Group]) -> None:
    """What is worth folding of a cell without some groups."""
    groups = attempts.groups
    result = search(groups, attempts.at, banned)
    if not result.attempt.cell.measured:
        audited.best, audited.failure = (
            None,
            f"resumed with nothing folded: {reason_of(result.attempt)}",
        )
        return
    grouped = {
        name for level in groups.groups.values() for group in level for name in group
    }
    families = [
        LeftFamily(
            family.kind, family.members, _why(family.kind, family.members, groups)
        )
        for family in audited.cell.families
        if grouped.isdisjoint(family.members)
    ]
    audited.best, audited.left = result.attempt, (*result.left, *families)


def _why(kind: str, members: tuple[str, ...], groups: Groups) -> str:
    unfit = next((name for name in members if name in groups.unfit), None)
    if unfit is not None:
        return groups.unfit[unfit]
    if not all(name in groups.entries for name in members):
        return "its executables have other names in the program before folding"
    extra_flags = (
        "they differ in more than constants, offsets and static dimensions, such as an"
        " attribute"
    )
    return NOT_FOLDED.get(kind, extra_flags)


class Bench(NamedTuple):
    """What runs the artifacts of one cell; `before` is that of its printed command."""

    attempts: Attempts
    runner: Runner
    before: Path

    def artifact(self, attempt: Attempt) -> Path | str:
        """The artifact of an attempt, or why there is none."""
        out = attempt.program.with_suffix(".vmfb")
        return (
            out
            if out.is_file()
            else self.attempts.artifact(
                attempt.planned, self.attempts.program(attempt), out
            )
        )

    def equal(self, attempt: Attempt) -> Equality:
        """Whether an attempt gives the outputs of the printed command's artifact."""
        after = self.artifact(attempt)
        return (
            Equality(None, after)
            if isinstance(after, str)
            else self.runner.outputs_equal(self.before, after)
        )

    def price(self, attempt: Attempt) -> Price | str:
        """What an attempt costs in run time."""
        after = self.artifact(attempt)
        return (
            after if isinstance(after, str) else self.runner.price(self.before, after)
        )


def audited(work: Work, max_slowdown: float | None, *, runs: bool) -> FoldAudit:
    """Fold every cell that the request selects; its `specs["head"]` names the compiler.

    `max_slowdown`: the price that is allowed (0.01 is 1 %), None where every fold with
    gain is kept; `runs`: False where nothing is executed, so that outputs and price are
    not known.
    """
    plan = work.prepare("head", work.request.specs["head"])
    side = work.measured([plan])["head"]
    runtime = installed() if runs else None
    toolchain, timeout, cache = (
        plan.toolchain,
        work.config.timeout_seconds,
        work.request.cache,
    )
    with (
        temporary_directory("fold-") as scratch,
        closing(working(toolchain, work.cancel)) as folding,
        open_setup(
            toolchain,
            Session(
                scratch=scratch,
                timeout_seconds=timeout,
                cancel=work.cancel,
                meter=Meter(),
            ),
        ) as (
            setup,
            importer,
        ),
    ):
        cells, assembler = (
            CellCache(cache, is_writable(cache.absolute())),
            Assembler(work.cancel, timeout, assembler_here()),
        )
        tools = FoldTools(
            setup=setup,
            folding=folding,
            importer=importer,
            cache=cells,
            assembler=assembler,
            scratch=scratch,
        )
        planned = {cell.key: cell for cell in plan.cells}
        audits = _all(tools, [(planned[cell.key], cell) for cell in side.cells], work)
        by_model = [
            list(of)
            for _, of in groupby(audits, lambda audited: audited.cell.key.model)
        ]
        if runtime is None:
            reason = MISSING if runs else NOT_ASKED
            for audit in audits:
                audit.run = Run(
                    equal=None, equal_note=reason, price=None, price_note=reason
                )
        else:  # nothing else runs beside it, as it takes times
            with temporary_directory("fold-data-") as data:
                for audits_of_model in by_model:
                    _check(
                        audits_of_model,
                        runtime=runtime,
                        data=data,
                        max_slowdown=max_slowdown,
                        work=work,
                    )
                    shutil.rmtree(
                        data / audits_of_model[0].cell.key.model, ignore_errors=True
                    )
        rows = [fold_cell(audit, work.request.out) for audit in audits]
        models = [model_of(audits_of_model, rows) for audits_of_model in by_model]
    ran = any(audit.run.equal is not None for audit in audits)
    return FoldAudit(
        fold.FOLD_SCHEMA,
        compiler=toolchain.info,
        flags=side.flags,
        machine=machine(runtime) if runtime is not None and ran else "",
        max_slowdown=max_slowdown,
        models=tuple(models),
        cells=tuple(rows),
    )


def _all(
    tools: FoldTools, cells: Sequence[tuple[PlannedCell, Cell]], work: Work
) -> list[Audited]:
    audits: dict[CellKey, Audited] = {}

    def run(planned: PlannedCell, cell: Cell) -> None:
        audited = audits[cell.key] = audit(tools, planned, cell)
        news = f"not folded: {audited.failure}"
        if audited.best:
            news = f"{plural(len(audited.groups), 'group')} folded"
        work.show.say(f"{cell.key}: {news}")

    tasks = [
        Task(planned.cost, f"fold {cell.key}", partial(run, planned, cell))
        for planned, cell in cells
    ]
    with work.show.progress() as progress:
        progress.stage("folding", len(tasks), "build")
        run_all(
            tasks, jobs=work.request.jobs, interrupt=work.cancel.set, watcher=progress
        )
    return [audits[key] for key in sorted(audits)]


def _check(
    audits: Sequence[Audited],
    runtime: Runtime,
    data: Path,
    max_slowdown: float | None,
    work: Work,
) -> None:
    """Run what can be run of one model; what gives other outputs on a target is folded on none."""
    banned: dict[Group, str] = {}
    for audit in audits:
        audit.bench = _bench(
            audit, runtime=runtime, data=data / audit.cell.key.model, work=work
        )
    while True:
        worse = {}
        for audit in audits:
            worse.update(
                dict.fromkeys(
                    _compared(audit, work),
                    f"its outputs differ on {audit.cell.key.target}",
                )
            )
        if not worse.keys() - banned.keys():
            break
        banned.update(worse)
        for audit in audits:
            if audit.attempts is not None:
                fold_best(audit, audit.attempts, banned)
                kinds = {
                    group: kind_of(audit.attempts.groups, group) for group in banned
                }
                rejected = (
                    LeftFamily(kind, group, banned[group])
                    for group, kind in kinds.items()
                    if kind is not None
                )
                audit.left = (*audit.left, *rejected)
    for audit in audits:
        bench, best = audit.bench, audit.best
        if isinstance(bench, str) or best is None or not audit.run.equal:
            continue
        work.show.say(f"{audit.cell.key}: timing it before and after folding")
        if max_slowdown is None:
            price = bench.price(best)
        else:  # the groups within the limit are kept
            audit.best, dear, price = affordable(
                best,
                attempt=bench.attempts.at,
                price=bench.price,
                max_slowdown=max_slowdown,
            )
            audit.left += tuple(
                left(bench.attempts.groups, group, reason)
                for group, reason in dear.items()
            )
            if audit.best is not best:
                _compared(audit, work)
        known_price = price if isinstance(price, Price) else None
        audit.run = structs.replace(
            audit.run, price=known_price, price_note="" if known_price else str(price)
        )


def _bench(audited: Audited, runtime: Runtime, data: Path, work: Work) -> Bench | str:
    if audited.attempts is None or not audited.groups:
        return audited.failure or NOTHING_FOLDED
    attempts = audited.attempts
    signature = interface_of(attempts.tools.folding, attempts.flow)
    if isinstance(signature, str):
        return signature
    runner = Runner(
        runtime=runtime, interface=signature, directory=data, cancel=work.cancel
    )
    if runner.reason is not None:
        return runner.reason
    before = attempts.artifact(
        audited.planned, attempts.source, attempts.flow.with_suffix(".before.vmfb")
    )
    return before if isinstance(before, str) else Bench(attempts, runner, before)


def _compared(audited: Audited, work: Work) -> Mapping[Group, str]:
    """Compare outputs before and after folding.

    Which groups, each folded alone, change them, and how.

    All of them where only together they do.
    """
    bench = audited.bench
    if isinstance(bench, str) or audited.best is None or not audited.groups:
        reason = bench if isinstance(bench, str) else NOTHING_FOLDED
        audited.run = Run(equal=None, equal_note=reason, price=None, price_note=reason)
        return {}
    work.show.say(f"{audited.cell.key}: comparing outputs before and after folding")
    equality, bad = bench.equal(audited.best), dict[Group, str]()
    if equality.equal is False:
        is_equal_alone = {
            group: bench.equal(bench.attempts.at([group])) for group in audited.groups
        }
        bad = {
            group: is_equal.equal_note
            for group, is_equal in is_equal_alone.items()
            if is_equal.equal is False
        }
        bad = bad or dict.fromkeys(
            audited.groups, "its outputs differ only together with the other groups"
        )
    for group, reason in bad.items():
        work.show.say(
            f"{audited.cell.key}: {group[0]} and {len(group) - 1} more have other outputs"
            f" after merging: {reason}"
        )
    audited.run = Run(
        equal=equality.equal,
        equal_note=equality.equal_note,
        price=None,
        price_note="equal outputs are not proved",
    )
    return bad


def model_of(audits: Sequence[Audited], cells: Sequence[FoldCell]) -> FoldModel:
    """The counts of one model, by the first of its cells whose program could be read."""
    cell = next(
        (audit for audit in audits if audit.attempts is not None), audits[0]
    ).cell
    folded = [
        audited.executables.after
        for audited in cells
        if audited.model == cell.key.model and audited.equal is not False
    ]
    return FoldModel(
        model=cell.key.model,
        regions=cell.value("dispatch_regions") if cell.measured else None,
        today=cell.value("executables") if cell.measured else None,
        folded=min((number for number in folded if number is not None), default=None),
    )


def fold_cell(audited: Audited, out: Path) -> FoldCell:
    """The audit of one cell as `fold.json` has it.

    Its folded program goes to the output directory.
    """
    cell, run, command, module = audited.cell, audited.run, "", ""
    folded = list[fold.FoldedFamily]()
    if cell.status == "unsupported":
        state = "unsupported"
    elif audited.best is None or not audited.best.cell.measured:
        state = FAILED
    else:
        state = "folded" if audited.groups else "nothing-to-fold"
    if audited.attempts is not None and audited.best is not None and audited.groups:
        groups, best = audited.attempts.groups, audited.best
        for group in best.folded:
            kind = kind_of(groups, group.members) or FOLD_KINDS[-1]
            folded.append(fold.FoldedFamily(kind, group.members, group.operands))
        module = f"{FOLDER}/{cell.key.model}.{cell.key.target}.mlir"
        make_directory(out / FOLDER)
        shutil.copyfile(audited.attempts.program(best), out / module)
        shown_model = structs.replace(best.planned.model, shown=module)
        command = structs.replace(best.planned, model=shown_model).command()
    return FoldCell(
        model=cell.key.model,
        target=cell.key.target,
        state=state,
        executables=_both(audited, "executables"),
        artifact_bytes=_both(audited, "artifact_bytes"),
        equal=run.equal,
        folded=tuple(folded),
        left=audited.left,
        resumed_bytes=(
            audited.attempts.at(()).artifact_bytes
            if audited.attempts is not None
            else None
        ),
        equal_note=run.equal_note,
        price=run.price,
        price_note=run.price_note,
        command=command,
        module=module,
        note=audited.failure,
    )


def _both(audited: Audited, metric: str) -> fold.BeforeAfter:
    """A metric before and after; what is not folded stays what it was."""
    before = audited.cell.value(metric) if audited.cell.measured else None
    if audited.best is None or not audited.groups:
        return fold.BeforeAfter(before, before if audited.best is not None else None)
    return fold.BeforeAfter(before, audited.best.cell.value(metric))
