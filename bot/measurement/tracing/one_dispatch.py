"""One dispatch compiled alone, with its IR printed after each pass: counted as it streams by, never kept.

MLIR's passes and two milestones of LLVM's are printed in one compile. All of LLVM's cost far more (20 s and 240 MB for
a dispatch of 146 KB), so that they are asked for by themselves, where the sides part behind MLIR.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.compiling import Kit, Source, compile_to
from bot.compiler.diagnostics import failure, unknown_option
from bot.compiler.tools.probe import UNTHREADED
from bot.core.codec.digests import differ
from bot.core.values.snapshot import Dispatch, Failure
from bot.core.values.trace import MACHINE, MLIR, DispatchTrace, IrAround
from bot.errors import MalformedBinary
from bot.readers.code.object_code import function_codes
from bot.readers.dispatches import UNSPEAKABLE
from bot.readers.formats.artifact import read_executable
from bot.readers.passes import AroundReader, PassReader
from bot.system.files import temporary_directory, whole_or_nothing
from bot.system.processes import Outcome, run

_ALONE = ("--compile-from=executable-sources", "--compile-mode=hal-executable")
_ELIDED = "--mlir-elide-elementsattrs-if-larger=8"
_PASSES = ("--mlir-print-ir-after-all", "--mlir-print-ir-after-change")
_MILESTONES = "--print-after=finalize-isel,prologepilog,prolog-epilog"
"""The first and nearly the last look at machine instructions; a name that a release does not know is ignored."""
_LLVM_PASSES = ("--print-changed=quiet", "--print-loop-func-scope")
_OBJECTS = "--iree-llvmcpu-keep-linker-artifacts"
_NAMED = re.compile(rb"hal\.executable (?:public |private )?@([\w$.-]+)")


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

    Args:
        command: that gives the cell's artifact.
    """
    before, _, model = command.rpartition(" -o ")
    fed = f" < {model.partition(' < ')[2]}" if " < " in model else ""
    whole = f"{before} {shlex.join(source_options('sources'))} -o /dev/null{fed}"
    flags = shlex.split(before[before.index("iree-compile") :])[2:]
    source = f"sources/*_{shlex.quote(row.executable)}.mlir"
    return whole, f"iree-compile {source} {shlex.join((*flags, *trace_options(row.name)))} -o /dev/null"


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
                    sources[name[1].decode()] = path
    return sources


def trace_one(kit: Kit, argv: Sequence[str], source: Path, row: Dispatch) -> DispatchTrace:
    """The passes of one compile over the entry point of `row`, LLVM's by their milestones."""
    return _traced(kit, argv, source, row, trace_options(row.name))


def with_llvm(kit: Kit, argv: Sequence[str], source: Path, row: Dispatch, trace: DispatchTrace) -> DispatchTrace:
    """The trace with all passes of LLVM in place of their milestones; as it is where these cannot be had."""
    whole = _traced(kit, argv, source, row, trace_options(row.name, llvm=True))
    cpu_ms = trace.cpu_ms + whole.cpu_ms
    if not whole.is_whole:
        return DispatchTrace(trace.steps, trace.why, trace.same_code, cpu_ms)
    front = tuple(step for step in trace.steps if step.level == MLIR)
    return DispatchTrace((*front, *whole.steps), trace.why, trace.same_code, cpu_ms)


class _Errors:
    """What is kept of a traced compile's output beside the counts: the lines that say what went wrong."""

    def __init__(self, reader: PassReader) -> None:
        self._reader = reader

    def __call__(self, chunk: bytes) -> bytes:
        self._reader.feed(chunk)
        return b"".join(line for line in chunk.splitlines(keepends=True) if _ERROR.search(line[:200]))


_UNREGISTERED = "Cannot find option named"
_ERROR = re.compile(rb"error: |LLVM ERROR|Unknown command line argument|" + _UNREGISTERED.encode())


def _traced(kit: Kit, argv: Sequence[str], source: Path, row: Dispatch, options: Sequence[str]) -> DispatchTrace:
    reader = PassReader(row.name)
    with temporary_directory("trace-", kit.scratch) as directory:
        outcome = _compiled(kit, (*argv, *options, _OBJECTS), source, reader, directory)
        unknown = unknown_option(outcome.output)
        rest = [option for option in (*options, _OBJECTS) if option.partition("=")[0] != unknown]
        if unknown and len(rest) <= len(options):
            return _traced(kit, argv, source, row, [option for option in rest if option != _OBJECTS])
        why = "" if outcome.ok else failure(outcome, kit.timeout_seconds).first_line
        why = why or ("" if reader.steps else "the compiler printed no pass over it")
        same = _is_same(row, directory) if outcome.ok else None
        return DispatchTrace(tuple(reader.steps), why, same, outcome.cpu_ms)


def _compiled(kit: Kit, flags: Sequence[str], source: Path, reader: PassReader, directory: Path) -> Outcome:
    (directory / "tmp").mkdir()
    outcome = run(
        [str(kit.toolchain.binary), "-", *flags, "-o", "executable"],
        cancel=kit.cancel,
        stdin=source,
        cwd=directory,
        environment={"TMPDIR": str(directory / "tmp")},
        timeout_seconds=kit.timeout_seconds,
        keeping=_Errors(reader),
    )
    kit.meter.add(source.stem, outcome.cpu_ms)
    return outcome


_NAMES = re.compile(r"[\w-]+")
_AROUND = {MLIR: ("--mlir-print-ir-before=", "--mlir-print-ir-after="), MACHINE: ("--print-before=", "--print-after=")}
"""LLVM's own passes are told by their classes, which these options do not know."""


def with_around(
    kit: Kit, argv: Sequence[str], source: Path, row: Dispatch, trace: DispatchTrace, wanted: IrAround
) -> DispatchTrace:
    """The trace with the IR around one run of a pass, by one more compile that prints that pass alone.

    A pass that cannot be printed alone is looked for among all that the compiler prints.
    """
    level = trace.steps[wanted.step].level
    every = _PASSES if level == MLIR else _LLVM_PASSES
    named = [f"{option}{wanted.name}" for option in _AROUND.get(level, ()) if _NAMES.fullmatch(wanted.name)]
    cpu_ms, why = trace.cpu_ms, ""
    for options in (named, every) if named else (every,):
        reader = AroundReader(row.name, trace, wanted)
        printed = (*_ALONE, *options, _ELIDED, f"--filter-print-funcs={row.name}", UNTHREADED)
        with temporary_directory("trace-", kit.scratch) as directory:
            outcome = _compiled(kit, (*argv, *printed), source, reader, directory)
        cpu_ms += outcome.cpu_ms
        if reader.texts:
            before, after = reader.texts
            return replace(trace, around=replace(wanted, before=before, after=after), cpu_ms=cpu_ms)
        is_whole = outcome.ok or _UNREGISTERED in outcome.output
        why = "" if is_whole else failure(outcome, kit.timeout_seconds).first_line
        if wanted.idle or why:
            break
    why = why or ("it does not run there at this point" if wanted.idle else "the compiler printed no such run of it")
    return replace(trace, around=replace(wanted, why=why), cpu_ms=cpu_ms)


def _is_same(row: Dispatch, directory: Path) -> bool | None:
    """Whether the code is that of the artifact; None where either is not known."""
    codes = [code for name, code in _codes(directory) if UNSPEAKABLE.sub("_", name) == UNSPEAKABLE.sub("_", row.name)]
    if len(codes) != 1 or codes[0] is None or row.code is None:
        return None
    return not differ(codes[0], row.code)


def _codes(directory: Path) -> Iterable[tuple[str, str | None]]:
    """Function and digest of its code, of all that the compile left."""
    objects = sorted((directory / "tmp").glob("*.o"))
    try:
        if objects:
            return [
                (name, one.code) for path in objects for name, one in function_codes(whole_or_nothing(path)).items()
            ]
        return [
            (one.name, one.code) for one in read_executable(whole_or_nothing(directory / "executable")).entry_points
        ]
    except MalformedBinary:
        return []
