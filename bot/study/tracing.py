"""Trace the dispatches that changed most through the passes of both compilers.

The trace budget limits how many of them. A trace is made once: the cache keeps the
traces of a cell beside its measurements, and a stored side brings its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.bindings import working
from bot.compiler.cell_cache import cell_key
from bot.compiler.compiling import CompileInput, CompileSetup
from bot.compiler.importing import Importer
from bot.compiler.program_cache import ProgramCache
from bot.compiler.schedule import Task, run_all
from bot.core.backends import AMD
from bot.core.delta import diff
from bot.core.explanation import DispatchDelta
from bot.core.parting import (
    NO_BUDGET,
    NO_PLACES,
    NOT_STORED,
    OTHER_DISPATCHES,
    OTHER_MODEL,
    parting,
)
from bot.core.planned import SIDES, PlannedCell
from bot.core.snapshot import Cell, CellKey, Dispatch, Failure, Snapshot
from bot.core.trace import LLVM, PROGRAM, DispatchTrace
from bot.errors import InputError
from bot.explain.explanations import changed_models, explanations
from bot.readers.program_passes import LOCATION, ProgramReader, joint_places
from bot.show.filters import plural
from bot.study.changed_dispatches import Moved, dispatches_of, is_formed
from bot.study.compiling_alone import SOURCES
from bot.study.executable_sources import executables_at, executables_in
from bot.study.ladder import LadderSide
from bot.study.neighbours import as_in_artifact, neighbours_of
from bot.study.prepare import Work
from bot.study.printed_passes import (
    PROGRAM_FOLDER,
    PROGRAM_OPTIONS,
    compile_printing,
    printed_passes,
    trace_options,
    with_llvm_passes,
)
from bot.study.program_experiments import ProgramExperiments
from bot.study.program_side import ProgramSide
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.study.trace_budget import TraceBudget, programs_within, work_for
from bot.study.worth_tracing import worth_tracing
from bot.system.files import temporary_directory
from bot.system.meter import Meter

_NO_SOURCE = "the compiler wrote no source for it"
MOST_STORED = 24  # Dispatches of a stored side, about 2.4 KB each


def _seen(cell: Cell) -> list[Dispatch]:
    """Return the dispatches that the passes over the program form.

    Dispatches that data tiling adds later are left out.
    """
    sources = cell.program.sources if cell.program else ()
    formed = {source.executable for source in sources}
    rows = [
        row for row in cell.dispatches if not ProgramReader.is_unseen(row.executable)
    ]
    if not formed:
        return rows
    return [row for row in rows if row.executable in formed]


class SideTracer:
    """Traces dispatches of one side; may be used from several threads."""

    def __init__(
        self,
        plan: SidePlan,
        setup: CompileSetup,
        importer: Importer,
        programs: ProgramCache,
    ) -> None:
        self.plan = plan
        self._setup = setup
        self._importer = importer
        self._programs_at_sources = programs
        self._planned = {cell.key: cell for cell in plan.cells}
        self._sources: dict[CellKey, dict[str, Path] | Failure] = {}
        self._programs: dict[CellKey, ProgramReader | str] = {}
        self._sides_as_in_artifact: dict[tuple[CellKey, str], LadderSide] = {}
        self._neighbours: dict[tuple[CellKey, str], LadderSide] = {}
        self._lock = threading.Lock()

    def trace(
        self, cell: Cell, row: Dispatch, before: DispatchTrace | None
    ) -> DispatchTrace:
        """Trace one dispatch.

        Args:
            before: the known trace, if only LLVM's own passes are still wanted.
        """
        planned = self._planned[cell.key]
        argv = planned.argv_for(cell.status)
        sources = self._sources_of(planned, argv)
        if isinstance(sources, Failure) or row.executable not in sources:
            if isinstance(sources, Failure):
                reason = sources.first_line
            else:
                reason = _NO_SOURCE
            return DispatchTrace((), reason)
        if before is None:
            return printed_passes(
                self._setup,
                argv=argv,
                source=sources[row.executable],
                row=row,
                options=trace_options(row.name),
            )
        return with_llvm_passes(
            self._setup,
            argv=argv,
            source=sources[row.executable],
            row=row,
            trace=before,
        )

    def ladder_side(self, cell: Cell, row: Dispatch) -> LadderSide:
        """Return one dispatch, and the compiler that compiles it alone on this side."""
        side = self._side_alone(cell, row)
        if self._planned[cell.key].target.backend != AMD:
            return side
        with self._lock:
            known_side = self._sides_as_in_artifact.get((cell.key, row.name))
        if known_side is None:
            neighbours = [
                self._neighbour(cell, other) for other in neighbours_of(cell, row)
            ]
            known_side = as_in_artifact(side, neighbours)
            with self._lock:
                self._sides_as_in_artifact[cell.key, row.name] = known_side
        return known_side

    def _neighbour(self, cell: Cell, row: Dispatch) -> LadderSide:
        """Return a neighbour of dispatches, whose later phases are compiled only once."""
        neighbour = self._side_alone(cell, row)
        with self._lock:
            return self._neighbours.setdefault((cell.key, row.name), neighbour)

    def _side_alone(self, cell: Cell, row: Dispatch) -> LadderSide:
        planned = self._planned[cell.key]
        argv = planned.argv_for(cell.status)
        sources = self._sources_of(planned, argv)
        source: str | Failure
        if isinstance(sources, Failure):
            source = sources
        elif row.executable in sources:
            path = sources[row.executable]
            source = path.read_text(encoding="utf-8", errors="replace")
        else:
            source = Failure("read", _NO_SOURCE)
        return LadderSide(setup=self._setup, argv=argv, row=row, source=source)

    def program_side(self, cell: Cell) -> ProgramSide | str:
        """Return a cell's whole program and this side's compiler, or the reason."""
        planned = self._planned[cell.key]
        source = self._importer.source(planned.model)
        if isinstance(source, Failure):
            return source.first_line
        argv = planned.argv_for(cell.status)
        return ProgramSide(self._setup, argv, CompileInput(planned.model.name, source))

    def program(self, key: CellKey) -> ProgramReader | str:
        """Return the passes over a cell's whole program, or the reason.

        They are read only once.
        """
        with self._lock:
            if key not in self._programs:
                self._programs[key] = self._read_program(self._planned[key])
            return self._programs[key]

    def _read_program(self, planned: PlannedCell) -> ProgramReader | str:
        source = self._importer.source(planned.model)
        if isinstance(source, Failure):
            return source.first_line
        with temporary_directory("program-", self._setup.session.scratch) as directory:
            model = directory / "model.mlir"
            text = LOCATION.sub(b"", source.read_bytes())
            model.write_bytes(text)
            reason = compile_printing(
                self._setup,
                flags=(*planned.argv, *PROGRAM_OPTIONS),
                source=model,
                directory=directory,
            )
            try:
                return reason or ProgramReader(directory / PROGRAM_FOLDER, text)
            except InputError as error:
                return error.what

    def _sources_of(
        self, planned: PlannedCell, argv: Sequence[str]
    ) -> dict[str, Path] | Failure:
        with self._lock:
            if planned.key not in self._sources:
                out = (
                    self._setup.session.scratch
                    / f"{self.plan.label}-{len(self._sources)}"
                )
                out.mkdir()
                self._sources[planned.key] = self._written_sources(planned, argv, out)
            return self._sources[planned.key]

    def _written_sources(
        self, planned: PlannedCell, argv: Sequence[str], out: Path
    ) -> dict[str, Path] | Failure:
        """Write the source of each executable.

        The model is compiled again only if its compile left no program.
        """
        key = cell_key(self.plan.compiler.info.digest, planned)
        program = self._programs_at_sources.load(key)
        if program is not None:
            divided = executables_in(self._setup, program, out)
            if not isinstance(divided, Failure):
                return divided
        source = self._importer.source(planned.model)
        if isinstance(source, Failure):
            return source
        model = CompileInput(planned.model.name, source)
        dumped = out / "dumped"
        dumped.mkdir()
        return executables_at(
            self._setup, argv=argv, source=model, phase=SOURCES, out=dumped
        )


@contextmanager
def side_tracers(
    plans: Sequence[SidePlan], resources: Resources
) -> Iterator[dict[str, SideTracer]]:
    """Yield label → the tracer of that side's dispatches."""
    with temporary_directory("trace-") as scratch, ExitStack() as stack:
        tracers = {}
        for plan in plans:
            session = resources.session(scratch, Meter())
            bindings = stack.enter_context(
                closing(working(plan.toolchain, resources.cancel))
            )
            # The compiler is not started if all traces are known.
            setup = CompileSetup(plan.toolchain, session, bindings)
            importer = Importer(plan.toolchain, session)
            tracers[plan.label] = SideTracer(
                plan, setup=setup, importer=importer, programs=resources.programs
            )
        yield tracers


@contextmanager
def opened(
    tracers: Mapping[str, SideTracer] | None,
    plans: Sequence[SidePlan],
    resources: Resources,
) -> Iterator[Mapping[str, SideTracer]]:
    """Yield the given tracers, or open new ones."""
    if tracers is not None:
        yield tracers
        return
    with side_tracers(plans, resources) as own_tracers:
        yield own_tracers


def _same_programs(sides: Mapping[str, Snapshot]) -> dict[CellKey, CellKey]:
    """Return cell → the first cell of its model that has the same program.

    All dispatches of both cells have the same IR on each side, except what runs when
    the module is loaded. The passes over one of these programs stand for all of them. A
    trace names the target for which they were printed.
    """
    cells = {cell.key: list[object]() for side in sides.values() for cell in side.cells}
    for side in sides.values():
        for cell in side.cells:
            sources = _sources_of_program(cell)
            if sources:
                cells[cell.key].append(sources)
    first: dict[CellKey, CellKey] = {}
    for key, sources_of_sides in sorted(cells.items()):
        first_equal = key
        if len(sources_of_sides) == len(SIDES):
            for other in first.values():
                if other.model == key.model and cells[other] == sources_of_sides:
                    first_equal = other
                    break
        first[key] = first_equal
    return first


def _sources_of_program(cell: Cell) -> list[tuple[str, str]]:
    """Return each executable of a program, and the digest of its source."""
    if cell.program is None:
        return []
    return [
        (row.executable, row.source)
        for row in cell.program.sources
        if not ProgramReader.is_unseen(row.executable)
    ]


Traces = dict[tuple[str, CellKey], dict[str, DispatchTrace]]
"""Side and cell → entry point → its trace."""


def _are_formed_alike(programs: Mapping[str, DispatchTrace]) -> bool:
    """Return whether the passes over both programs are known and form equal regions."""
    if any(program.why for program in programs.values()):
        return False
    return not parting(*programs.values()).forms_otherwise


def _with_other_side(programs: Mapping[str, DispatchTrace]) -> dict[str, DispatchTrace]:
    """Return each side's passes over the program, beside those of the other side."""
    base, head = (programs[side] for side in SIDES)
    return {
        side: replace(trace, across=other.steps, why=trace.why or other.why)
        for side, trace, other in zip(SIDES, (base, head), (head, base), strict=True)
    }


class _Pairs:
    """Traces dispatches on both sides.

    Attributes:
        known: the traces so far. A side whose compiler is not here starts with its
            stored traces. Any other side starts with those in the cache.
    """

    def __init__(
        self,
        sides: Mapping[str, Snapshot],
        tracers: Mapping[str, SideTracer],
        known: Traces,
        at_first: Traces,
        same: Mapping[CellKey, CellKey],
        experiments: ProgramExperiments,
    ) -> None:
        self._tracers = tracers
        self.known = known
        self._at_first = at_first
        self._same = same
        self._experiments = experiments
        self._cells = {
            (side, cell.key): cell
            for side, snapshot in sides.items()
            for cell in snapshot.cells
        }

    def trace(self, key: CellKey, delta: DispatchDelta, *, codes: bool) -> None:
        """Trace one dispatch.

        The trace has MLIR's passes. LLVM's follow if the sides part behind those, or if
        only one side has the dispatch. A dispatch that got another program, or was
        formed otherwise, gets the passes over the program instead.

        Args:
            codes: trace the passes of its target, too, behind those over the program.
        """
        rows = dispatches_of(delta)
        if not is_formed(delta):
            self._trace_code(key, rows)
            return
        programs = {side: self._program(key, rows, side) for side in SIDES}
        if not any(program.why for program in programs.values()):
            formed = self._experiments.proof(
                self._same[key], {side: row.executable for side, row in rows.items()}
            )
            programs = {
                side: replace(trace, formed=formed) for side, trace in programs.items()
            }
        if codes:
            for side, row in rows.items():
                self._forget_program(side, key, row.name)
            self._trace_code(key, rows)
            self._put_before(key, rows, programs)
            return
        if len(rows) < len(SIDES):
            programs = _with_other_side(programs)
        elif _are_formed_alike(programs):
            # The cause is behind these passes. This reason stays only if the passes of
            # the target are not traced.
            programs = {
                side: replace(trace, steps=(), why=NO_BUDGET)
                for side, trace in programs.items()
            }
        for side, row in rows.items():
            self.known.setdefault((side, key), {})[row.name] = programs[side]

    def _forget_program(self, side: str, key: CellKey, name: str) -> None:
        """Replace the passes over the program by the trace that was there at first."""
        traces = self.known[side, key]
        del traces[name]
        first_traces = self._at_first.get((side, key), {})
        if name in first_traces:
            traces[name] = first_traces[name]

    def _put_before(
        self,
        key: CellKey,
        rows: Mapping[str, Dispatch],
        programs: Mapping[str, DispatchTrace],
    ) -> None:
        """Put the passes over the program before those of a dispatch's target."""
        for side, row in rows.items():
            program = programs[side]
            known_trace = self.known[side, key].get(row.name)
            if known_trace:
                self.known[side, key][row.name] = replace(
                    known_trace,
                    steps=(*program.steps, *known_trace.steps),
                    printed_for=program.printed_for,
                    formed=program.formed,
                )

    def _program(
        self, key: CellKey, rows: Mapping[str, Dispatch], side: str
    ) -> DispatchTrace:
        """Return the effect of the passes over one side's program on a dispatch.

        It is read at the places that the dispatch has on either side.
        """
        if self._tracers.keys() < set(SIDES):
            return DispatchTrace((), NOT_STORED)
        read = {name: self._tracers[name].program(self._same[key]) for name in SIDES}
        readers = list[ProgramReader]()
        for name, reader in read.items():
            if isinstance(reader, str):
                return DispatchTrace((), f"{name}: {reader}")
            readers.append(reader)
        if readers[0].model != readers[1].model:
            return DispatchTrace((), OTHER_MODEL)
        executables = list[str]()
        for name, reader in zip(SIDES, readers, strict=True):
            own_rows = _seen(self._cells[name, key])
            if any(reader.names.get(row.executable) != row.name for row in own_rows):
                return DispatchTrace((), f"{name}: {OTHER_DISPATCHES}")
            executables.append(rows[name].executable if name in rows else "")
        places = joint_places(readers, executables)
        steps = dict(zip(SIDES, readers, strict=True))[side].steps(places)
        if self._same[key] == key:
            printed_for = ""
        else:
            printed_for = self._same[key].target
        return DispatchTrace(steps, "" if steps else NO_PLACES, printed_for=printed_for)

    def _trace_code(self, key: CellKey, rows: Mapping[str, Dispatch]) -> None:
        by_side = {side: self.known.setdefault((side, key), {}) for side in rows}
        for side, row in rows.items():
            if side not in self._tracers and row.name not in by_side[side]:
                for side_name in self._tracers.keys() & rows.keys():
                    by_side[side_name][rows[side_name].name] = DispatchTrace(
                        (), NOT_STORED
                    )
                return
        untraced = list[str]()
        for side, row in rows.items():
            trace = by_side[side].get(row.name)
            if trace is None or trace.why:
                untraced.append(side)
        self._trace(key, rows, untraced)
        if len(rows) == len(SIDES):
            traces = [by_side[side].get(rows[side].name) for side in SIDES]
            if not parting(*traces).is_late:
                return
        short = list[str]()
        for side, row in rows.items():
            steps = by_side[side][row.name].steps
            if all(step.level != LLVM for step in steps):
                short.append(side)
        self._trace(key, rows, short, llvm=True)

    def needs_target_passes(self, key: CellKey, delta: DispatchDelta) -> bool:
        """Return whether the passes of the dispatch's target are still to be traced.

        They are if the passes over the program form equal regions on both sides. `trace`
        then leaves NO_BUDGET as the reason.
        """
        if delta.head is None or not is_formed(delta):
            return False
        return self.known["head", key][delta.head.name].why == NO_BUDGET

    def _trace(
        self,
        key: CellKey,
        rows: Mapping[str, Dispatch],
        sides: Sequence[str],
        *,
        llvm: bool = False,
    ) -> None:
        for side in sides:
            if side in self._tracers:
                traces = self.known[side, key]
                before = traces[rows[side].name] if llvm else None
                traces[rows[side].name] = self._tracers[side].trace(
                    self._cells[side, key], rows[side], before
                )


def with_traces(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    moved: Sequence[Moved],
    resources: Resources,
    work: int | None = None,
    tracers: Mapping[str, SideTracer] | None = None,
    *,
    with_bytes: bool = False,
) -> dict[str, Snapshot]:
    """Return the sides, with traces of these dispatches.

    `plans`: of the sides whose compilers are here; another side has only the traces
    that it brought; `moved`: dispatches in the order in which they are traced; `work`:
    the work limit, as `bot.core.work` counts, None without one; `tracers`: label →
    tracer of that side, if the caller has them open; `with_bytes`: count the bytes that
    an experiment on a program restores.
    """
    plans_here = {plan.label: plan for plan in plans}
    same = _same_programs(sides)
    budget = TraceBudget(
        sides=sides, sides_here=plans_here.keys(), same=same, work=work
    )
    known = _known(plans_here, sides=sides, moved=moved, resources=resources)
    at_first = {place: dict(traces) for place, traces in known.items()}
    chosen = budget.take(moved)
    with opened(tracers, plans, resources) as open_tracers:
        programs = programs_within(sides, chosen, same, work)
        experiments = ProgramExperiments(
            sides, open_tracers, programs, with_bytes=with_bytes
        )
        pairs = _Pairs(
            sides=sides,
            tracers=open_tracers,
            known=known,
            at_first=at_first,
            same=same,
            experiments=experiments,
        )

        def trace(dispatches: Sequence[Moved], *, codes: bool) -> None:
            tasks = [
                Task(
                    -place,
                    f"trace {delta.name} of {key}",
                    partial(pairs.trace, key, delta, codes=codes),
                )
                for place, (key, delta) in enumerate(dispatches)
            ]
            if tasks and plans_here:
                resources.progress.stage("tracing", len(tasks), "dispatch")
            run_all(
                tasks,
                jobs=resources.jobs,
                interrupt=resources.cancel.set,
                watcher=resources.progress,
            )

        trace(chosen, codes=False)
        open_dispatches = [
            dispatch for dispatch in chosen if pairs.needs_target_passes(*dispatch)
        ]
        trace(budget.take(open_dispatches, codes=True), codes=True)
    return {
        side: (
            _with_those(
                plans_here[side],
                snapshot=snapshot,
                moved=moved,
                chosen=chosen,
                known=known,
                cached=at_first,
                resources=resources,
            )
            if side in plans_here
            else snapshot
        )
        for side, snapshot in sides.items()
    }


def _known(
    plans_here: Mapping[str, SidePlan],
    sides: Mapping[str, Snapshot],
    moved: Sequence[Moved],
    resources: Resources,
) -> Traces:
    """Return the stored traces of sides that are not measured here, else the cached ones."""
    known: Traces = {}
    for side, snapshot in sides.items():
        if side not in plans_here:
            for cell in snapshot.cells:
                known[side, cell.key] = dict(cell.traces)
            continue
        digest = plans_here[side].compiler.info.digest
        keys = {key for key, _ in moved}
        for planned in plans_here[side].cells:
            known[side, planned.key] = {}
            if planned.key in keys:
                cached_cell = resources.cache.load(cell_key(digest, planned))
                if cached_cell:
                    known[side, planned.key] = dict(cached_cell.traces)
    return known


def _with_those(
    plan: SidePlan,
    snapshot: Snapshot,
    moved: Sequence[Moved],
    chosen: Sequence[Moved],
    known: Traces,
    cached: Traces,
    resources: Resources,
) -> Snapshot:
    """Return the side with the traces that were asked for and no others.

    The cache holds all that are whole from now on, and those that it had.
    """
    planned = {cell.key: cell for cell in plan.cells}

    def names(pairs: Sequence[Moved]) -> set[tuple[CellKey, str]]:
        return {
            (key, row.name)
            for key, delta in pairs
            for side, row in dispatches_of(delta).items()
            if side == plan.label
        }

    covered = names(chosen)
    left_out = names(moved) - covered
    cells = []
    for cell in snapshot.cells:
        traces = known.get((plan.label, cell.key), {})
        if cell.key in planned and traces:
            # without steps of the program: the other side decides which places these
            # are
            whole = dict(cached.get((plan.label, cell.key), {}))
            for name, trace in traces.items():
                steps = tuple(step for step in trace.steps if step.level != PROGRAM)
                if trace.is_whole and steps:
                    whole[name] = replace(trace, steps=steps, across=(), formed=None)
            resources.cache.store(
                cell_key(plan.compiler.info.digest, planned[cell.key]),
                replace(cell, traces=whole),
            )
        rows_of_side = {row.name for row in cell.dispatches}
        shown_traces = {
            name: trace for name, trace in traces.items() if (cell.key, name) in covered
        }
        shown_traces |= {
            name: DispatchTrace((), NO_BUDGET)
            for name in rows_of_side
            if (cell.key, name) in left_out
        }
        cells.append(replace(cell, traces=shown_traces))
    return replace(snapshot, cells=tuple(cells))


def traced(
    plans: Sequence[SidePlan], sides: Mapping[str, Snapshot], work: Work
) -> dict[str, Snapshot]:
    """Return both sides, with traces of the largest changes without another cause."""
    deltas = diff(sides["base"], sides["head"])
    causes = explanations(
        sides["base"],
        head=sides["head"],
        deltas=deltas,
        sections=work.config.components,
    )
    moved = worth_tracing(causes, changed_models(sides["base"], sides["head"]))
    if not moved or not any(plan.compiler.is_traced for plan in plans):
        return dict(sides)
    work.show.say(
        f"tracing at most {plural(len(moved), 'dispatch')} through the passes of both"
        " compilers"
    )
    with work.resources() as resources:
        return with_traces(
            plans, sides=sides, moved=moved, resources=resources, work=work_for(sides)
        )


def with_largest_traced(
    plan: SidePlan, snapshot: Snapshot, work: Work, most_stored: int = MOST_STORED
) -> Snapshot:
    """Return a side with traces of its largest dispatches.

    They are for later comparisons that do not have its compiler. `most_stored`: the
    largest number of dispatches; there are fewer if the trace budget is used up.
    """
    rows = [
        (cell.key, row)
        for cell in snapshot.cells
        for row in cell.dispatches
        if row.code_bytes
    ]
    rows.sort(
        key=lambda ranked: (-(ranked[1].code_bytes or 0), ranked[0], ranked[1].name)
    )
    if not rows or not plan.compiler.is_traced:
        return snapshot
    largest = [
        (key, DispatchDelta(base=None, head=row, matched="", cause=None))
        for key, row in rows[:most_stored]
    ]
    counted = plural(len(largest), "largest dispatch")
    work.show.say(f"tracing the {counted} through the passes, for later pull requests")
    with work.resources() as resources:
        return with_traces(
            [plan],
            sides={plan.label: snapshot},
            moved=largest,
            resources=resources,
            work=work_for({plan.label: snapshot}),
        )[plan.label]
