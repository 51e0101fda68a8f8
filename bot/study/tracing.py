"""One dispatch compiled alone, with its IR printed after each pass: counted as it streams by, never kept.

MLIR's passes and two milestones of LLVM's are printed in one compile. All of LLVM's cost far more (20 s and 240 MB for
a dispatch of 146 KB), so that they are asked for by themselves, where the sides part behind MLIR.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from math import inf
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.bindings import Importer, working
from bot.compiler.cell_cache import cell_key
from bot.compiler.compiler import Session
from bot.compiler.compiling import Kit, Source, compile_to
from bot.compiler.diagnostics import failure
from bot.compiler.schedule import Task, run_all
from bot.compiler.toolchain import UNTHREADED
from bot.core.delta import diff
from bot.core.explanation import EARLY_CAUSES, DispatchDelta, Explanation, moved_bytes
from bot.core.parting import NO_PLACES, NO_TIME, NOT_STORED, OTHER_DISPATCHES, OTHER_MODEL, parting
from bot.core.planned import LIFTED_LIMIT_FLAG, SIDES, PlannedCell
from bot.core.snapshot import Cell, CellKey, Dispatch, Failure, Snapshot
from bot.core.trace import LLVM, MLIR, PROGRAM, REGION, DispatchTrace
from bot.errors import MalformedBinary
from bot.explain.explanations import changed_models, explanations
from bot.readers.artifact import read_executable
from bot.readers.assemble import UNSPEAKABLE
from bot.readers.elf import function_codes
from bot.readers.passes import PassReader
from bot.readers.program_passes import LOCATION, ProgramReader, joint_places
from bot.show.filters import plural
from bot.study.prepare import Work
from bot.study.run import Resources, SidePlan
from bot.system.files import Keeping, temporary_directory, whole_or_nothing
from bot.system.processes import Meter, run

_ALONE = ("--compile-from=executable-sources", "--compile-mode=hal-executable")
_ELIDED = "--mlir-elide-elementsattrs-if-larger=8"
_PASSES = ("--mlir-print-ir-after-all", "--mlir-print-ir-after-change")
_MILESTONES = "--print-after=finalize-isel,prologepilog,prolog-epilog"
"""The first and nearly the last look at machine instructions; a name that a release does not know is ignored."""
_LLVM_PASSES = ("--print-changed=quiet", "--print-loop-func-scope")
_PROGRAM = (
    "--compile-to=flow", *_PASSES, _ELIDED, "--mlir-print-debuginfo", "--mlir-print-local-scope", UNTHREADED
)  # fmt: skip
"""Up to where executables are outlined; what is after that is the same for all dispatches of a structure."""
_TREE = "--mlir-print-ir-tree-dir="
"""Into files, as the compiler writes standard error unbuffered, in four times the CPU seconds."""
_OBJECTS, OUTPUT = "--iree-llvmcpu-keep-linker-artifacts", "executable"
_NAMED = re.compile(rb'hal\.executable (?:public |private )?@("?)([^"\s{]+)\1')


_NAME_WITHIN_BYTES = 4096


def source_options(out: Path | str) -> tuple[str, ...]:
    """What makes the compiler write each executable to a file of its own, before its target's passes."""
    return "--compile-to=executable-sources", f"--iree-hal-dump-executable-sources-to={out}"


def trace_options(entry_point: str, *, llvm: bool = False) -> tuple[str, ...]:
    """What prints the passes over one entry point of such a file; `llvm`: LLVM's alone, and all of them."""
    printed = _LLVM_PASSES if llvm else (*_PASSES, _ELIDED, _MILESTONES)
    return (*_ALONE, *printed, f"--filter-print-funcs={entry_point}", UNTHREADED)


def trace_commands(command: str, row: Dispatch) -> tuple[str, str]:
    """What writes the sources of a cell's executables, and what prints the passes over one of them.

    `command`: that gives the cell's artifact.
    """
    before, fed = _parted(command)
    whole = f"{before} {shlex.join(source_options('sources'))} -o /dev/null{fed}"
    flags = shlex.split(before[before.index("iree-compile") :])[2:]
    source = f"sources/*_{shlex.quote(row.executable)}.mlir"
    return whole, f"iree-compile {source} {shlex.join((*flags, *trace_options(row.name)))} -o /dev/null"


def program_command(command: str) -> str:
    """What prints the passes over the whole program, before it is code of a target, into files."""
    before, fed = _parted(command)
    return f"{before} {shlex.join(_PROGRAM)} {_TREE}passes -o /dev/null{fed}"


def _parted(command: str) -> tuple[str, str]:
    """What of a cell's command is before its output, and what feeds it."""
    before, _, model = command.rpartition(" -o ")
    return before, "".join(model.partition(" < ")[1:])


def executable_sources(kit: Kit, argv: Sequence[str], source: Source, out: Path) -> dict[str, Path] | Failure:
    """Executable → file with its source, written to `out`."""
    result = compile_to(kit, (*argv, *source_options(out)), source)
    if isinstance(result, Failure):
        return result
    sources = {}
    for path in sorted(out.glob("*.mlir")):
        if path.is_file():  # no pipe, that is
            with path.open("rb") as file:
                if name := _NAMED.search(file.read(_NAME_WITHIN_BYTES)):
                    sources[name[2].decode()] = path
    return sources


def _with_llvm(kit: Kit, argv: Sequence[str], source: Path, row: Dispatch, trace: DispatchTrace) -> DispatchTrace:
    """The trace with all passes of LLVM in place of their milestones; as it is where these cannot be had."""
    whole = _traced(kit, argv, source, row, trace_options(row.name, llvm=True))
    front = tuple(step for step in trace.steps if step.level == MLIR)
    return replace(trace, steps=(*front, *whole.steps)) if whole.is_whole else trace


_ERROR = re.compile(rb"error: |LLVM ERROR|Unknown command line argument|Cannot find option named")


def _traced(kit: Kit, argv: Sequence[str], source: Path, row: Dispatch, options: Sequence[str]) -> DispatchTrace:
    reader = PassReader(row.name)

    def errors(chunk: bytes) -> bytes:
        """The lines alone that say what went wrong; the rest is counted as it streams by."""
        reader.feed(chunk)
        return b"".join(line for line in chunk.splitlines(keepends=True) if _ERROR.search(line[:200]))

    with temporary_directory("trace-", kit.session.scratch) as directory:
        why = _compile(kit, (*argv, *options, _OBJECTS), source, directory, errors)
        same = None if why else _is_same(row, directory)
        why = why or ("" if reader.steps else "the compiler printed no pass over it")
        return DispatchTrace(tuple(reader.steps), why, same)


def _compile(kit: Kit, flags: Sequence[str], source: Path, directory: Path, keeping: Keeping = bytes) -> str:
    """Compile to `directory`; why that failed, empty where it did not."""
    (directory / "tmp").mkdir()
    outcome = run(
        [str(kit.toolchain.binary), "-", *flags, "-o", OUTPUT],
        cancel=kit.session.cancel,
        stdin=source,
        cwd=directory,
        environment={"TMPDIR": str(directory / "tmp")},
        timeout_seconds=kit.session.timeout_seconds,
        keeping=keeping,
    )
    return "" if outcome.ok else failure(outcome, kit.session.timeout_seconds).first_line


def _is_same(row: Dispatch, directory: Path) -> bool | None:
    """Whether the code is that of the artifact; None where either is not known."""
    try:
        if objects := sorted((directory / "tmp").glob("*.o")):
            functions = [one for path in objects for one in function_codes(whole_or_nothing(path)).items()]
            codes = [(name, one.code) for name, one in functions]
        else:
            points = read_executable(whole_or_nothing(directory / OUTPUT)).entry_points
            codes = [(one.name, one.code) for one in points]
    except MalformedBinary:
        return None
    mine = [code for name, code in codes if UNSPEAKABLE.sub("_", name) == UNSPEAKABLE.sub("_", row.name)]
    if len(mine) != 1 or mine[0] is None or row.code is None:
        return None
    return mine[0] == row.code


# The dispatches that moved most, traced through the passes of both compilers, as far as the time for it goes.
#
# That time is a quarter of what compiling the two sides took. Of each target those that have nine tenths of the moved
# bytes are wanted, those first whose passes explain most bytes a second. What counts is the time that tracing is
# expected to take, whatever an earlier run has left: the same two snapshots always get the same traces.


TIME_SHARE = 0.25  # What tracing may cost, as a share of the CPU time in which both sides were compiled
LITTLE_SECONDS = 10  # So much may always be spent, however small the comparison is
PROGRAM_SECONDS = 2
"""What the passes over a program take on both sides: 1 s for 400 lines, 3.5 s for 4,000, for all dispatches of it."""
MOVED_TENTHS, MOST = 9, 600
"""So much of a target's moved bytes of dispatches has to have a knob or a trace; so many are traced at most."""
MOST_STORED = 24  # Dispatches of a stored side, about 2.4 KB each
Moved = tuple[CellKey, DispatchDelta]


class _SideTracer:
    """Traces dispatches of one side; may be used from several threads."""

    def __init__(self, plan: SidePlan, kit: Kit, importer: Importer) -> None:
        self.plan, self._kit, self._importer = plan, kit, importer
        self._planned = {cell.key: cell for cell in plan.cells}
        self._sources: dict[CellKey, dict[str, Path] | Failure] = {}
        self._programs: dict[CellKey, ProgramReader | str] = {}
        self._lock = threading.Lock()

    def trace(self, cell: Cell, row: Dispatch, before: DispatchTrace | None) -> DispatchTrace:
        """One dispatch; `before`: what is known, where LLVM's own passes are wanted, too."""
        planned = self._planned[cell.key]
        argv = (*planned.argv, LIFTED_LIMIT_FLAG) if cell.status == "over-stack-limit" else planned.argv
        sources = self._sources_of(planned, argv)
        if isinstance(sources, Failure) or row.executable not in sources:
            why = sources.first_line if isinstance(sources, Failure) else "the compiler wrote no source of it"
            return DispatchTrace((), why)
        if before is None:
            return _traced(self._kit, argv, sources[row.executable], row, trace_options(row.name))
        return _with_llvm(self._kit, argv, sources[row.executable], row, before)

    def program(self, key: CellKey) -> ProgramReader | str:
        """The passes over a cell's whole program, or why there are none, read once."""
        with self._lock:
            if key not in self._programs:
                self._programs[key] = self._read_program(self._planned[key])
            return self._programs[key]

    def _read_program(self, planned: PlannedCell) -> ProgramReader | str:
        source = self._importer.source(planned.model)
        if isinstance(source, Failure):
            return source.first_line
        with temporary_directory("program-", self._kit.session.scratch) as directory:
            model = directory / "model.mlir"
            text = LOCATION.sub(b"", source.read_bytes())
            model.write_bytes(text)
            why = _compile(self._kit, (*planned.argv, *_PROGRAM, f"{_TREE}passes"), model, directory)
            return why or ProgramReader(directory / "passes", text)

    def _sources_of(self, planned: PlannedCell, argv: Sequence[str]) -> dict[str, Path] | Failure:
        with self._lock:
            if planned.key not in self._sources:
                source = self._importer.source(planned.model)
                out = self._kit.session.scratch / f"{self.plan.label}-{len(self._sources)}"
                out.mkdir()
                self._sources[planned.key] = (
                    source
                    if isinstance(source, Failure)
                    else executable_sources(self._kit, argv, Source(planned.model.name, source), out)
                )
            return self._sources[planned.key]


@contextmanager
def _tracers(plans: Sequence[SidePlan], resources: Resources) -> Iterator[dict[str, _SideTracer]]:
    """Label → what traces dispatches of that side."""
    with temporary_directory("trace-") as scratch, ExitStack() as stack:
        tracers = {}
        for plan in plans:
            session = Session(scratch, resources.timeout_seconds, resources.cancel, Meter())
            bindings = stack.enter_context(closing(working(plan.toolchain, resources.cancel)))
            kit = Kit(plan.toolchain, session, bindings)  # the compiler itself is asked nothing where all is known
            tracers[plan.label] = _SideTracer(plan, kit, Importer(plan.toolchain, session))
        yield tracers


def expected_ms(row: Dispatch) -> int:
    """What the compiler takes to print all of its passes over it, of CPU time.

    Measured from 3.11.0 to 3.13.0, on all targets: MLIR's with the milestones of LLVM's 0.25 s for small ones, 1.6 s
    for 29 KB of code, 11.7 s for 146 KB; all of LLVM's 1.3 s more for 38 KB, 5.4 s for 50 KB, 6 s for 218 KB.
    """
    return 500 + 140 * (row.code_bytes or 0) // 1024


def is_formed(delta: DispatchDelta) -> bool:
    """Whether earlier passes than those of its target made it another one, or one that the other side lacks."""
    return delta.cause in EARLY_CAUSES and (is_lone(delta) or delta.matched != "same-source")


def is_lone(delta: DispatchDelta) -> bool:
    """Whether a side alone has it."""
    return delta.base is None or delta.head is None


def _same_programs(sides: Mapping[str, Snapshot]) -> dict[CellKey, CellKey]:
    """Cell → the first one of its model whose dispatches all have the same IR on each side, whatever runs at loading.

    The passes over one of these programs stand for all of them, and a trace says for which target they were printed.
    """
    cells = {cell.key: list[object]() for side in sides.values() for cell in side.cells}
    for side in sides.values():
        for cell in side.cells:
            rows = cell.program.sources if cell.program else ()
            own = [(one.executable, one.source) for one in rows if not ProgramReader.is_unseen(one.executable)]
            cells[cell.key] += [own] if own else []
    first: dict[CellKey, CellKey] = {}
    for key, mine in sorted(cells.items()):
        alike = (one for one in first.values() if one.model == key.model and cells[one] == mine)
        first[key] = next(alike, key) if len(mine) == len(SIDES) else key
    return first


class Budget:
    """The time for tracing, by what traces are expected to take.

    `here`: the sides whose compilers are here; `same`: cell → the one whose program is printed for both; `seconds`:
    CPU time in all, None without a limit.
    """

    def __init__(
        self,
        sides: Mapping[str, Snapshot],
        here: Collection[str],
        same: Mapping[CellKey, CellKey],
        seconds: float | None,
    ) -> None:
        self._here, self._same = here, same
        self._left_ms = inf if seconds is None else seconds * 1000
        cells = [(side, cell) for side, snapshot in sides.items() for cell in snapshot.cells]
        self._compiled_ms = {(side, cell.key): cell.value("compile_cpu_ms") or 0 for side, cell in cells}
        self._paid = set[tuple[str, str, CellKey]]()  # what is made once for several dispatches

    def take(self, moved: Sequence[Moved], *, codes: bool = False) -> list[Moved]:
        """Those that there is time for; one that does not fit in is passed over.

        They are taken in their order, or the largest first where that explains more bytes: a second more or less, which
        a compile takes each time, must not decide whether the largest change of all gets its pass.

        `codes`: of those that earlier passes formed, too, the passes of their target.
        """
        largest = sorted(moved, key=_moved_bytes)[-1:]
        orders = moved, [*largest, *(one for one in moved if one not in largest)]
        fitting = [self._fitting(order, codes) for order in orders]
        chosen, self._left_ms, self._paid = max(fitting, key=lambda one: sum(map(_moved_bytes, one[0])))
        return chosen

    def _fitting(self, moved: Sequence[Moved], codes: bool) -> tuple[list[Moved], float, set[tuple[str, str, CellKey]]]:
        """What fits, taken in this order; the time that is left then, and what is paid."""
        chosen, left_ms, paid = list[Moved](), self._left_ms, set(self._paid)
        for key, delta in moved:
            rows = {side: row for side, row in _rows(delta).items() if side in self._here}
            if is_formed(delta) and not codes:
                shared = {("program", side, self._same[key]): self._program_ms(side, key.model) for side in self._here}
                own_ms = 0
            else:
                shared = {("sources", side, key): self._compiled_ms[side, key] // 4 for side in rows}
                own_ms = sum(map(expected_ms, rows.values()))
            cost_ms = own_ms + sum(cost_ms for what, cost_ms in shared.items() if what not in paid)
            if cost_ms <= left_ms:
                left_ms -= cost_ms
                paid |= shared.keys()
                chosen.append((key, delta))
        return chosen, left_ms, paid

    def _program_ms(self, side: str, model: str) -> int:
        """Half of a model's fastest compile: what is before code generation takes as long for all targets."""
        every = [ms for (other, key), ms in self._compiled_ms.items() if (other, key.model) == (side, model) and ms]
        return min(every, default=0) // 2


def _moved_bytes(one: Moved) -> int:
    return abs(moved_bytes(one[1]) or 0)


def _rows(delta: DispatchDelta) -> dict[str, Dispatch]:
    """Side → the dispatch there, where it has one."""
    return {side: row for side, row in zip(SIDES, (delta.base, delta.head), strict=True) if row is not None}


Traces = dict[tuple[str, CellKey], dict[str, DispatchTrace]]  # Side and cell → entry point → its trace


class _Pairs:
    """Traces dispatches on both sides.

    Attributes:
        known: at first what the sides brought whose compilers are not here, and of the others what the cache has.
    """

    def __init__(
        self,
        sides: Mapping[str, Snapshot],
        tracers: Mapping[str, _SideTracer],
        known: Traces,
        same: Mapping[CellKey, CellKey],
    ) -> None:
        self._tracers, self.known, self._same = tracers, known, same
        self._cells = {(side, cell.key): cell for side, snapshot in sides.items() for cell in snapshot.cells}

    def trace(self, key: CellKey, delta: DispatchDelta, *, codes: bool) -> None:
        """One dispatch: MLIR's passes, and LLVM's where the sides part behind those, or there is one side alone.

        One that got another program, or was formed otherwise: the passes over the program.

        `codes`: of such a one, too, the passes of its target, behind those over the program.
        """
        rows = _rows(delta)
        if not is_formed(delta):
            self._trace_code(key, rows)
            return
        programs = {side: self._program(key, rows, side) for side in SIDES}
        if codes:
            for side, row in rows.items():
                del self.known[side, key][row.name]
            self._trace_code(key, rows)
            for side, row in rows.items():
                if one := self.known[side, key].get(row.name):
                    steps, printed_for = (*programs[side].steps, *one.steps), programs[side].printed_for
                    self.known[side, key][row.name] = replace(one, steps=steps, printed_for=printed_for)
            return
        is_alike = len(rows) == len(SIDES) and not any(one.why for one in programs.values())
        is_alike &= not parting(*programs.values()).operations.get(REGION)
        for side, row in rows.items():
            other = next(one for name, one in programs.items() if name != side)
            trace = replace(programs[side], steps=(), why=NO_TIME) if is_alike else programs[side]
            if len(rows) < len(SIDES):
                trace = replace(trace, across=other.steps, why=trace.why or other.why)
            self.known.setdefault((side, key), {})[row.name] = trace

    def _program(self, key: CellKey, rows: Mapping[str, Dispatch], side: str) -> DispatchTrace:
        """What the passes over one side's program did at the places that a dispatch has on either side."""
        if self._tracers.keys() < set(SIDES):
            return DispatchTrace((), NOT_STORED)
        read = {name: self._tracers[name].program(self._same[key]) for name in SIDES}
        readers = [one for one in read.values() if isinstance(one, ProgramReader)]
        if len(readers) < len(SIDES):
            return DispatchTrace((), next(f"{name}: {one}" for name, one in read.items() if isinstance(one, str)))
        if readers[0].model != readers[1].model:
            return DispatchTrace((), OTHER_MODEL)
        for name, reader in zip(SIDES, readers, strict=True):
            own = [row for row in self._cells[name, key].dispatches if not reader.is_unseen(row.executable)]
            if any(reader.names.get(row.executable) != row.name for row in own):
                return DispatchTrace((), f"{name}: {OTHER_DISPATCHES}")
        places = joint_places(readers, [rows[name].executable if name in rows else "" for name in SIDES])
        steps = dict(zip(SIDES, readers, strict=True))[side].steps(places)
        printed_for = "" if self._same[key] == key else self._same[key].target
        return DispatchTrace(steps, "" if steps else NO_PLACES, printed_for=printed_for)

    def _trace_code(self, key: CellKey, rows: Mapping[str, Dispatch]) -> None:
        known = {side: self.known.setdefault((side, key), {}) for side in rows}
        for side, row in rows.items():
            if side not in self._tracers and row.name not in known[side]:
                for here in self._tracers.keys() & rows.keys():
                    known[here][rows[here].name] = DispatchTrace((), NOT_STORED)
                return
        self._trace(key, rows, [side for side in rows if (one := known[side].get(rows[side].name)) is None or one.why])
        is_late = len(rows) < len(SIDES) or parting(*(known[side].get(rows[side].name) for side in SIDES)).is_late
        if is_late:
            short = [side for side in rows if all(one.level != LLVM for one in known[side][rows[side].name].steps)]
            self._trace(key, rows, short, llvm=True)

    def is_open(self, key: CellKey, delta: DispatchDelta) -> bool:
        """Whether earlier passes form as many dispatches on both sides, so that its target's are to be looked at."""
        if delta.head is None or not is_formed(delta):
            return False
        return self.known["head", key][delta.head.name].why == NO_TIME

    def _trace(self, key: CellKey, rows: Mapping[str, Dispatch], sides: Sequence[str], *, llvm: bool = False) -> None:
        for side in sides:
            if side in self._tracers:
                known = self.known[side, key]
                before = known[rows[side].name] if llvm else None
                known[rows[side].name] = self._tracers[side].trace(self._cells[side, key], rows[side], before)


def with_traces(
    plans: Sequence[SidePlan],
    sides: Mapping[str, Snapshot],
    moved: Sequence[Moved],
    resources: Resources,
    seconds: float | None = None,
) -> dict[str, Snapshot]:
    """The sides, with traces of these dispatches.

    `plans`: of the sides whose compilers are here; of another one those traces count that it brought; `moved`:
    dispatches in the order in which they are traced; `seconds`: CPU time that it may cost; None without a limit.
    """
    here = {plan.label: plan for plan in plans}
    same = _same_programs(sides)
    budget, known = Budget(sides, here.keys(), same, seconds), _known(here, sides, moved, resources)
    chosen = budget.take(moved)
    with _tracers(plans, resources) as tracers:
        pairs = _Pairs(sides, tracers, known, same)

        def trace(those: Sequence[Moved], *, codes: bool) -> None:
            tasks = [
                Task(-place, f"trace {delta.name} of {key}", partial(pairs.trace, key, delta, codes=codes))
                for place, (key, delta) in enumerate(those)
            ]
            run_all(tasks, resources.jobs, resources.cancel.set, resources.progress)

        trace(chosen, codes=False)
        trace(budget.take([one for one in chosen if pairs.is_open(*one)], codes=True), codes=True)
    return {
        side: _with_those(here[side], snapshot, moved, chosen, known, resources) if side in here else snapshot
        for side, snapshot in sides.items()
    }


def _known(
    here: Mapping[str, SidePlan], sides: Mapping[str, Snapshot], chosen: Sequence[Moved], resources: Resources
) -> Traces:
    known: Traces = {}
    for side, snapshot in sides.items():
        if side not in here:
            known |= {(side, cell.key): dict(cell.traces) for cell in snapshot.cells}
            continue
        digest, keys = here[side].compiler.info.digest, {key for key, _ in chosen}
        for planned in here[side].cells:
            cached = resources.cache.load(cell_key(digest, planned)) if planned.key in keys else None
            known[side, planned.key] = dict(cached.traces) if cached else {}
    return known


def _without_program(trace: DispatchTrace) -> DispatchTrace:
    """What another comparison may have, too: of which places the program's steps are depends on the other side."""
    return replace(trace, steps=tuple(step for step in trace.steps if step.level != PROGRAM), across=())


def _with_those(
    plan: SidePlan,
    snapshot: Snapshot,
    moved: Sequence[Moved],
    chosen: Sequence[Moved],
    known: Traces,
    resources: Resources,
) -> Snapshot:
    """The side with the traces that were asked for and no others; the cache holds all that are whole from now on."""
    planned = {cell.key: cell for cell in plan.cells}

    def names(pairs: Sequence[Moved]) -> set[tuple[CellKey, str]]:
        return {(key, row.name) for key, delta in pairs for side, row in _rows(delta).items() if side == plan.label}

    wanted, late = names(chosen), names(moved) - names(chosen)
    cells = []
    for cell in snapshot.cells:
        traces = known.get((plan.label, cell.key), {})
        if cell.key in planned and traces:
            alone = {name: _without_program(trace) for name, trace in traces.items() if trace.is_whole}
            whole = {name: trace for name, trace in alone.items() if trace.steps}
            resources.cache.store(cell_key(plan.compiler.info.digest, planned[cell.key]), replace(cell, traces=whole))
        own = {row.name for row in cell.dispatches}
        shown = {name: trace for name, trace in traces.items() if (cell.key, name) in wanted}
        shown |= {name: DispatchTrace((), NO_TIME) for name in own if (cell.key, name) in late}
        cells.append(replace(cell, traces=shown))
    return replace(snapshot, cells=tuple(cells))


def traced(plans: Sequence[SidePlan], sides: Mapping[str, Snapshot], work: Work) -> dict[str, Snapshot]:
    """Both sides, with traces of what moved most without a cause that is known otherwise."""
    deltas = diff(sides["base"], sides["head"])
    causes = explanations(sides["base"], sides["head"], deltas, work.config.components)
    moved = worth_tracing(causes, changed_models(sides["base"], sides["head"]))
    if not moved or not any(plan.compiler.is_traced for plan in plans):
        return dict(sides)
    work.show.say(f"traces {plural(len(moved), 'dispatch')} through the passes of both compilers")
    with work.resources() as resources:
        return with_traces(plans, sides, moved, resources, seconds_for(sides))


def with_largest_traced(plan: SidePlan, snapshot: Snapshot, work: Work, most: int = MOST_STORED) -> Snapshot:
    """A side that others will be compared with when its compiler is gone, with traces of its largest dispatches.

    `most`: how many at most; as many less as there is no time for.
    """
    rows = [(cell.key, row) for cell in snapshot.cells for row in cell.dispatches if row.code_bytes]
    rows.sort(key=lambda one: (-(one[1].code_bytes or 0), one[0], one[1].name))
    if not rows or not plan.compiler.is_traced:
        return snapshot
    largest = [(key, DispatchDelta(None, row, "", None)) for key, row in rows[:most]]
    work.show.say(
        f"traces the {plural(len(largest), 'largest dispatch')} through the passes, for pull requests to come"
    )
    with work.resources() as resources:
        return with_traces([plan], {plan.label: snapshot}, largest, resources, seconds_for({plan.label: snapshot}))[
            plan.label
        ]


def seconds_for(sides: Mapping[str, Snapshot]) -> float:
    """CPU time that tracing may cost: a share of what both sides cost to compile, and a little in any case."""
    compiled_ms = sum(cell.value("compile_cpu_ms") or 0 for one in sides.values() for cell in one.cells)
    return max(LITTLE_SECONDS, TIME_SHARE * compiled_ms / 1000)


def worth_tracing(explanations: Mapping[CellKey, Explanation], edited: Collection[str] = ()) -> list[Moved]:
    """What is to be traced, by the bytes that a second explains, most first: ten of 4 KB before one of 10 KB.

    Of each target the largest dispatches of which nobody knows a cause but other code, or that earlier passes formed
    otherwise of a model that nobody `edited`, until 0.9 of its bytes have a knob or these passes.
    """
    deltas = [(key, delta) for key, explanation in explanations.items() for delta in explanation.dispatches]
    moved = [(key, delta, abs(moved_bytes(delta) or 0)) for key, delta in deltas]
    wanted = Counter[str]()  # tenths of bytes that still have neither
    for key, delta, size in moved:
        wanted[key.target] += size * (MOVED_TENTHS - (10 if delta.cause == "strategy" else 0))
    chosen, read = [], set[CellKey]()
    for key, delta, size in sorted(moved, key=lambda one: (-one[2], one[0], one[1].name)):
        is_early = is_formed(delta) and key.model not in edited  # after the first one of a cell the others cost nothing
        is_traced = is_early or (delta.cause == "codegen" and not is_lone(delta))
        if size and is_traced and (wanted[key.target] > 0 or (is_early and key in read)):
            wanted[key.target] -= 10 * size
            chosen.append((key, delta, size))
            read |= {key} if is_early else set()
    chosen = chosen[:MOST]
    formed = Counter[str]()  # the bytes that the passes over a model's program may explain
    for key, delta, size in chosen:
        formed[key.model] += size if is_formed(delta) else 0
    rates = [
        formed[key.model] // PROGRAM_SECONDS
        if is_formed(delta)
        else size * 1000 // sum(expected_ms(row) for row in (delta.base, delta.head) if row)
        for key, delta, size in chosen
    ]
    ranked = sorted(zip(rates, chosen, strict=True), key=lambda one: (-one[0], one[1][0], one[1][1].name))
    return [(key, delta) for _, (key, delta, _) in ranked]
