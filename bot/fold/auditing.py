"""Find how far a model's executables can be folded, as `fold.json` has it.

First each cell is folded as far as it saves code. Then the programs before and after
are run and timed, if this machine can run them. Groups that change the outputs, or that
cost too much time, are not folded.
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
from bot.compiler.compiling import CompileInput
from bot.compiler.diagnostics import reason
from bot.compiler.iree import open_setup
from bot.compiler.ptxas import Assembler
from bot.compiler.ptxas import installed as assembler_here
from bot.compiler.schedule import Task, run_all
from bot.core.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.runs import Price, Run, unknown_run
from bot.core.snapshot import Cell, CellKey, Failure
from bot.errors import MalformedBinary
from bot.fold.attempts import Attempt, Attempts, FoldTools
from bot.fold.audit import (
    FAILED,
    FOLD_KINDS,
    FOLD_SCHEMA,
    BeforeAfter,
    FoldAudit,
    FoldCell,
    FoldedFamily,
    FoldModel,
    LeftFamily,
)
from bot.fold.rewriting import Group, Groups, groups_of
from bot.fold.search import affordable, kind_of, left, reason_of, search
from bot.running.runner import MISSING, Equality, Runner, Runtime, installed, machine
from bot.show.filters import plural
from bot.study.flow_program import flow_of, interface_of
from bot.study.prepare import Work
from bot.system.files import is_writable, make_directory, temporary_directory

FOLDER = "folded"  # Of the folded programs, beside `fold.json`
NOT_ASKED = "--no-run was given"
# Why outputs are not compared, nor anything timed, where the artifact stays what it was
NOTHING_FOLDED = "nothing is folded"
NOT_FOLDED = {
    "operand-order": "executables with another operand order are not folded",
    "extra-operation": "executables with extra operations are not folded",
    "different-fusion": "executables with different operations are not folded",
}


@dataclass(slots=True)
class Audited:
    """The audit of one cell."""

    cell: Cell  # as its printed command gives it
    planned: PlannedCell
    failure: str = ""
    # None where its program could not be had, with the reason in `failure`
    attempts: Attempts | None = None
    # with what is worth folding; None where there is a failure
    best: Attempt | None = None
    left: tuple[LeftFamily, ...] = ()
    bench: Bench | str = ""  # what runs it here, or why nothing does
    run: Run = field(default_factory=Run)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Return the groups that are folded."""
        if self.best:
            return self.best.groups
        return ()


def audit(tools: FoldTools, planned: PlannedCell, cell: Cell) -> Audited:
    """Fold the groups of one cell that are worth it."""
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
    """Fold the groups of a cell that are worth it, without the banned groups."""
    groups = attempts.groups
    result = search(groups, attempts.of, banned)
    if not result.attempt.cell.measured:
        audited.best = None
        audited.failure = f"resumed with nothing folded: {reason_of(result.attempt)}"
        return
    grouped: set[str] = set()
    for level in groups.groups.values():
        grouped.update(*level)
    families = []
    for family in audited.cell.families:
        if grouped.isdisjoint(family.members):
            left_why = _why(family.kind, family.members, groups)
            families.append(LeftFamily(family.kind, family.members, left_why))
    audited.best = result.attempt
    audited.left = (*result.left, *families)


def _why(kind: str, members: tuple[str, ...], groups: Groups) -> str:
    unfit = next((name for name in members if name in groups.unfit), None)
    if unfit is not None:
        return groups.unfit[unfit]
    if not all(name in groups.entries for name in members):
        return "its executables have other names in the program before folding"
    other_reason = (
        "they differ in more than constants, offsets and static dimensions, such as an"
        " attribute"
    )
    return NOT_FOLDED.get(kind, other_reason)


class Bench(NamedTuple):
    """The tools that run the artifacts of one cell.

    `before` is the artifact of its printed command.
    """

    attempts: Attempts
    runner: Runner
    before: Path

    def artifact(self, attempt: Attempt) -> Path | str:
        """Return the artifact of an attempt, or why there is none."""
        out = attempt.program.with_suffix(".vmfb")
        if out.is_file():
            return out
        program = self.attempts.program(attempt)
        return self.attempts.artifact(attempt.planned, program, out)

    def equal(self, attempt: Attempt) -> Equality:
        """Return whether an attempt gives the same outputs as the printed command."""
        after = self.artifact(attempt)
        if isinstance(after, str):
            return Equality(None, after)
        return self.runner.outputs_equal(self.before, after)

    def price(self, attempt: Attempt) -> Price | str:
        """Return what an attempt costs in run time."""
        after = self.artifact(attempt)
        if isinstance(after, str):
            return after
        return self.runner.price(self.before, after)


def audited(work: Work, max_slowdown: float | None, *, runs: bool) -> FoldAudit:
    """Fold every cell that the request selects; its `specs["head"]` names the compiler.

    `max_slowdown`: the price that is allowed (0.01 is 1 %). None keeps every fold
    that gains.

    `runs`: False if nothing is executed, so that outputs and price are not known.
    """
    plan = work.prepare("head", work.request.specs["head"])
    side = work.measured([plan])["head"]
    runtime = installed() if runs else None
    toolchain = plan.toolchain
    timeout = work.config.timeout_seconds
    cache = work.request.cache
    with (
        temporary_directory("fold-") as scratch,
        closing(working(toolchain, work.cancel)) as folding,
        open_setup(toolchain, work.session(scratch)) as (setup, importer),
    ):
        tools = FoldTools(
            setup=setup,
            folding=folding,
            importer=importer,
            cache=CellCache(cache, is_writable(cache.absolute())),
            assembler=Assembler(work.cancel, timeout, assembler_here()),
            scratch=scratch,
        )
        planned = {cell.key: cell for cell in plan.cells}
        audits = _all(tools, [(planned[cell.key], cell) for cell in side.cells], work)
        by_model = []
        for _, group in groupby(audits, lambda audited: audited.cell.key.model):
            by_model.append(list(group))
        if runtime is None:
            reason = MISSING if runs else NOT_ASKED
            for audit in audits:
                audit.run = unknown_run(reason)
        else:
            _check_all(by_model, runtime, max_slowdown, work)
        rows = [fold_cell(audit, work.request.out) for audit in audits]
        models = [model_of(audits_of_model, rows) for audits_of_model in by_model]
    shown_machine = ""
    if runtime is not None and any(audit.run.equal is not None for audit in audits):
        shown_machine = machine(runtime)
    return FoldAudit(
        FOLD_SCHEMA,
        compiler=toolchain.info,
        flags=side.flags,
        machine=shown_machine,
        max_slowdown=max_slowdown,
        models=tuple(models),
        cells=tuple(rows),
    )


def _check_all(
    by_model: Sequence[Sequence[Audited]],
    runtime: Runtime,
    max_slowdown: float | None,
    work: Work,
) -> None:
    """Check one model after the other.

    Nothing else runs beside it, because it measures times.
    """
    with temporary_directory("fold-data-") as data:
        for audits in by_model:
            _check(
                audits,
                runtime=runtime,
                data=data,
                max_slowdown=max_slowdown,
                work=work,
            )
            shutil.rmtree(data / audits[0].cell.key.model, ignore_errors=True)


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

    tasks = []
    for planned, cell in cells:
        fold_cell_of = partial(run, planned, cell)
        tasks.append(Task(planned.cost, f"fold {cell.key}", fold_cell_of))
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
    """Run the programs of one model that this machine can run.

    If a group changes the outputs on one target, it is folded on none.
    """
    for audit in audits:
        audit.bench = _bench(
            audit, runtime=runtime, data=data / audit.cell.key.model, work=work
        )
    banned: dict[Group, str] = {}
    while True:
        worse: dict[Group, str] = {}
        for audit in audits:
            worse.update(_compared(audit, work))
        if not worse.keys() - banned.keys():
            break
        banned.update(worse)
        for audit in audits:
            _fold_without(audit, banned)
    for audit in audits:
        _price(audit, max_slowdown, work)


def _fold_without(audit: Audited, banned: Mapping[Group, str]) -> None:
    """Fold a cell again without the banned groups, which are left for these reasons."""
    if audit.attempts is None:
        return
    fold_best(audit, audit.attempts, banned)
    rejected = []
    for group, why in banned.items():
        kind = kind_of(audit.attempts.groups, group)
        if kind is not None:
            rejected.append(LeftFamily(kind, group, why))
    audit.left = (*audit.left, *rejected)


def _price(audit: Audited, max_slowdown: float | None, work: Work) -> None:
    """Time a cell with equal outputs; keep the groups within the limit if there is one."""
    bench = audit.bench
    best = audit.best
    if isinstance(bench, str) or best is None or not audit.run.equal:
        return
    work.show.say(f"{audit.cell.key}: timing it before and after folding")
    if max_slowdown is None:
        price = bench.price(best)
    else:
        audit.best, dear, price = affordable(
            best,
            try_groups=bench.attempts.of,
            price=bench.price,
            max_slowdown=max_slowdown,
        )
        for group, reason in dear.items():
            audit.left += (left(bench.attempts.groups, group, reason),)
        if audit.best is not best:
            _compared(audit, work)
            if audit.best.groups and not audit.run.equal:
                return
    known_price = price if isinstance(price, Price) else None
    audit.run = structs.replace(
        audit.run, price=known_price, price_note="" if known_price else str(price)
    )


def _bench(audited: Audited, runtime: Runtime, data: Path, work: Work) -> Bench | str:
    """Return the tools that run a cell's artifacts here, or why there are none."""
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
    if isinstance(before, str):
        return before
    return Bench(attempts, runner, before)


def _compared(audited: Audited, work: Work) -> Mapping[Group, str]:
    """Compare outputs before and after folding.

    Returns the groups that change them, each folded alone, with the reason to leave
    them. It returns all groups if only all of them together change the outputs.
    """
    bench = audited.bench
    if isinstance(bench, str) or audited.best is None or not audited.groups:
        reason = bench if isinstance(bench, str) else NOTHING_FOLDED
        audited.run = unknown_run(reason)
        return {}
    work.show.say(f"{audited.cell.key}: comparing outputs before and after folding")
    equality = bench.equal(audited.best)
    details = dict[Group, str]()
    if equality.equal is False:
        for group in audited.groups:
            equality_alone = bench.equal(bench.attempts.of([group]))
            if equality_alone.equal is False:
                details[group] = equality_alone.equal_note
    reason = f"its outputs differ on {audited.cell.key.target}"
    if equality.equal is False and not details:
        together = "only together with the other groups"
        details = dict.fromkeys(audited.groups, together)
        reason = f"{reason}, {together}"
    for group, detail in details.items():
        work.show.say(
            f"{audited.cell.key}: {group[0]} and {len(group) - 1} more have other outputs"
            f" after merging: {detail}"
        )
    audited.run = Run(
        equal=equality.equal,
        equal_note=equality.equal_note,
        price=None,
        price_note="equal outputs are not proved",
    )
    return dict.fromkeys(details, reason)


def model_of(audits: Sequence[Audited], cells: Sequence[FoldCell]) -> FoldModel:
    """Return the counts of a model, from its first cell whose program could be read."""
    cell = next(
        (audit for audit in audits if audit.attempts is not None), audits[0]
    ).cell
    folded = list[int]()
    for row in cells:
        after = row.executables.after
        is_right = row.model == cell.key.model and row.equal is not False
        if is_right and after is not None:
            folded.append(after)
    return FoldModel(
        model=cell.key.model,
        regions=cell.value("dispatch_regions") if cell.measured else None,
        today=cell.value("executables") if cell.measured else None,
        folded=min(folded, default=None),
    )


def fold_cell(audited: Audited, out: Path) -> FoldCell:
    """Return the audit of one cell as `fold.json` has it.

    Its folded program goes to the output directory.
    """
    cell = audited.cell
    run = audited.run
    command = ""
    module = ""
    folded: list[FoldedFamily] = []
    attempts = audited.attempts
    best = audited.best
    if attempts is not None and best is not None and audited.groups:
        for group in best.folded:
            kind = kind_of(attempts.groups, group.members) or FOLD_KINDS[-1]
            folded.append(FoldedFamily(kind, group.members, group.operands))
        module = f"{FOLDER}/{cell.key.model}.{cell.key.target}.mlir"
        make_directory(out / FOLDER)
        shutil.copyfile(attempts.program(best), out / module)
        shown_model = structs.replace(best.planned.model, shown=module)
        command = structs.replace(best.planned, model=shown_model).command()
    return FoldCell(
        model=cell.key.model,
        target=cell.key.target,
        state=_state(audited),
        executables=_both(audited, "executables"),
        artifact_bytes=_both(audited, "artifact_bytes"),
        equal=run.equal,
        folded=tuple(folded),
        left=audited.left,
        resumed_bytes=attempts.of(()).artifact_bytes if attempts is not None else None,
        equal_note=run.equal_note,
        price=run.price,
        price_note=run.price_note,
        command=command,
        module=module,
        note=audited.failure,
    )


def _state(audited: Audited) -> str:
    """Return the state of a cell, in the words of `fold.json`."""
    if audited.cell.status == "unsupported":
        return "unsupported"
    if audited.best is None or not audited.best.cell.measured:
        return FAILED
    if audited.groups:
        return "folded"
    return "nothing-to-fold"


def _both(audited: Audited, metric: str) -> BeforeAfter:
    """Return a metric before and after; without a fold both are the same."""
    if audited.cell.measured:
        before = audited.cell.value(metric)
    else:
        before = None
    if audited.best is None:
        return BeforeAfter(before, None)
    if not audited.groups:
        return BeforeAfter(before, before)
    return BeforeAfter(before, audited.best.cell.value(metric))
