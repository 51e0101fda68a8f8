"""From planned cells and a toolchain to a snapshot, through cache, compiles and readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from bot.compiler.cell_cache import CellCache, TextStore, cell_key
from bot.compiler.compiler import Compiler, Job, Result, Session
from bot.compiler.iree import toolchain_of
from bot.compiler.ptxas import Assembler, installed
from bot.compiler.schedule import Task, Watcher, run_all
from bot.compiler.toolchain import Toolchain
from bot.core.planned import COMMON_FLAGS, LIFTED_LIMIT_FLAG, SIDES, Model, PlannedCell, Target
from bot.core.snapshot import Cell, CellKey, Snapshot, SourceInfo
from bot.show.filters import plural
from bot.study.cell import cell_of, hindered_cell
from bot.system.files import temporary_directory
from bot.system.processes import Cancel, Meter


@dataclass(frozen=True, slots=True)
class SidePlan:
    """One side, ready to be measured.

    Attributes:
        label: `base` or `head`.
        cells: what this run measures: all cells of the models on the targets, or the shard's part of them.
        only: model of a suite → the one target that it is planned for.
        flags: what all cells have, those of suites as well; None where there is no suite: then what the first one has.
    """

    label: str
    compiler: Compiler
    cells: tuple[PlannedCell, ...]
    source: SourceInfo
    models: tuple[Model, ...] = ()
    targets: tuple[Target, ...] = ()
    only: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] | None = None

    @property
    def toolchain(self) -> Toolchain:
        """What only `iree-compile` can be asked for; raises UsageError where the compiler is another."""
        return toolchain_of(self.compiler)


class Progress(Watcher, Protocol):
    """What long work reports to."""

    def plan(self, cells: int, cached: int, cost: float, about: str = "", expected: str = "", /) -> None:
        """How much there is to do, of what, and how long that may take."""

    def measured(self, side: str, cell: Cell, cost: float) -> None:
        """A cell is done."""

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


_MS_OF_COST = 0.027
"""CPU time of a cell's cost, over the quick suite with IREE 3.11.0 and with 3.13.0."""
_FEW_SHARE = 20
"""Cached compiles tell the time of so many times their cost at most."""
_LONG_SECONDS = 100


def _labelled(cell: Cell, planned: PlannedCell) -> Cell:
    """A cached cell under the names of this run; what was traced of it belongs to another comparison.

    But for a compiler that leaves its stages itself, in each compile.
    """
    command = planned.command(lifted=LIFTED_LIMIT_FLAG in cell.command)
    return replace(cell, key=planned.key, command=command, traces=cell.traces if planned.run else {})


Finish = Callable[[PlannedCell, Result], None]
"""Gets how the compile of a cell ended."""


class Tasks(Protocol):
    """Makes the tasks that compile these cells."""

    def __call__(self, cells: Sequence[PlannedCell], layout: int = 0) -> list[Task]:
        """One for each cell."""


class _Collector:
    """Gathers the cells of all sides; a cell that two sides share is measured once."""

    def __init__(self, plans: Sequence[SidePlan], resources: Resources) -> None:
        self._workshop, self._lock = resources, threading.Lock()
        self._assembler = Assembler(resources.cancel, resources.timeout_seconds, installed())
        self.cells: dict[str, dict[CellKey, Cell]] = {plan.label: {} for plan in plans}
        self._timed: list[tuple[float, int]] = []
        self._wanted: dict[str, list[tuple[str, PlannedCell]]] = {}
        self._plans = {plan.label: plan for plan in plans}
        for plan in plans:
            for cell in plan.cells:
                self._admit(plan, cell)

    def _admit(self, plan: SidePlan, planned: PlannedCell) -> None:
        if planned.hindered:
            self.cells[plan.label][planned.key] = hindered_cell(planned)
            return
        key = cell_key(plan.compiler.info.digest, planned)
        if key not in self._wanted and (known := self._workshop.cache.load(key)) is not None:
            self.cells[plan.label][planned.key] = _labelled(known, planned)
            if cpu_ms := known.value("compile_cpu_ms"):
                self._timed.append((planned.cost, cpu_ms))
        else:
            self._wanted.setdefault(key, []).append((plan.label, planned))

    def missing(self, label: str) -> list[PlannedCell]:
        """What this side is the first to want."""
        return [planned for ((first, planned), *_) in self._wanted.values() if first == label]

    def announce(self) -> None:
        missing = [wanted[0][1] for wanted in self._wanted.values()]
        known = (cell for cells in self.cells.values() for cell in cells.values())
        cached = sum(bool(cell.command) for cell in known)
        waiting, cost = sum(len(wanted) for wanted in self._wanted.values()), sum(cell.cost for cell in missing)
        keys = {key for cells in self.cells.values() for key, cell in cells.items() if cell.command}
        keys |= {planned.key for wanted in self._wanted.values() for _, planned in wanted}
        labels = list(self._plans)
        sides = "sides" if set(labels) <= set(SIDES) else "variants"
        about = f" ({plural(len(keys), 'build')} on {len(labels)} {sides})" if len(labels) > 1 else ""
        self._workshop.progress.plan(cached + waiting, cached, cost, about, self._expected(cost) if missing else "")

    def _expected(self, cost: float) -> str:
        """How long the compiles of this cost may take, and from where that is known."""
        few = sum(known for known, _ in self._timed) * _FEW_SHARE < cost
        rate = _MS_OF_COST if few else sum(ms for _, ms in self._timed) / sum(known for known, _ in self._timed)
        seconds = cost * rate / 1000 / self._workshop.jobs
        time = f"{seconds:.0f} s" if seconds < _LONG_SECONDS else f"{seconds / 60:.0f} min"
        known = "such compiles took elsewhere" if few else f"{plural(len(self._timed), 'cached compile')} took"
        threads = plural(self._workshop.jobs, "thread")
        return f"; the others may take {time} on {threads}, by the models' sizes and what {known}"

    def finish(self, label: str, planned: PlannedCell, result: Result) -> None:
        """Measure, keep, and hand out one finished compile."""
        cell = cell_of(planned, result, self._workshop.texts, self._assembler)
        key = cell_key(self._plans[label].compiler.info.digest, planned)
        self._workshop.cache.store(key, cell)
        for other, same in self._wanted[key]:
            self.cells[other][same.key] = _labelled(cell, same)
            self._workshop.progress.measured(other, cell, same.cost if other == label else 0.0)


@contextmanager
def open_side(plan: SidePlan, resources: Resources, scratch: Path, meter: Meter, finish: Finish) -> Iterator[Tasks]:
    """What compiles cells of one side by their printed commands, at a layout of memory, as tasks for `run_all`.

    `finish` gets each result, in the thread that made it; what the compiler needs beside it ends with the context.
    """
    session = Session(plan.label, scratch, resources.timeout_seconds, resources.cancel, meter)
    with plan.compiler.at_work(session) as at_work:

        def compile_cell(cell: PlannedCell, layout: int) -> None:
            finish(cell, at_work.compile(Job(cell, layout)))

        def tasks(cells: Sequence[PlannedCell], layout: int = 0) -> list[Task]:
            return [Task(cell.cost, f"{plan.label} {cell.key}", partial(compile_cell, cell, layout)) for cell in cells]

        yield tasks


def measure_sides(plans: Sequence[SidePlan], resources: Resources) -> dict[str, Snapshot]:
    """Measure all sides together, so that no core waits for the end of one; label → snapshot."""
    collector = _Collector(plans, resources)
    collector.announce()
    meter = Meter()
    with temporary_directory("run-") as scratch, ExitStack() as stack:
        tasks = []
        for plan in plans:
            if missing := collector.missing(plan.label):
                finish = partial(collector.finish, plan.label)
                tasks += stack.enter_context(open_side(plan, resources, scratch, meter, finish))(missing)
        run_all(tasks, resources.jobs, resources.cancel.set, resources.progress)
    resources.progress.spent(meter.cpu_ms, resources.jobs)
    return {plan.label: _snapshot(plan, collector.cells[plan.label]) for plan in plans}


def _snapshot(plan: SidePlan, cells: dict[CellKey, Cell]) -> Snapshot:
    return Snapshot(
        compiler=plan.compiler.info,
        source=plan.source,
        cells=tuple(cells[key] for key in sorted(cells)),
        flags=plan.flags if plan.flags is not None else plan.cells[0].flags if plan.cells else COMMON_FLAGS,
        targets={target.name: target.backend for target in plan.targets},
        backends=plan.compiler.backends,
        models={model.name: model.digest for model in plan.models if model.digest},
        only=plan.only,
    )
