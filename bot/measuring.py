"""The pipeline's second page: from planned cells and a toolchain to a snapshot, through cache, compiles and readers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from bot.cells import cell_of
from bot.compiler.bindings import Bindings
from bot.compiler.cache import CellCache, TextStore, cell_key
from bot.compiler.compiling import Compiled, Kit
from bot.compiler.files import temporary_directory
from bot.compiler.importing import Importer
from bot.compiler.probe import ask_device, known_measuring_options
from bot.compiler.runner import Cancel, Meter
from bot.compiler.schedule import Watcher, run_all
from bot.compiler.side import Finish, Side
from bot.compiler.toolchain import Toolchain
from bot.core.plan import COMMON_FLAGS, Model, PlannedCell, Target
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot, SourceInfo
from bot.errors import UsageError

IR_WORKER = Path(__file__).parent / "measure" / "ir_worker.py"
"""Run as a script, under the measured compiler's own bindings; never imported here."""


@dataclass(frozen=True, slots=True)
class SidePlan:
    """One side, ready to be measured.

    Attributes:
        label: `base` or `head`.
        cells: what this run measures: all cells of the models on the targets, or the shard's part of them.
    """

    label: str
    toolchain: Toolchain
    cells: tuple[PlannedCell, ...]
    source: SourceInfo
    models: tuple[Model, ...] = ()
    targets: tuple[Target, ...] = ()


class Progress(Watcher, Protocol):
    """What long work reports to."""

    def plan(self, cells: int, cached: int, cost: float) -> None:
        """How much there is to do."""

    def measured(self, side: str, cell: Cell, cost: float) -> None:
        """A cell is done."""

    def spent(self, cpu_ms: Mapping[str, int], jobs: int) -> None:
        """All is measured: what compiling cost, by model, on how many threads."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What measuring needs beside the plans."""

    cache: CellCache
    jobs: int
    timeout_seconds: float
    cancel: Cancel
    progress: Progress
    texts: TextStore | None = None


def _labelled(cell: Cell, planned: PlannedCell) -> Cell:
    """A cached cell under the names of this run."""
    return replace(cell, key=planned.key, command=planned.command(lifted=cell.status == "over-stack-limit"))


class _Collector:
    """Gathers the cells of all sides; a cell that two sides share is measured once."""

    def __init__(self, plans: Sequence[SidePlan], workshop: Workshop) -> None:
        self._workshop, self._lock = workshop, threading.Lock()
        self.cells: dict[str, dict[CellKey, Cell]] = {plan.label: {} for plan in plans}
        self._wanted: dict[str, list[tuple[str, PlannedCell]]] = {}
        self._toolchains = {plan.label: plan.toolchain for plan in plans}
        for plan in plans:
            for cell in plan.cells:
                self._admit(plan, cell)

    def _admit(self, plan: SidePlan, planned: PlannedCell) -> None:
        if planned.target.unsupported:
            failure = Failure("target", planned.target.unsupported)
            self.cells[plan.label][planned.key] = Cell(planned.key, "unsupported", failure=failure)
            return
        key = cell_key(plan.toolchain.info.digest, planned)
        if key not in self._wanted and (known := self._workshop.cache.load(key)) is not None:
            self.cells[plan.label][planned.key] = _labelled(known, planned)
        else:
            self._wanted.setdefault(key, []).append((plan.label, planned))

    def missing(self, label: str) -> list[PlannedCell]:
        """What this side is the first to want."""
        return [planned for ((first, planned), *_) in self._wanted.values() if first == label]

    def announce(self) -> None:
        """Tell the progress how much there is to do."""
        missing = [wanted[0][1] for wanted in self._wanted.values()]
        known = (cell for cells in self.cells.values() for cell in cells.values())
        cached = sum(cell.status != "unsupported" for cell in known)
        waiting = sum(len(wanted) for wanted in self._wanted.values())
        self._workshop.progress.plan(cached + waiting, cached, sum(cell.cost for cell in missing))

    def finish(self, label: str, planned: PlannedCell, result: Compiled | Failure) -> None:
        """Measure, keep, and hand out one finished compile."""
        key = cell_key(self._toolchains[label].info.digest, planned)
        cell = cell_of(planned, result, self._workshop.texts)
        self._workshop.cache.store(key, cell)
        with self._lock:
            for other, same in self._wanted[key]:
                self.cells[other][same.key] = _labelled(cell, same)
        for other, same in self._wanted[key]:
            self._workshop.progress.measured(other, cell, same.cost if other == label else 0.0)


@contextmanager
def open_side(plan: SidePlan, workshop: Workshop, scratch: Path, meter: Meter, finish: Finish) -> Iterator[Side]:
    """The compiles of one side; its IR reader ends with the context."""
    bindings = Bindings(IR_WORKER, plan.toolchain.bindings, plan.toolchain.no_bindings, workshop.cancel)
    options = known_measuring_options(plan.toolchain, scratch, workshop.cancel)
    try:
        kit = Kit(
            label=plan.label,
            toolchain=plan.toolchain,
            options=options,
            bindings=bindings,
            scratch=scratch,
            timeout_seconds=workshop.timeout_seconds,
            cancel=workshop.cancel,
            meter=meter,
        )
        yield Side(kit, finish, Importer(plan.toolchain, scratch, workshop.timeout_seconds, workshop.cancel))
    finally:
        bindings.close()


def scratch_directory() -> AbstractContextManager[Path]:
    """A temporary directory for a run, gone afterwards."""
    return temporary_directory("code-size-")


def measure_sides(plans: Sequence[SidePlan], workshop: Workshop) -> dict[str, Snapshot]:
    """Measure all sides together, so that no core waits for the end of one; label → snapshot."""
    collector = _Collector(plans, workshop)
    collector.announce()
    meter = Meter()
    notes: dict[str, list[str]] = {plan.label: [] for plan in plans}
    with scratch_directory() as scratch, ExitStack() as stack:
        tasks = []
        for plan in plans:
            if missing := collector.missing(plan.label):
                finish = partial(collector.finish, plan.label)
                side = stack.enter_context(open_side(plan, workshop, scratch, meter, finish))
                tasks += side.tasks(missing)
                notes[plan.label] = side.notes
        run_all(tasks, workshop.jobs, workshop.cancel.set, workshop.progress)
    workshop.progress.spent(meter.cpu_ms, workshop.jobs)
    return {plan.label: _snapshot(plan, collector.cells[plan.label], notes[plan.label]) for plan in plans}


def _snapshot(plan: SidePlan, cells: dict[CellKey, Cell], notes: Sequence[str]) -> Snapshot:
    return Snapshot(
        compiler=plan.toolchain.info,
        source=plan.source,
        cells=tuple(cells[key] for key in sorted(cells)),
        flags=plan.cells[0].flags if plan.cells else COMMON_FLAGS,
        targets={target.name: target.backend for target in plan.targets},
        backends=plan.toolchain.backends,
        models={model.name: model.digest for model in plan.models},
        notes=tuple(sorted(set(notes))),
    )


def check_flags(
    side: str, toolchain: Toolchain, cells: Sequence[PlannedCell], user_flags: Sequence[str], cancel: Cancel
) -> None:
    """Refuse, before any compile, an option for every cell that this side's compiler does not know.

    An option of a single target is not refused: its cells fail with that reason, the others go on.
    """
    if not cells:
        return
    with scratch_directory() as scratch:
        unknown = ask_device(toolchain, cells[0].flags, scratch, cancel).unknown
    if unknown is None:
        return
    mine = any(flag.partition("=")[0] == unknown for flag in user_flags)
    raise UsageError(
        f"the {side} compiler ({toolchain.info.spec}, {toolchain.info.version}) does not know the option {unknown}",
        where="flags" if mine else "every cell",
        mend="remove it, or compare releases that both know it" if mine else "compare newer releases",
    )
