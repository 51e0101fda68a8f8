"""Count the IR that one compile prints after each pass, as it streams by.

The IR is never kept. A dispatch is compiled alone, from its executable's source. One
compile prints MLIR's passes and two milestones of LLVM's. Printing all of LLVM's passes
costs far more (20 s and 240 MB for a dispatch of 146 KB). So they are printed only if
the sides part behind MLIR. The passes over the whole program, which come first, are
printed into files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.compiling import CompileSetup
from bot.compiler.diagnostics import WholeLines
from bot.compiler.static_library import make_room_for_library
from bot.compiler.toolchain import UNTHREADED
from bot.core.snapshot import Dispatch
from bot.core.trace import MLIR, DispatchTrace
from bot.errors import MalformedBinary
from bot.readers.passes import PassReader
from bot.study.compiling_alone import (
    OBJECTS,
    SOURCES,
    binary_points,
    dump_options,
    function_points,
    point_named,
    run_in,
)
from bot.system.files import temporary_directory
from bot.system.pipes import Keeping

_ALONE = ("--compile-from=executable-sources", "--compile-mode=hal-executable")
_ELIDED = "--mlir-elide-elementsattrs-if-larger=8"
_PASSES = ("--mlir-print-ir-after-all", "--mlir-print-ir-after-change")
_MILESTONES = "--print-after=finalize-isel,prologepilog,prolog-epilog"
"""The first and nearly the last look at machine instructions.

A release ignores a name that it does not know.
"""
_LLVM_PASSES = ("--print-changed=quiet", "--print-loop-func-scope")
PROGRAM_FOLDER = "passes"
PROGRAM_OPTIONS = (
    "--compile-to=flow",
    *_PASSES,
    _ELIDED,
    "--mlir-print-debuginfo",
    "--mlir-print-local-scope",
    UNTHREADED,
    f"--mlir-print-ir-tree-dir={PROGRAM_FOLDER}",
)
"""Options that print the passes up to the one that outlines executables.

Later passes are the same for all dispatches of a structure. The passes are printed into
files: the compiler writes standard error unbuffered, in four times the CPU seconds.
"""
_OUTPUT = "executable"
_ERROR = re.compile(
    rb"error: |LLVM ERROR|Unknown command line argument|Cannot find option named"
)


def trace_options(entry_point: str, *, llvm: bool = False) -> tuple[str, ...]:
    """Return the options that print the passes over one entry point of such a file.

    `llvm`: print all passes of LLVM, and no others.
    """
    printed = [*_PASSES, _ELIDED, _MILESTONES]
    if llvm:
        printed = [*_LLVM_PASSES]
    return (*_ALONE, *printed, f"--filter-print-funcs={entry_point}", UNTHREADED)


def trace_commands(command: str, row: Dispatch) -> tuple[str, str]:
    """Return two commands: one writes the sources, and one prints a dispatch's passes.

    The sources are those of a cell's executables. `command`: the command that gives the
    cell's artifact.
    """
    before, fed = _parted(command)
    whole = f"{before} {shlex.join(dump_options(SOURCES, 'sources'))} -o /dev/null{fed}"
    words = shlex.split(before)
    flags = words[words.index("iree-compile") + 2 :]
    source = f"sources/*_{shlex.quote(row.executable)}.mlir"
    return (
        whole,
        (
            f"iree-compile {source} {shlex.join((*flags, *trace_options(row.name)))} -o"
            " /dev/null"
        ),
    )


def program_command(command: str) -> str:
    """Return the command that prints the passes over the whole program into files.

    They are the passes before the program is code of a target.
    """
    before, fed = _parted(command)
    return f"{before} {shlex.join(PROGRAM_OPTIONS)} -o /dev/null{fed}"


def _parted(command: str) -> tuple[str, str]:
    """Return a cell's command up to its output, and the redirection of its input."""
    before, _, model = command.rpartition(" -o ")
    return before, "".join(model.partition(" < ")[1:])


def with_llvm_passes(
    setup: CompileSetup,
    argv: Sequence[str],
    source: Path,
    row: Dispatch,
    trace: DispatchTrace,
) -> DispatchTrace:
    """Return the trace with all passes of LLVM in place of their milestones.

    If these cannot be printed, return the trace as it is.
    """
    whole = printed_passes(
        setup,
        argv=argv,
        source=source,
        row=row,
        options=trace_options(row.name, llvm=True),
    )
    front = tuple(step for step in trace.steps if step.level == MLIR)
    if whole.is_whole:
        return replace(trace, steps=(*front, *whole.steps))
    return trace


def printed_passes(
    setup: CompileSetup,
    argv: Sequence[str],
    source: Path,
    row: Dispatch,
    options: Sequence[str],
) -> DispatchTrace:
    """Return the trace of the passes over one entry point of an executable's source.

    If nothing is known of the passes, the trace has the reason.
    """
    reader = PassReader(row.name)
    whole_lines = WholeLines()

    def errors(chunk: bytes) -> bytes:
        """Return only the lines with errors that this chunk ends, and count the others."""
        reader.feed(chunk)
        lines = whole_lines.ended_by(chunk)
        return b"".join(line for line in lines if _ERROR.search(line[:200]))

    with temporary_directory("trace-", setup.session.scratch) as directory:
        reason = compile_printing(
            setup,
            flags=(*argv, *options, OBJECTS),
            source=source,
            directory=directory,
            keeping=errors,
        )
        same = None if reason else _is_same(row, directory)
        reason = reason or (
            "" if reader.steps else "the compiler printed no pass for it"
        )
        return DispatchTrace(tuple(reader.steps), reason, same)


def compile_printing(
    setup: CompileSetup,
    flags: Sequence[str],
    source: Path,
    directory: Path,
    keeping: Keeping = bytes,
) -> str:
    """Compile to `directory`; why that failed, empty if it did not."""
    make_room_for_library(flags, directory)
    failed = run_in(
        setup,
        program=setup.toolchain.binary,
        arguments=("-", *flags, "-o", _OUTPUT),
        directory=directory,
        stdin=source,
        keeping=keeping,
    )
    if failed is None:
        return ""
    return failed.first_line


def _is_same(row: Dispatch, directory: Path) -> bool | None:
    """Return whether the code is that of the artifact; None if either is not known."""
    try:
        if objects := sorted((directory / "tmp").glob("*.o")):
            points = list(function_points(objects))
        else:
            points = list(binary_points([directory / _OUTPUT]))
    except MalformedBinary:
        return None
    point = point_named(points, row.name)
    if point is None or point.code is None or row.code is None:
        return None
    return point.code == row.code
