"""The dispatches that moved most, traced through the passes of both compilers, as far as the time for it goes.

That time is a quarter of what compiling the two sides took. The largest are traced first, until nine tenths of the
moved bytes of dispatches are; those that an earlier run traced cost nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from bot.compiler.caches.cell_cache import cell_key
from bot.compiler.compiling import Kit, Source
from bot.compiler.schedule import Task, run_all
from bot.compiler.tools.bindings import Bindings
from bot.compiler.tools.importing import Importer
from bot.core.rules.delta import diff
from bot.core.rules.parting import parting
from bot.core.values.explanation import DispatchDelta, Explanation
from bot.core.values.planned import LIFTED_LIMIT_FLAG, SIDES, PlannedCell
from bot.core.values.root_cause import RootCause
from bot.core.values.snapshot import Cell, CellKey, Dispatch, Failure, Snapshot
from bot.core.values.trace import LLVM, DispatchTrace
from bot.inputs.config import Config
from bot.insight.explanations import explanations
from bot.insight.roots.clusters import root_causes
from bot.insight.roots.waterfall import moved_bytes
from bot.measurement.prepare import Request, Show, workshop
from bot.measurement.run import IR_WORKER, SidePlan, Workshop
from bot.measurement.tracing.one_dispatch import executable_sources, trace_one, with_llvm
from bot.render.text.filters import plural
from bot.system.files import temporary_directory
from bot.system.processes import Cancel, Meter

TIME_SHARE = 0.25
"""What tracing may cost, as a share of the CPU time in which both sides were compiled."""
MOVED_SHARE, MOST = 0.9, 300
"""So much of the moved bytes of dispatches is traced, and so many of them at most."""
LARGE_SHARE, LEAST_SHARE = 0.05, 0.01
"""Of all that moved: the largest dispatch of a knob is traced first, and not at all."""
NO_TIME = "no time was left for it"
NOT_STORED = "its compiler is not here, and the stored snapshot has no trace of it"
Moved = tuple[CellKey, DispatchDelta]


class _SideTracer:
    """Traces dispatches of one side; may be used from several threads."""

    def __init__(self, plan: SidePlan, kit: Kit, importer: Importer) -> None:
        self.plan, self._kit, self._importer = plan, kit, importer
        self._planned = {cell.key: cell for cell in plan.cells}
        self._sources: dict[CellKey, dict[str, Path] | Failure] = {}
        self._lock = threading.Lock()

    def trace(self, cell: Cell, row: Dispatch, before: DispatchTrace | None) -> DispatchTrace:
        """One dispatch; `before`: what is known of it, with LLVM's milestones, if all of LLVM's passes are wanted."""
        planned = self._planned[cell.key]
        argv = (*planned.argv, LIFTED_LIMIT_FLAG) if cell.status == "over-stack-limit" else planned.argv
        sources = self._sources_of(planned, argv)
        if isinstance(sources, Failure) or row.executable not in sources:
            why = sources.first_line if isinstance(sources, Failure) else "the compiler wrote no source of it"
            return DispatchTrace((), why)
        kit = self._kit
        if before is None:
            return trace_one(kit, argv, sources[row.executable], row)
        return with_llvm(kit, argv, sources[row.executable], row, before)

    def expected_ms(self, cell: Cell, row: Dispatch, before: DispatchTrace | None) -> int:
        """At most, as a rule: traces took 0.2 to 0.5 s and 0.05 s a KiB of code, LLVM's passes up to thrice their time.

        To write the sources of a cell takes a quarter of its compile, where that is long.
        """
        sources_ms = 0 if cell.key in self._sources else (cell.value("compile_cpu_ms") or 0) // 4
        return sources_ms + (400 + (row.code_bytes or 0) // 20 if before is None else 3 * before.cpu_ms)

    def _sources_of(self, planned: PlannedCell, argv: Sequence[str]) -> dict[str, Path] | Failure:
        with self._lock:
            if planned.key not in self._sources:
                source = self._importer.source(planned.model)
                out = self._kit.scratch / f"{self.plan.label}-{len(self._sources)}"
                out.mkdir()
                self._sources[planned.key] = (
                    source
                    if isinstance(source, Failure)
                    else executable_sources(self._kit, argv, Source(planned.model.name, source), out)
                )
            return self._sources[planned.key]


@contextmanager
def _tracers(plans: Sequence[SidePlan], workshop: Workshop, meter: Meter) -> Iterator[dict[str, _SideTracer]]:
    with temporary_directory("trace-") as scratch, ExitStack() as stack:
        tracers = {}
        for plan in plans:
            bindings = Bindings(IR_WORKER, plan.toolchain.bindings, plan.toolchain.no_bindings, workshop.cancel)
            stack.callback(bindings.close)
            timeout = workshop.timeout_seconds
            kit = Kit(plan.label, plan.toolchain, (), bindings, scratch, timeout, workshop.cancel, meter)
            importer = Importer(plan.toolchain, scratch, timeout, workshop.cancel)
            tracers[plan.label] = _SideTracer(plan, kit, importer)
        yield tracers


class _Budget:
    """CPU time for tracing: what is spent, and what is set aside for what runs.

    Args:
        seconds: all there is; None without a limit.
    """

    def __init__(self, seconds: float | None, meter: Meter) -> None:
        self._limit_ms = None if seconds is None else seconds * 1000
        self._meter, self._lock, self._aside_ms = meter, threading.Lock(), 0

    @contextmanager
    def room(self, expected_ms: int) -> Iterator[bool]:
        """Whether there is time for it; it is set aside until the context ends, and what it took is then spent."""
        with self._lock:
            spent_ms = sum(self._meter.cpu_ms.values()) + self._aside_ms
            has_room = self._limit_ms is None or spent_ms + expected_ms <= self._limit_ms
            self._aside_ms += expected_ms if has_room else 0
        try:
            yield has_room
        finally:
            with self._lock:
                self._aside_ms -= expected_ms if has_room else 0


class _Pairs:
    """Traces dispatches on both sides, as far as there is time.

    Attributes:
        known: side and cell → entry point → trace; at first what the sides brought.
    """

    def __init__(self, sides: Mapping[str, Snapshot], tracers: Mapping[str, _SideTracer], budget: _Budget) -> None:
        self._tracers, self._budget = tracers, budget
        self._cells = {(side, cell.key): cell for side, snapshot in sides.items() for cell in snapshot.cells}
        self.known = {place: dict(cell.traces) for place, cell in self._cells.items() if cell.traces}

    def trace(self, key: CellKey, rows: Mapping[str, Dispatch]) -> list[Task]:
        """One dispatch: MLIR's passes, and LLVM's where the sides part behind those, or there is one side alone."""
        known = {side: self.known.setdefault((side, key), {}) for side in rows}
        for side, row in rows.items():
            if side not in self._tracers and row.name not in known[side]:
                known[side][row.name] = DispatchTrace((), NOT_STORED)
                return []
        self._trace(key, rows, [side for side in rows if (one := known[side].get(rows[side].name)) is None or one.why])
        if len(rows) < len(SIDES) or parting(*(known[side].get(rows[side].name) for side in SIDES)).is_late:
            short = [side for side in rows if all(one.level != LLVM for one in known[side][rows[side].name].steps)]
            self._trace(key, rows, short, llvm=True)
        return []

    def _trace(self, key: CellKey, rows: Mapping[str, Dispatch], sides: Sequence[str], *, llvm: bool = False) -> None:
        """All these sides or none: one alone tells nothing."""
        wanted = {
            side: (self._cells[side, key], rows[side], self.known[side, key][rows[side].name] if llvm else None)
            for side in sides
            if side in self._tracers
        }
        expected_ms = sum(self._tracers[side].expected_ms(*what) for side, what in wanted.items())
        with self._budget.room(expected_ms) as has_room:
            for side, what in wanted.items():
                if has_room:
                    self.known[side, key][rows[side].name] = self._tracers[side].trace(*what)
                elif not llvm:
                    self.known[side, key][rows[side].name] = DispatchTrace((), NO_TIME)


def with_traces(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    moved: Sequence[Moved],
    workshop: Workshop,
    seconds: float | None = None,
) -> dict[str, Snapshot]:
    """The sides, with traces of these dispatches.

    Args:
        plans: of the sides whose compilers are here; of another one those traces count that it brought.
        moved: dispatches in the order of what they are worth.
        seconds: CPU time that it may cost; None without a limit.
    """
    meter = Meter()
    with _tracers(plans, workshop, meter) as tracers:
        pairs, tasks = _Pairs(sides, tracers, _Budget(seconds, meter)), []
        for place, (key, delta) in enumerate(moved):
            rows = {side: row for side, row in zip(SIDES, (delta.base, delta.head), strict=True) if row is not None}
            tasks.append(Task(-place, f"trace {delta.name} of {key}", partial(pairs.trace, key, rows)))
        run_all(tasks, workshop.jobs, workshop.cancel.set, workshop.progress)
    return {side: _kept(side, snapshot, pairs.known, moved, plans, workshop) for side, snapshot in sides.items()}


def _kept(
    side: str,
    snapshot: Snapshot,
    traces: Mapping[tuple[str, CellKey], Mapping[str, DispatchTrace]],
    moved: Sequence[Moved],
    plans: Sequence[SidePlan],
    workshop: Workshop,
) -> Snapshot:
    """The side with the traces that were asked for; the cache holds what is whole of them from now on."""
    wanted = {(key, row.name) for key, delta in moved for row in (delta.base, delta.head) if row is not None}
    own = {cell.key: (plan, cell) for plan in plans if plan.label == side for cell in plan.cells}
    cells = []
    for cell in snapshot.cells:
        known = traces.get((side, cell.key), {})
        if cell.key in own and known:
            plan, planned = own[cell.key]
            whole = {name: trace for name, trace in known.items() if trace.is_whole}
            workshop.cache.store(cell_key(plan.toolchain.info.digest, planned), replace(cell, traces=whole))
            known = {name: trace for name, trace in known.items() if (cell.key, name) in wanted}
        cells.append(replace(cell, traces=known or cell.traces))
    return replace(snapshot, cells=tuple(cells))


def traced(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    config: Config,
    request: Request,
    show: Show,
    cancel: Cancel,
) -> dict[str, Snapshot]:
    """Both sides, with traces of what moved most without a cause that is known otherwise."""
    deltas = diff(sides["base"], sides["head"])
    told = explanations(sides["base"], sides["head"], deltas, config.sections)
    backends = {**sides["base"].targets, **sides["head"].targets}
    moved = worth_tracing(told, root_causes(deltas, told, backends=backends))
    if not plans or not moved:
        return dict(sides)
    show.say(f"traces {plural(len(moved), 'dispatch')} through the passes of both compilers")
    with workshop(request, config, show, cancel) as shop:
        return with_traces(plans, sides, moved, shop, seconds_for(sides))


def with_largest_traced(
    plan: SidePlan, snapshot: Snapshot, most: int, config: Config, request: Request, show: Show, cancel: Cancel
) -> Snapshot:
    """A side that others will be compared with when its compiler is gone, with traces of its largest dispatches.

    Args:
        most: how many at most; as many less as there is no time for.
    """
    rows = [(cell.key, row) for cell in snapshot.cells for row in cell.dispatches if row.code_bytes]
    rows.sort(key=lambda one: (-(one[1].code_bytes or 0), one[0], one[1].name))
    if not most or not rows:
        return snapshot
    largest = [(key, DispatchDelta(None, row, "", None)) for key, row in rows[:most]]
    show.say(f"traces the {plural(len(largest), 'largest dispatch')} through the passes, for pull requests to come")
    with workshop(request, config, show, cancel) as shop:
        return with_traces([plan], {plan.label: snapshot}, largest, shop, seconds_for({plan.label: snapshot}))[
            plan.label
        ]


def seconds_for(sides: Mapping[str, Snapshot]) -> float:
    """CPU time that tracing may cost: a share of what both sides cost to compile."""
    return TIME_SHARE * sum(cell.value("compile_cpu_ms") or 0 for one in sides.values() for cell in one.cells) / 1000


def worth_tracing(explanations: Mapping[CellKey, Explanation], roots: Sequence[RootCause]) -> list[Moved]:
    """What is to be traced, in order.

    Dispatches of which nobody knows a cause but other code, the largest first, until they have 0.9 of the bytes; and
    the largest of each root cause that is a knob, to tell which pass makes most of it: of a large one first, else last.
    """
    moved = [
        (key, delta)
        for key, told in explanations.items()
        for delta in told.dispatches
        if delta.cause == "codegen" and delta.base and delta.head and moved_bytes(delta)
    ]
    moved.sort(key=lambda one: (-abs(moved_bytes(one[1]) or 0), one[0], one[1].name))
    whole, seen, chosen = sum(abs(moved_bytes(delta) or 0) for _, delta in moved), 0, list[Moved]()
    for key, delta in moved[:MOST]:
        if seen >= MOVED_SHARE * whole:
            break
        chosen.append((key, delta))
        seen += abs(moved_bytes(delta) or 0)
    examples = {(one.example.key, one.example.dispatch): one.share or 0 for one in roots if one.cause == "strategy"}
    deltas = ((key, delta) for key, told in explanations.items() for delta in told.dispatches)
    pairs = [one for one in deltas if (one[0], one[1].name) in examples and one[1].base and one[1].head]
    pairs.sort(key=lambda one: (-examples[one[0], one[1].name], one[0]))
    shares = [examples[key, delta.name] for key, delta in pairs]
    first = [one for one, share in zip(pairs, shares, strict=True) if share >= LARGE_SHARE]
    return (
        first + chosen + [one for one, share in zip(pairs, shares, strict=True) if LEAST_SHARE <= share < LARGE_SHARE]
    )
