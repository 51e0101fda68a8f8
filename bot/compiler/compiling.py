"""Compile one cell with its printed command.

Additional options leave files beside the artifact. The model arrives on standard input
and every output has a fixed relative name, because paths end up in artifacts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from bot.compiler.bindings import QUESTIONS, Bindings, questions
from bot.compiler.compiler import Compiled, Result, Session
from bot.compiler.devices import own_devices
from bot.compiler.diagnostics import (
    Undumped,
    failure,
    stack_figure_bytes,
    without_places,
)
from bot.compiler.machine_limits import require_room
from bot.compiler.static_library import library_path, make_room_for_library
from bot.compiler.toolchain import UNTHREADED, Toolchain
from bot.core.backends import BACKENDS
from bot.core.mappings import known_values
from bot.core.planned import LIFTED, LIFTED_LIMIT_FLAG
from bot.core.snapshot import NOT_SHIPPED, Failure
from bot.core.this_machine import is_local
from bot.errors import CompilerUnavailable, InputError
from bot.system.files import (
    MOST_READ_BYTES,
    read_bounded,
    require_bounded,
    temporary_directory,
)
from bot.system.pipes import whole_lines
from bot.system.processes import Outcome, run
from bot.system.trees import require_utf8

ARTIFACT = "out.vmfb"
STACK_USAGE = "stack-usage.txt"
STATISTICS = "statistics.json"
STATIC_LIBRARY = "static-library.o"
PROGRAM = "program.json"
ALLOCAS = "allocas.json"
STRATEGIES = "strategies.json"
EXECUTABLE_SOURCES = "executable-sources.mlir"
"""The names of a compile's files.

They are those of the compiler, and the answers of the IR worker as unread JSON.
"""
_PHASES = "phases"
_TIMING = ("--mlir-timing", "--mlir-timing-display=list")
_THE_ARTIFACT = "the artifact"
_MOST_SOURCES_BYTES = 1 << 23
"""The limit for cached programs: larger ones, such as with weights, fill the cache."""
_MOST_TABLE_BYTES = 1 << 26
"""The most bytes that are read of a table.

The statistics have one line, the stack usage a line for each function.
"""
_BACKEND_OPTIONS = (
    "--iree-hal-target-backends",
    "--iree-hal-local-target-device-backends",
)
_GATED = {backend.name for backend in BACKENDS if backend.has_stack_gate}
_GATE = "stack-limit"  # The stage of a failure that is the stack gate's
_PLACES = "--mlir-print-debuginfo"  # Keeps the model's own names in the phases
_REQUIRED = {
    "program": {"dispatch_creation", "stream"},
    "allocas": {"executable_targets"},
    "strategies": {"executable_configurations"},
}
"""Phases without which a question is not asked."""


@dataclass(frozen=True, slots=True)
class CompileSetup:
    """How one side compiles: its compiler and options, and the reader of its IR."""

    toolchain: Toolchain
    session: Session
    bindings: Bindings  # what reads its IR
    options: tuple[str, ...] = ()  # the measuring options that this compiler knows
    # phase → IR of an executable of the program (`bot.study.neighbours`), which stands
    # in front of an executable that is compiled from that phase on
    neighbour: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompileInput:
    """The file that a compile reads, and the name of its model."""

    model: str
    path: Path


@dataclass(frozen=True, slots=True)
class TimedCompile:
    """The result of a compile with the compiler's own report of times.

    It has the report, and when each phase ended.
    """

    output: str
    started_ns: int
    # `7.stream`, or `artifact` → when its file was complete
    ended_ns: Mapping[str, int]


def _invoke(
    setup: CompileSetup,
    argv: Sequence[str],
    source: CompileInput,
    cwd: Path,
    *,
    measuring: bool = True,
    layout: int = 0,
) -> Outcome:
    (cwd / "tmp").mkdir(exist_ok=True)
    make_room_for_library(argv, cwd)
    if measuring:
        options = setup.options
    else:
        options = tuple(option for option in setup.options if option == UNTHREADED)
    command = [str(setup.toolchain.binary), "-", *argv, *options, "-o", ARTIFACT]
    try:
        outcome = run(
            command,
            layout=layout,
            cancel=setup.session.cancel,
            stdin=source.path,
            cwd=cwd,
            environment={"TMPDIR": str(cwd / "tmp")},
            timeout_seconds=setup.session.timeout_seconds,
            keeping=Undumped(),
        )
    except OSError as error:
        raise CompilerUnavailable(
            f"cannot be started: {error}", where=setup.toolchain.info.spec
        ) from None
    setup.session.meter.add(source.model, outcome.cpu_ms)
    require_room(outcome, cwd)
    return outcome


def _file(path: Path, label: str, most_bytes: int = MOST_READ_BYTES) -> bytes | None:
    """Return the content of a file; None if there is none.

    Raises InputError if the file is too large to be read.
    """
    try:
        return read_bounded(path, label, most_bytes)
    except OSError:
        return None


def compile_to(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput
) -> str | Failure:
    """Return the text that a compile ends with.

    The flags end it before there is an artifact.
    """
    data = _made(setup, argv=argv, source=source, label="the IR")
    if isinstance(data, Failure):
        return data
    return data.decode("utf-8", "replace")


def artifact_of(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput, out: Path
) -> Failure | None:
    """Write the artifact, and measure nothing; return the failure if there is none."""
    data = _made(setup, argv=argv, source=source, label=_THE_ARTIFACT)
    if isinstance(data, Failure):
        return data
    out.write_bytes(data)
    return None


def _made(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput, label: str
) -> bytes | Failure:
    with temporary_directory("cell-", setup.session.scratch) as directory:
        try:
            outcome = _invoke(
                setup, argv=argv, source=source, cwd=directory, measuring=False
            )
            data = None
            if outcome.ok:
                data = _file(directory / ARTIFACT, label)
        except InputError as error:
            return Failure("read", error.what)
        if data is None:
            return failure(outcome, setup.session.timeout_seconds)
        return data


def timed(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput
) -> TimedCompile | Failure:
    """Compile once more, with the compiler's own report of times alone."""
    with temporary_directory("cell-", setup.session.scratch) as directory:
        started = directory / "started"
        started.touch()
        try:
            outcome = _invoke(
                setup,
                argv=(*argv, *_TIMING, f"--dump-compilation-phases-to={_PHASES}"),
                source=source,
                cwd=directory,
                measuring=False,
            )
        except InputError as error:
            return Failure("read", error.what)
        if not outcome.ok:
            return failure(outcome, setup.session.timeout_seconds)
        ends = dict[str, int]()
        for path in (directory / _PHASES).glob("*.mlir"):
            ends[_phase_of(path)] = path.stat().st_mtime_ns
        ends["artifact"] = (directory / ARTIFACT).stat().st_mtime_ns
        return TimedCompile(outcome.output, started.stat().st_mtime_ns, ends)


def _phase_of(path: Path) -> str:
    """Return `7.stream` of `model.7.stream.mlir`: the compiler's number, and its name."""
    return ".".join(path.name.split(".")[-3:-1])


def _collect(
    setup: CompileSetup, argv: Sequence[str], directory: Path, outcome: Outcome
) -> Compiled:
    """Return what the compile left behind.

    Raises InputError for a file that is too large to be read.
    """
    objects = sorted((directory / "tmp").glob("*.o"))
    for path in objects:
        require_utf8(path.name)
    objects_bytes = sum(require_bounded(path, "an object file") for path in objects)
    if objects_bytes > MOST_READ_BYTES:
        raise InputError(
            f"the object files have {objects_bytes:,} bytes, and the limit is"
            f" {MOST_READ_BYTES:,}"
        )
    files: dict[str, bytes | None] = {
        ARTIFACT: read_bounded(directory / ARTIFACT, _THE_ARTIFACT)
    }
    files |= {path.name: read_bounded(path, "an object file") for path in objects}
    library = library_path(argv, directory)
    if library is not None:
        files[STATIC_LIBRARY] = _file(library, "the static library")
    for name, label in (
        (STACK_USAGE, "the file of the stack usage"),
        (STATISTICS, "the file of the statistics"),
    ):
        files[name] = _file(directory / name, label, _MOST_TABLE_BYTES)
    for path in (directory / _PHASES).glob(f"*.{EXECUTABLE_SOURCES}"):
        if path.stat().st_size <= _MOST_SOURCES_BYTES:
            files[EXECUTABLE_SOURCES] = _file(path, "the IR of the executables")
    files |= _answers(setup, argv, directory)
    # The reason is read last, as the bindings may give up over any of the questions.
    reasons = {}
    if setup.bindings.reason:
        reasons = dict.fromkeys(QUESTIONS, setup.bindings.reason)
    if not any(option.startswith("--stack-usage-file") for option in setup.options):
        reasons["stack_usage"] = "this compiler has no --stack-usage-file"
    return Compiled(
        known_values(files), outcome.cpu_ms, outcome.peak_rss_kib, reasons=reasons
    )


def _asks_for_stack_gate(flag: str) -> bool:
    """Return True for a flag that chooses a backend whose stack the compiler limits."""
    option, _, backend = flag.partition("=")
    return option in _BACKEND_OPTIONS and backend in _GATED


def _answers(
    setup: CompileSetup, argv: Sequence[str], directory: Path
) -> dict[str, bytes | None]:
    """Return file name → the bindings' answer about the dumped IR, or None."""
    answers = dict[str, bytes | None]()
    is_gated = any(map(_asks_for_stack_gate, argv))
    for question, paths in questions(directory / _PHASES).items():
        if question == "allocas" and not is_gated:
            continue
        for path in paths.values():
            phase = ".".join(path.stem.split(".")[-2:])
            require_bounded(path, f"the IR of the phase {phase}")
        if paths.keys() >= _REQUIRED[question]:
            arguments = {name: str(path) for name, path in paths.items()}
            answer = setup.bindings.ask(question, **arguments)
            answers[f"{question}.json"] = None if answer is None else answer.encode()
    return answers


def _compile_once(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput, layout: int
) -> Result:
    with temporary_directory("cell-", setup.session.scratch) as directory:
        try:
            outcome = _invoke(
                setup,
                argv=[*argv, _PLACES],
                source=source,
                cwd=directory,
                layout=layout,
            )
            if outcome.ok and (directory / ARTIFACT).is_file():
                if refusal := own_devices(directory / _PHASES):
                    return Failure(NOT_SHIPPED, refusal)
                return _collect(setup, argv=argv, directory=directory, outcome=outcome)
        except InputError as error:
            return Failure("read", error.what)
        # the printed command does not ask for locations
        output = without_places(whole_lines(outcome.output))
        failed = failure(replace(outcome, output=output), setup.session.timeout_seconds)
        is_gate = (
            failed.figure_bytes is not None
            and failed.figure_bytes == stack_figure_bytes(output)
        )
        if is_gate:
            return structs.replace(failed, stage=_GATE)
        return failed


def compile_directly(
    setup: CompileSetup, argv: Sequence[str], source: CompileInput, *, layout: int = 0
) -> Result:
    """Compile one cell; if the stack gate refuses, compile again with the gate lifted.

    If the second compile fails, its failure is the result. But if that failure says
    nothing of the compiler and the model, the first failure is the result.

    `layout`: of the compiler's memory, as in `bot.system.memory_layout`.
    """
    first = _compile_once(setup, argv=argv, source=source, layout=layout)
    if not isinstance(first, Failure) or first.stage != _GATE:
        return first
    lifted = _compile_once(
        setup, argv=(*argv, LIFTED_LIMIT_FLAG), source=source, layout=layout
    )
    if isinstance(lifted, Compiled):
        return replace(lifted, refusal=first)
    if lifted.stage not in ("compile", _GATE) or is_local(lifted.message):
        return structs.replace(first, stage="compile")
    return structs.replace(lifted, stage="compile", message=f"{LIFTED}{lifted.message}")
