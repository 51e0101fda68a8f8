"""From planned cells and a toolchain to a snapshot, through cache, compiles and readers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from bot.compiler.caches.cell_cache import CellCache, TextStore, cell_key
from bot.compiler.compiling import Compiled, Kit
from bot.compiler.schedule import Watcher, run_all
from bot.compiler.sharing.front_halves import front_flags, may_share
from bot.compiler.sharing.proof_book import ProofBook
from bot.compiler.side import Finish, Side
from bot.compiler.tools.bindings import Bindings
from bot.compiler.tools.importing import Importer
from bot.compiler.tools.probe import ask_device, known_measuring_options
from bot.compiler.tools.ptxas import Assembler, installed
from bot.compiler.tools.toolchain import Toolchain
from bot.core.values.planned import COMMON_FLAGS, LIFTED_LIMIT_FLAG, Model, PlannedCell, Target
from bot.core.values.snapshot import Cell, CellKey, Failure, Snapshot, SourceInfo
from bot.errors import UsageError
from bot.measurement.cell import cell_of, hindered_cell
from bot.system.files import temporary_directory
from bot.system.processes import Cancel, Meter

IR_WORKER = Path(__file__).parents[1] / "readers" / "ir_worker" / "ir_worker.py"
"""Run as a script, under the measured compiler's own bindings; never imported here."""


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
    toolchain: Toolchain
    cells: tuple[PlannedCell, ...]
    source: SourceInfo
    models: tuple[Model, ...] = ()
    targets: tuple[Target, ...] = ()
    only: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] | None = None


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
    books: dict[str, ProofBook] = field(default_factory=dict)


def _labelled(cell: Cell, planned: PlannedCell) -> Cell:
    """A cached cell under the names of this run; what was traced of it belongs to another comparison."""
    command = planned.command(lifted=LIFTED_LIMIT_FLAG in cell.command)
    return replace(cell, key=planned.key, command=command, traces={})


def book_of(plan: SidePlan, workshop: Workshop) -> ProofBook:
    """What is known of sharing with this side's compiler."""
    digest, cache = plan.toolchain.info.digest, workshop.cache
    return workshop.books.setdefault(digest, ProofBook(cache.root, digest, cache.keeps))


def _relatives(plan: SidePlan, cell: PlannedCell) -> list[PlannedCell]:
    """The cells of the plan whose front half this one may share."""
    if not may_share(cell):
        return []
    same = (other for other in plan.cells if other.model.digest == cell.model.digest and may_share(other))
    return [other for other in same if front_flags(other) == front_flags(cell)]


class _Collector:
    """Gathers the cells of all sides; a cell that two sides share is measured once."""

    def __init__(self, plans: Sequence[SidePlan], workshop: Workshop) -> None:
        self._workshop, self._lock = workshop, threading.Lock()
        self._assembler = Assembler(workshop.cancel, workshop.timeout_seconds, installed())
        self.cells: dict[str, dict[CellKey, Cell]] = {plan.label: {} for plan in plans}
        self._wanted: dict[str, list[tuple[str, PlannedCell]]] = {}
        self._plans = {plan.label: plan for plan in plans}
        for plan in plans:
            for cell in plan.cells:
                self._admit(plan, cell)

    def _admit(self, plan: SidePlan, planned: PlannedCell) -> None:
        if planned.hindered:
            self.cells[plan.label][planned.key] = hindered_cell(planned)
            return
        key = cell_key(plan.toolchain.info.digest, planned)
        if key not in self._wanted and (known := self._known(plan, planned, key)) is not None:
            self.cells[plan.label][planned.key] = _labelled(known, planned)
        else:
            self._wanted.setdefault(key, []).append((plan.label, planned))

    def _known(self, plan: SidePlan, planned: PlannedCell, key: str) -> Cell | None:
        """The cached cell: as its own command gave it, else resumed from a front half of this plan."""
        if (direct := self._workshop.cache.load(key)) is not None:
            return direct
        flags, book = front_flags(planned), book_of(plan, self._workshop)
        for donor in _relatives(plan, planned) if not book.wrong(flags) else ():
            shared = book.cells(flags).load(cell_key(plan.toolchain.info.digest, planned, donor))
            if shared is not None:
                return replace(shared, donor=donor.target.name)
        return None

    def missing(self, label: str) -> list[PlannedCell]:
        """What this side is the first to want."""
        return [planned for ((first, planned), *_) in self._wanted.values() if first == label]

    def announce(self) -> None:
        """Tell the progress how much there is to do."""
        missing = [wanted[0][1] for wanted in self._wanted.values()]
        known = (cell for cells in self.cells.values() for cell in cells.values())
        cached = sum(bool(cell.command) for cell in known)
        waiting = sum(len(wanted) for wanted in self._wanted.values())
        self._workshop.progress.plan(cached + waiting, cached, sum(cell.cost for cell in missing))

    def finish(self, label: str, planned: PlannedCell, result: Compiled | Failure, donor: str | None) -> None:
        """Measure, keep, and hand out one finished compile; a later one of the same cell takes its place."""
        plan = self._plans[label]
        cell = cell_of(planned, result, self._workshop.texts, donor, self._assembler)
        self._keep(plan, planned, cell)
        key = cell_key(plan.toolchain.info.digest, planned)
        with self._lock:
            before = self.cells[label].get(planned.key)
            if before is not None and before.donor is None and donor is not None:
                return  # a direct compile that took a shared one's place has the last word
            is_news = before is None
            for other, same in self._wanted[key]:
                self.cells[other][same.key] = _labelled(cell, same)
        for other, same in self._wanted[key] if is_news else ():
            self._workshop.progress.measured(other, cell, same.cost if other == label else 0.0)

    def _keep(self, plan: SidePlan, planned: PlannedCell, cell: Cell) -> None:
        digest, flags = plan.toolchain.info.digest, front_flags(planned)
        if cell.donor is None:
            self._workshop.cache.store(cell_key(digest, planned), cell)
            return
        [donor] = (one for one in _relatives(plan, planned) if one.key == CellKey(planned.model.name, cell.donor))
        book_of(plan, self._workshop).cells(flags).store(cell_key(digest, planned, donor), cell)


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
        importer = Importer(plan.toolchain, scratch, workshop.timeout_seconds, workshop.cancel)
        yield Side(kit, finish, importer, book_of(plan, workshop))
    finally:
        bindings.close()


def measure_sides(plans: Sequence[SidePlan], workshop: Workshop) -> dict[str, Snapshot]:
    """Measure all sides together, so that no core waits for the end of one; label → snapshot."""
    collector = _Collector(plans, workshop)
    collector.announce()
    meter = Meter()
    sides: dict[str, Side] = {}
    with temporary_directory("run-") as scratch, ExitStack() as stack:
        tasks = []
        for plan in plans:
            if missing := collector.missing(plan.label):
                finish = partial(collector.finish, plan.label)
                sides[plan.label] = stack.enter_context(open_side(plan, workshop, scratch, meter, finish))
                tasks += sides[plan.label].tasks(missing)
        run_all(tasks, workshop.jobs, workshop.cancel.set, workshop.progress)
    workshop.progress.spent(meter.cpu_ms, workshop.jobs)
    notes = {label: side.notes for label, side in sides.items()}
    found = {plan.label: _snapshot(plan, collector.cells[plan.label], notes.get(plan.label, ())) for plan in plans}
    return _replaced(plans, found, workshop)


def _replaced(plans: Sequence[SidePlan], found: dict[str, Snapshot], workshop: Workshop) -> dict[str, Snapshot]:
    """Measured once more where cells came from front halves that turned out to be wrong; their notes stay."""
    if not any(_doubtful(plan, found[plan.label], workshop) for plan in plans):
        return found
    again = measure_sides(plans, workshop)
    return {
        label: replace(side, notes=tuple(sorted({*side.notes, *found[label].notes}))) for label, side in again.items()
    }


def _doubtful(plan: SidePlan, found: Snapshot, workshop: Workshop) -> bool:
    """True where a cell was resumed from a front half under flags for which that is known to be wrong."""
    shared, book = {cell.key for cell in found.cells if cell.donor}, book_of(plan, workshop)
    return any(book.wrong(flags) for flags in {front_flags(cell) for cell in plan.cells if cell.key in shared})


def _snapshot(plan: SidePlan, cells: dict[CellKey, Cell], notes: Sequence[str]) -> Snapshot:
    return Snapshot(
        compiler=plan.toolchain.info,
        source=plan.source,
        cells=tuple(cells[key] for key in sorted(cells)),
        flags=plan.flags if plan.flags is not None else plan.cells[0].flags if plan.cells else COMMON_FLAGS,
        targets={target.name: target.backend for target in plan.targets},
        backends=plan.toolchain.backends,
        models={model.name: model.digest for model in plan.models if model.digest},
        notes=tuple(sorted(set(notes))),
        only=plan.only,
    )


def check_flags(
    side: str, toolchain: Toolchain, cells: Sequence[PlannedCell], user_flags: Sequence[str], cancel: Cancel
) -> None:
    """Refuse, before any compile, an option for every cell that this side's compiler does not know.

    An option of a single target is not refused: its cells fail with that reason, the others go on.
    """
    unknown = unknown_option(toolchain, cells, cancel)
    if unknown is not None:
        raise _unknown_option(side, toolchain, unknown, user_flags)


def unknown_option(toolchain: Toolchain, cells: Sequence[PlannedCell], cancel: Cancel) -> str | None:
    """An option for every cell that the compiler does not know; None where it knows them all."""
    for flags in dict.fromkeys(cell.flags for cell in cells):
        with temporary_directory("run-") as scratch:
            unknown = ask_device(toolchain, flags, scratch, cancel).unknown
        if unknown is not None:
            return unknown
    return None


def _unknown_option(side: str, toolchain: Toolchain, unknown: str, user_flags: Sequence[str]) -> UsageError:
    mine = any(flag.partition("=")[0] == unknown for flag in user_flags)
    return UsageError(
        f"the {side} compiler ({toolchain.info.spec}, {toolchain.info.version}) does not know the option {unknown}",
        where="flags" if mine else "every cell",
        hint="remove it, or compare releases that both know it" if mine else "compare newer releases",
    )
