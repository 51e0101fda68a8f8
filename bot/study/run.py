"""Planned cells to snapshots, through cache, compiles and readers.

And cells compiled again, to see whether that holds.

A few releases give one of two artifacts for the same command, depending on
address-space randomisation. What was ever seen to do so, by this run, the cache, a
stored baseline or `repeats` of the configuration, is compiled TIMES times on every side
that this run measures, with its memory at other addresses each time. All that it gives
are outcomes of the cell, of which the smallest artifact leads, and the rules look at
the range of them.

The other cells that alarm, and then those that changed, are compiled again by their
printed command, to find out. That may cost a tenth of the work of compiling all cells
once, counted as in `bot.core.work` and never timed (FEW cells may always be repeated):
first what is newly broken or fails, then the worst. What was not repeated says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial, reduce
from typing import Protocol

from msgspec import structs

from bot.compiler.cell_cache import CellCache, TextStore, cell_key
from bot.compiler.compiler import Compile, Compiler, Result, Session
from bot.compiler.iree import toolchain_of
from bot.compiler.ptxas import Assembler, installed
from bot.compiler.schedule import Task, Watcher, run_all
from bot.compiler.toolchain import Toolchain
from bot.config.configuration import Config
from bot.core.delta import CellDelta, diff, distinct
from bot.core.planned import (
    COMMON_FLAGS,
    LIFTED_LIMIT_FLAG,
    SIDES,
    Model,
    PlannedCell,
    Target,
)
from bot.core.policy import Finding, judge
from bot.core.record import INT_LIMIT
from bot.core.snapshot import (
    STATUSES,
    Cell,
    CellKey,
    CompileOutcome,
    Failure,
    Snapshot,
    SourceInfo,
)
from bot.core.work import compile_work
from bot.show.filters import plural
from bot.study.cell import cell_of
from bot.system.files import temporary_directory
from bot.system.memory_layout import LAYOUTS
from bot.system.processes import Cancel, Meter

TIMES = LAYOUTS  # How often a cell that does not repeat itself is compiled
COMPILES_PER_RECHECK_WORK = (
    10  # rechecks may cost a tenth of the work of compiling all cells once
)
FEW = 4  # so many cells may always be compiled again, however small the suite


@dataclass(frozen=True, slots=True)
class SidePlan:
    """One side, ready to be measured."""

    label: str  # `base` or `head`
    compiler: Compiler
    # what this run measures: all cells of the models on the targets, or the shard's
    # part of them
    cells: tuple[PlannedCell, ...]
    source: SourceInfo
    models: tuple[Model, ...] = ()
    targets: tuple[Target, ...] = ()
    is_temporary: bool = (
        False  # True where the files are of a commit, and are removed after the run
    )

    @property
    def toolchain(self) -> Toolchain:
        """What only `iree-compile` can be asked for.

        Raises UsageError where the compiler is another.
        """
        return toolchain_of(self.compiler)


class Progress(Watcher, Protocol):
    """What long work reports to."""

    def plan(self, cells: int, cached: int, cost: float, about: str = "", /) -> None:
        """How much there is to do, and of what."""

    def stage(self, about: str, tasks: int, noun: str, /) -> None:
        """Work of another kind begins, after all cells are measured: so many tasks, each a `noun`."""

    def measured(self, side: str, cell: Cell, cost: float) -> None:
        """Tell that a cell is measured."""

    def spent(self, cpu_ms: Mapping[str, int], jobs: int) -> None:
        """All is measured: what compiling cost, by model, on how many threads."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What measuring needs beside the plans."""

    cache: CellCache
    jobs: int
    timeout_seconds: float
    cancel: Cancel
    progress: Progress
    texts: TextStore | None = None

    @property
    def assembler(self) -> Assembler:
        """What makes machine code of PTX text."""
        return Assembler(self.cancel, self.timeout_seconds, installed())

    def compile(
        self,
        plans: Iterable[tuple[SidePlan, Sequence[tuple[PlannedCell, int]]]],
        finish: Callable[[str, PlannedCell, int, Result], None],
    ) -> Meter:
        """Compile cells of sides by their printed commands, each at a layout of memory.

        What that cost.

        `finish`: gets the side's label, the cell, the layout and how the compile ended,
        in the thread that compiled it.
        """
        meter = Meter()

        def compile_cell(
            label: str, compiled: Compile, cell: PlannedCell, layout: int
        ) -> None:
            finish(label, cell, layout, _result_of(compiled, cell, layout))

        with temporary_directory("run-") as scratch, ExitStack() as stack:
            tasks = []
            for plan, cells in plans:
                if cells:
                    session = Session(
                        scratch=scratch,
                        timeout_seconds=self.timeout_seconds,
                        cancel=self.cancel,
                        meter=meter,
                    )
                    start = partial(
                        compile_cell,
                        plan.label,
                        stack.enter_context(plan.compiler.at_work(session)),
                    )
                    tasks += [
                        Task(
                            cell.cost,
                            f"{plan.label} {cell.key}",
                            partial(start, cell, layout),
                        )
                        for cell, layout in cells
                    ]
            run_all(
                tasks, jobs=self.jobs, interrupt=self.cancel.set, watcher=self.progress
            )
        return meter


def _result_of(compiled: Compile, cell: PlannedCell, layout: int) -> Result:
    """Compile one cell.

    Files that cannot be read as the compiler left them are a failure of this cell
    alone.
    """
    try:
        return compiled(cell, layout)
    except (
        FileNotFoundError,
        NotADirectoryError,
        IsADirectoryError,
        PermissionError,
    ) as error:
        return Failure(
            "read", f"the compiler's output cannot be read: {error.strerror}"
        )
    except (RecursionError, UnicodeError) as error:
        return Failure(
            "read", f"the compiler's output cannot be read: {type(error).__name__}"
        )


def _labelled(cell: Cell, planned: PlannedCell) -> Cell:
    """A cached cell under the names of this run.

    Its traces and ladders belong to another comparison.

    But for a compiler that leaves its stages itself, in each compile.
    """
    command = planned.command(lifted=LIFTED_LIMIT_FLAG in cell.command)
    inputs = planned.known_inputs
    traces = cell.traces if planned.run else {}
    return structs.replace(
        cell, key=planned.key, command=command, inputs=inputs, traces=traces, ladders={}
    )


def _waiting_key(label: str, compiler_digest: str, planned: PlannedCell) -> str:
    """Return what sides share a compile by; a build whose files are not all known shares none."""
    return cell_key(compiler_digest, planned) or f"{label} {planned.key}"


def measure_sides(
    plans: Sequence[SidePlan], resources: Resources
) -> dict[str, Snapshot]:
    """Measure all sides together, so that no core waits for the end of one; label → snapshot.

    A cell that two sides share is compiled once.
    """
    cache, assembler, progress = (
        resources.cache,
        resources.assembler,
        resources.progress,
    )
    cells: dict[str, dict[CellKey, Cell]] = {plan.label: {} for plan in plans}
    waiters = dict[
        str, list[tuple[SidePlan, PlannedCell]]
    ]()  # key in the cache → who waits for it
    for plan in plans:
        info, cells_of_side = plan.compiler.info, cells[plan.label]
        for planned in plan.cells:
            if reason := planned.target.unsupported:  # known before any compile
                cells_of_side[planned.key] = Cell(
                    planned.key, "unsupported", failure=Failure("target", reason)
                )
                continue
            key = _waiting_key(plan.label, info.digest, planned)
            stored = cell_key(info.digest, planned)
            if (
                key not in waiters
                and (cached_cell := cache.load(stored, info.metrics)) is not None
            ):
                cells_of_side[planned.key] = _labelled(cached_cell, planned)
            else:
                waiters.setdefault(key, []).append((plan, planned))
    first = [waiting_builds[0] for waiting_builds in waiters.values()]
    cost = sum(planned.cost for _, planned in first)
    cached = [
        key
        for cells_of_side in cells.values()
        for key, cell in cells_of_side.items()
        if cell.command
    ]
    waiting = [
        planned.key
        for waiting_builds in waiters.values()
        for _, planned in waiting_builds
    ]
    sides = "sides" if set(cells) <= set(SIDES) else "variants"
    about = (
        f" ({plural(len({*cached, *waiting}), 'build')} on {len(cells)} {sides})"
        if len(cells) > 1
        else ""
    )
    progress.plan(len(cached) + len(waiting), len(cached), cost, about)
    digests = {plan.label: plan.compiler.info.digest for plan in plans}

    def finish(label: str, planned: PlannedCell, _layout: int, result: Result) -> None:
        """Measure, keep, and hand out one finished compile."""
        cell = cell_of(
            planned, result=result, texts=resources.texts, assembler=assembler
        )
        cache.store(cell_key(digests[label], planned), cell)
        for other_plan, same in waiters[_waiting_key(label, digests[label], planned)]:
            cells[other_plan.label][same.key] = _labelled(cell, same)
            progress.measured(
                other_plan.label, cell, same.cost if other_plan.label == label else 0.0
            )

    meter = resources.compile(
        [
            (
                plan,
                [
                    (planned_cell, 0)
                    for other_plan, planned_cell in first
                    if other_plan is plan
                ],
            )
            for plan in plans
        ],
        finish,
    )
    progress.spent(meter.cpu_ms, resources.jobs)
    return {
        plan.label: Snapshot(
            compiler=plan.compiler.info,
            source=plan.source,
            cells=tuple(cell for _, cell in sorted(cells[plan.label].items())),
            flags=plan.cells[0].flags if plan.cells else COMMON_FLAGS,
            targets={target.name: target.backend for target in plan.targets},
            models={model.name: model.digest for model in plan.models},
        )
        for plan in plans
    }


Sides = Mapping[str, Snapshot]


def doubtful(base: Snapshot, head: Snapshot, rules: Config) -> tuple[CellKey, ...]:
    """The cells to be compiled again, most urgent first: those that alarm, then the others that changed."""
    deltas = diff(base, head)
    changed = [delta for delta in deltas if delta.state == "changed"]
    changed.sort(
        key=lambda delta: (-abs(delta.metrics["artifact_bytes"].change or 0), delta.key)
    )
    alarms = sorted(
        _alarms(deltas, rules), key=lambda finding: finding.metric is not None
    )  # states first
    keys = [*(finding.key for finding in alarms), *(delta.key for delta in changed)]
    measured = {cell.key for cell in head.cells}
    return tuple(key for key in dict.fromkeys(keys) if key in measured)


def _alarms(deltas: Sequence[CellDelta], rules: Config) -> Sequence[Finding]:
    return judge(deltas, rules.thresholds, rules.states).news


def recheck(
    plans: Sequence[SidePlan], sides: Sides, rules: Config, resources: Resources
) -> dict[str, Snapshot]:
    """The sides, the planned ones with their doubtful cells compiled again (see the module's text)."""
    result = repeat_unsteady(plans, sides=sides, rules=rules, resources=resources)
    if not {"base", "head"} <= result.keys():
        return result
    budget, unsteady = _Budget(plans, result), _unsteady(result, rules)
    for times in (1, 2):
        keys = doubtful(result["base"], result["head"], rules)
        if times > 1:
            alarming = {
                finding.key
                for finding in _alarms(diff(result["base"], result["head"]), rules)
            }
            keys = tuple(key for key in keys if key in alarming)
        if chosen := budget.admit((key for key in keys if key not in unsteady), times):
            result = _repeated(
                plans,
                sides=result,
                keys=chosen,
                layouts=range(times, times + 1),
                resources=resources,
            )
    return repeat_unsteady(plans, sides=result, rules=rules, resources=resources)


def repeat_unsteady(
    plans: Sequence[SidePlan], sides: Sides, rules: Config, resources: Resources
) -> dict[str, Snapshot]:
    """The sides, of any labels, with each cell that does not repeat itself compiled TIMES times where it is planned."""
    return _repeated(
        plans,
        sides=sides,
        keys=_unsteady(sides, rules),
        layouts=range(1, TIMES),
        resources=resources,
    )


def _unsteady(sides: Sides, rules: Config) -> frozenset[CellKey]:
    """What was ever seen not to repeat itself, on any side; but for what timed out."""
    all_cells = [cell for side in sides.values() for cell in side.cells]
    keys = {cell.key for cell in all_cells if cell.others}
    for key in {cell.key for cell in all_cells} - keys:
        if any(
            fnmatchcase(key.model, model) and fnmatchcase(key.target, target)
            for model, target in rules.repeats
        ):
            keys.add(key)
    if {"base", "head"} <= sides.keys():
        keys |= {
            delta.key for delta in diff(sides["base"], sides["head"]) if delta.unstable
        }
    return frozenset(
        keys - {cell.key for cell in all_cells if cell.status == "timeout"}
    )


class _Budget:
    """What may still be compiled again, in the work that `bot.core.work` counts."""

    def __init__(self, plans: Sequence[SidePlan], sides: Sides) -> None:
        # of each cell what one compile of all its sides costs, and how often the one
        # that is known least was compiled
        self._cells: dict[CellKey, tuple[int, int]] = {}
        for _, first_cell in _planned(
            plans, sides, {cell.key for side in sides.values() for cell in side.cells}
        ):
            other_work, compiles = self._cells.get(
                first_cell.key, (0, first_cell.compiles)
            )
            own_work = compile_work(first_cell)
            if first_cell.status == "over-stack-limit":
                own_work *= 2  # the stack gate refused the first compile
            self._cells[first_cell.key] = (
                other_work + own_work,
                min(compiles, first_cell.compiles),
            )
        whole_work = sum(work for work, _ in self._cells.values())
        self._left, self._few = whole_work // COMPILES_PER_RECHECK_WORK, FEW

    def admit(self, keys: Iterable[CellKey], times: int) -> frozenset[CellKey]:
        """The cells that can be repeated for what is left.

        What an earlier run repeated is not compiled again, but counts all the same: the
        same comparison always rests on the same compiles.

        `times`: how often a cell was compiled before it is repeated.
        """
        chosen = set()
        for key in filter(self._cells.__contains__, keys):
            work, compiles = self._cells[key]
            if work <= self._left or self._few > 0:
                self._left, self._few = self._left - work, self._few - 1
                if compiles <= times:
                    chosen.add(key)
        return frozenset(chosen)


def _planned(
    plans: Sequence[SidePlan], sides: Sides, keys: Iterable[CellKey]
) -> Iterator[tuple[PlannedCell, Cell]]:
    wanted_keys = frozenset(keys)
    for plan in plans:
        cells_of_side = {
            cell.key: cell
            for cell in sides[plan.label].cells
            if cell.key in wanted_keys
        }
        yield from (
            (cell, cells_of_side[cell.key])
            for cell in plan.cells
            if cell.key in cells_of_side and not cell.target.unsupported
        )


def _repeated(
    plans: Sequence[SidePlan],
    sides: Sides,
    keys: frozenset[CellKey],
    layouts: range,
    resources: Resources,
) -> dict[str, Snapshot]:
    """Compile these cells at each of the layouts that they were not compiled at, and put together what each gave.

    A cell that was compiled three times has had the layouts 0 to 2.
    """
    pairs = {plan.label: [*_planned([plan], sides, keys)] for plan in plans}
    wanted_cells = {
        label: [
            (cell, layout)
            for cell, first_cell in cells
            for layout in layouts
            if first_cell.compiles <= layout
        ]
        for label, cells in pairs.items()
    }
    result, runs = dict(sides), dict[tuple[str, CellKey, int], Cell]()
    if not any(wanted_cells.values()):
        return result
    assembler = resources.assembler

    def finish(label: str, planned: PlannedCell, layout: int, result: Result) -> None:
        runs[label, planned.key, layout] = cell_of(
            planned, result=result, texts=resources.texts, assembler=assembler
        )

    resources.progress.stage(
        "compiling again", sum(map(len, wanted_cells.values())), "compile"
    )
    resources.compile([(plan, wanted_cells[plan.label]) for plan in plans], finish)
    for plan in plans:
        merged = dict[CellKey, Cell]()
        for cell, first_cell in pairs[plan.label]:
            new_outcomes = [
                runs[plan.label, cell.key, layout]
                for layout in layouts
                if (plan.label, cell.key, layout) in runs
            ]
            merged[cell.key] = reduce(_merged, new_outcomes, first_cell)
            if new_outcomes:
                resources.cache.store(
                    cell_key(plan.compiler.info.digest, cell), merged[cell.key]
                )
        side = result[plan.label]
        result[plan.label] = structs.replace(
            side, cells=tuple(merged.get(cell.key, cell) for cell in side.cells)
        )
    return result


def _merged(earlier_cell: Cell, run: Cell) -> Cell:
    """The cell with all that its command gave, the smallest artifact first.

    A run that the machine stopped says nothing of the compiler.
    """
    if run.status == "timeout":
        return earlier_cell
    main = min(earlier_cell, run, key=_rank)
    outcomes = distinct(
        [main.outcome, earlier_cell.outcome, *earlier_cell.others, run.outcome]
    )
    return structs.replace(
        main,
        compiles=earlier_cell.compiles + 1,
        others=tuple(sorted(outcomes[1:], key=_rank)),
    )


def _rank(outcome: Cell | CompileOutcome) -> tuple[int, int, str]:
    """What compiles first, then the smallest artifact: in whatever order they came, the same one leads."""
    size = outcome.metrics.get("artifact_bytes")
    return (
        STATUSES.index(outcome.status),
        INT_LIMIT if size is None else size,
        outcome.artifact_digest or "",
    )
