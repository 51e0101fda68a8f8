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
from bot.core.findings import Finding
from bot.core.planned import (
    COMMON_FLAGS,
    LIFTED_LIMIT_FLAG,
    SIDES,
    Model,
    PlannedCell,
    Target,
)
from bot.core.policy import judge
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
# rechecks may cost a tenth of the work of compiling all cells once
COMPILES_PER_RECHECK_WORK = 10
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
    # True where the files are of a commit, and are removed after the run
    is_temporary: bool = False

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
        """Begin work of another kind, after all cells are measured.

        Args:
            about: what the work is.
            tasks: how many tasks there are.
            noun: what one task is called.
        """

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
    """Return the key by which sides share a compile.

    A build whose files are not all known shares none.
    """
    return cell_key(compiler_digest, planned) or f"{label} {planned.key}"


def measure_sides(
    plans: Sequence[SidePlan], resources: Resources
) -> dict[str, Snapshot]:
    """Measure all sides together, so that no core waits for the end of one.

    A cell that two sides share is compiled once.

    Returns:
        label → snapshot.
    """
    assembler = resources.assembler
    cells, waiters = _known_and_waiting(plans, resources.cache)
    first = [waiting_builds[0] for waiting_builds in waiters.values()]
    _announce(resources.progress, cells=cells, waiters=waiters)
    digests = {plan.label: plan.compiler.info.digest for plan in plans}

    def finish(label: str, planned: PlannedCell, _layout: int, result: Result) -> None:
        """Measure, keep, and hand out one finished compile."""
        cell = cell_of(
            planned, result=result, texts=resources.texts, assembler=assembler
        )
        resources.cache.store(cell_key(digests[label], planned), cell)
        for other_plan, same in waiters[_waiting_key(label, digests[label], planned)]:
            cells[other_plan.label][same.key] = _labelled(cell, same)
            cost = same.cost if other_plan.label == label else 0.0
            resources.progress.measured(other_plan.label, cell, cost)

    work = []
    for plan in plans:
        compiles = [(planned, 0) for owner, planned in first if owner is plan]
        work.append((plan, compiles))
    meter = resources.compile(work, finish)
    resources.progress.spent(meter.cpu_ms, resources.jobs)
    return {plan.label: _snapshot(plan, cells[plan.label]) for plan in plans}


_CellsOfSides = dict[str, dict[CellKey, Cell]]
"""Label → the cells of that side that are known."""
_Waiters = dict[str, list[tuple[SidePlan, PlannedCell]]]
"""Key in the cache → the builds that wait for its compile."""


def _known_and_waiting(
    plans: Sequence[SidePlan], cache: CellCache
) -> tuple[_CellsOfSides, _Waiters]:
    """Split the planned cells into those known before any compile, and the others."""
    cells: _CellsOfSides = {plan.label: {} for plan in plans}
    waiters: _Waiters = {}
    for plan in plans:
        info = plan.compiler.info
        for planned in plan.cells:
            if reason := planned.target.unsupported:
                cells[plan.label][planned.key] = Cell(
                    planned.key, "unsupported", failure=Failure("target", reason)
                )
                continue
            key = _waiting_key(plan.label, info.digest, planned)
            cached_cell = None
            if key not in waiters:
                stored = cell_key(info.digest, planned)
                cached_cell = cache.load(stored, info.metrics)
            if cached_cell is not None:
                cells[plan.label][planned.key] = _labelled(cached_cell, planned)
            else:
                waiters.setdefault(key, []).append((plan, planned))
    return cells, waiters


def _announce(progress: Progress, cells: _CellsOfSides, waiters: _Waiters) -> None:
    """Tell the progress how much there is to compile, and how much the cache has."""
    cached = list[CellKey]()
    for cells_of_side in cells.values():
        cached += [key for key, cell in cells_of_side.items() if cell.command]
    waiting = list[CellKey]()
    for waiting_builds in waiters.values():
        waiting += [planned.key for _, planned in waiting_builds]
    cost = sum(waiting_builds[0][1].cost for waiting_builds in waiters.values())
    about = ""
    if len(cells) > 1:
        sides = "sides" if set(cells) <= set(SIDES) else "variants"
        builds = plural(len({*cached, *waiting}), "build")
        about = f" ({builds} on {len(cells)} {sides})"
    progress.plan(len(cached) + len(waiting), len(cached), cost, about)


def _snapshot(plan: SidePlan, cells: Mapping[CellKey, Cell]) -> Snapshot:
    """Return the snapshot of a side whose cells are all measured."""
    return Snapshot(
        compiler=plan.compiler.info,
        source=plan.source,
        cells=tuple(cell for _, cell in sorted(cells.items())),
        flags=plan.cells[0].flags if plan.cells else COMMON_FLAGS,
        targets={target.name: target.backend for target in plan.targets},
        models={model.name: model.digest for model in plan.models},
    )


Sides = Mapping[str, Snapshot]


def doubtful(base: Snapshot, head: Snapshot, rules: Config) -> tuple[CellKey, ...]:
    """Return the cells to be compiled again, most urgent first.

    Those that alarm come first, then the others that changed.
    """
    deltas = diff(base, head)
    changed = [delta for delta in deltas if delta.state == "changed"]
    changed.sort(
        key=lambda delta: (-abs(delta.metrics["artifact_bytes"].change or 0), delta.key)
    )
    # states first
    alarms = sorted(
        _alarms(deltas, rules), key=lambda finding: finding.metric is not None
    )
    keys = [*(finding.key for finding in alarms), *(delta.key for delta in changed)]
    measured = {cell.key for cell in head.cells}
    return tuple(key for key in dict.fromkeys(keys) if key in measured)


def _alarms(deltas: Sequence[CellDelta], rules: Config) -> Sequence[Finding]:
    return judge(deltas, rules.thresholds, rules.states).news


def recheck(
    plans: Sequence[SidePlan], sides: Sides, rules: Config, resources: Resources
) -> dict[str, Snapshot]:
    """Return the sides, the planned ones with their doubtful cells compiled again.

    The module's text says which cells are doubtful, and how often they are compiled.
    """
    result = repeat_unsteady(plans, sides=sides, rules=rules, resources=resources)
    if not {"base", "head"} <= result.keys():
        return result
    budget = _Budget(plans, result)
    unsteady = _unsteady(result, rules)
    for times in (1, 2):
        keys = doubtful(result["base"], result["head"], rules)
        if times > 1:
            deltas = diff(result["base"], result["head"])
            alarming = {finding.key for finding in _alarms(deltas, rules)}
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
    """Return the sides with each non-deterministic cell compiled TIMES times.

    A cell is compiled on the sides where it is planned. The sides may have any labels.
    """
    return _repeated(
        plans,
        sides=sides,
        keys=_unsteady(sides, rules),
        layouts=range(1, TIMES),
        resources=resources,
    )


def _unsteady(sides: Sides, rules: Config) -> frozenset[CellKey]:
    """Return the cells ever seen to give several results on any side.

    Cells that timed out are not among them.
    """
    all_cells = [cell for side in sides.values() for cell in side.cells]
    keys = {cell.key for cell in all_cells if cell.others}
    for key in {cell.key for cell in all_cells} - keys:
        if _is_configured_to_repeat(key, rules):
            keys.add(key)
    if {"base", "head"} <= sides.keys():
        deltas = diff(sides["base"], sides["head"])
        keys |= {delta.key for delta in deltas if delta.unstable}
    timed_out = {cell.key for cell in all_cells if cell.status == "timeout"}
    return frozenset(keys - timed_out)


def _is_configured_to_repeat(key: CellKey, rules: Config) -> bool:
    """Return whether `repeats` of the configuration names a cell."""
    return any(
        fnmatchcase(key.model, model) and fnmatchcase(key.target, target)
        for model, target in rules.repeats
    )


class _Budget:
    """What may still be compiled again, in the work that `bot.core.work` counts."""

    def __init__(self, plans: Sequence[SidePlan], sides: Sides) -> None:
        # of each cell what one compile of all its sides costs, and how often the one
        # that is known least was compiled
        self._cells: dict[CellKey, tuple[int, int]] = {}
        all_keys = {cell.key for side in sides.values() for cell in side.cells}
        for _, first_cell in _planned(plans, sides, all_keys):
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
        self._left = whole_work // COMPILES_PER_RECHECK_WORK
        self._few = FEW

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
                self._left -= work
                self._few -= 1
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
        for planned in plan.cells:
            if planned.key in cells_of_side and not planned.target.unsupported:
                yield planned, cells_of_side[planned.key]


def _repeated(
    plans: Sequence[SidePlan],
    sides: Sides,
    keys: frozenset[CellKey],
    layouts: range,
    resources: Resources,
) -> dict[str, Snapshot]:
    """Compile cells at the layouts that they lack, and merge what each compile gave.

    A cell that was compiled three times has had the layouts 0 to 2.
    """
    pairs = {plan.label: [*_planned([plan], sides, keys)] for plan in plans}
    wanted_cells = {
        label: _missing_compiles(cells, layouts) for label, cells in pairs.items()
    }
    result = dict(sides)
    runs = dict[tuple[str, CellKey, int], Cell]()
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
            new_outcomes = list[Cell]()
            for layout in layouts:
                run = runs.get((plan.label, cell.key, layout))
                if run is not None:
                    new_outcomes.append(run)
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


def _missing_compiles(
    cells: Sequence[tuple[PlannedCell, Cell]], layouts: range
) -> list[tuple[PlannedCell, int]]:
    """Return each cell with each layout at which it was not compiled yet."""
    missing = []
    for planned, cell in cells:
        missing += [(planned, layout) for layout in layouts if cell.compiles <= layout]
    return missing


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
    """Return the sort key of an outcome: what compiles first, then the smallest artifact.

    The same outcome leads in whatever order they came.
    """
    size = outcome.metrics.get("artifact_bytes")
    return (
        STATUSES.index(outcome.status),
        INT_LIMIT if size is None else size,
        outcome.artifact_digest or "",
    )
