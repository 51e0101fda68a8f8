"""Compile one executable by itself, from IR at a phase, and read an entry point's code.

A file with one `hal.executable` compiles like a program. The option
`--compile-mode=hal-executable` is left out on purpose. With it the compiler ignores
`--compile-from` and chooses the configuration again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.compiler.compiling import CompileSetup
from bot.compiler.diagnostics import Undumped, failure
from bot.compiler.static_library import library_path, make_room_for_library
from bot.compiler.toolchain import UNTHREADED
from bot.core.reading import UNSPEAKABLE, EntryPoint
from bot.core.snapshot import Failure
from bot.errors import MalformedBinary
from bot.system.files import temporary_directory, whole_or_nothing
from bot.system.pipes import Keeping
from bot.system.processes import run

SOURCES, CONFIGURATIONS, TARGETS = PHASES = (
    "executable-sources",
    "executable-configurations",
    "executable-targets",
)
"""Phases from which an executable can be compiled, in the compiler's order."""

OBJECTS = "--iree-llvmcpu-keep-linker-artifacts"
"""Keeps the object files of llvm-cpu: the linked library has no symbols."""

_MODULE = re.compile(
    r"""^(?:(?:builtin\.)?module\b.*\{|"builtin\.module"\(\).*\(\{)$""", re.MULTILINE
)
"""The line that opens the outermost module. All lines inside the module are indented."""
_BINARIES = "binaries"
_INTERMEDIATES = "intermediates"


@dataclass(frozen=True, slots=True)
class AloneCode:
    """The code of one entry point whose executable was compiled by itself."""

    code_bytes: int
    # digest of the code up to names, as `Dispatch.code`; None if it is not known
    code: str | None


def dump_options(phase: str, out: Path | str) -> tuple[str, ...]:
    """Return the options that write each executable's IR at a phase into `out`."""
    return f"--compile-to={phase}", f"--iree-hal-dump-{phase}-to={out}"


def compile_from(
    setup: CompileSetup,
    argv: Sequence[str],
    text: str,
    phase: str,
    entry_point: str,
) -> AloneCode | Failure:
    """Compile the IR of one executable from a phase on; return its entry point's code.

    Args:
        argv: flags of the build, with the lifted stack limit where the build needs it.
        text: a module with one `hal.executable`, as the compiler writes it at `phase`.
        phase: one of PHASES.
        entry_point: as `Dispatch.name`; spellings that differ only in punctuation are
            the same.
    """
    if phase in setup.neighbour:
        text = behind(setup.neighbour[phase], text)
    with temporary_directory("alone-", setup.session.scratch) as directory:
        return _compile(
            setup,
            argv=(*argv, f"--compile-from={phase}"),
            text=text,
            directory=directory,
            entry_point=entry_point,
        )


def behind(neighbour: str, text: str) -> str:
    """Return a module in which another executable stands in front of the one it has.

    Args:
        neighbour: the other executable, without aliases.
        text: a module with or without its outer braces, in the plain or generic form.
    """
    opening = _MODULE.search(text)
    if opening is None:
        return f"{neighbour}\n{text}"
    return f"{text[: opening.end()]}\n{neighbour}\n{text[opening.end() :]}"


def compile_with_bitcode(
    setup: CompileSetup, argv: Sequence[str], text: str, entry_point: str
) -> tuple[AloneCode | Failure, bytes | Failure]:
    """Compile an executable's source.

    Return the code of its entry point, and LLVM's optimized bitcode.
    """
    with temporary_directory("alone-", setup.session.scratch) as directory:
        dump = f"--iree-hal-dump-executable-intermediates-to={_INTERMEDIATES}"
        flags = (*argv, f"--compile-from={SOURCES}", dump)
        code = _compile(
            setup, argv=flags, text=text, directory=directory, entry_point=entry_point
        )
        if isinstance(code, Failure):
            return code, code
        paths = sorted((directory / _INTERMEDIATES).glob("*.optimized.bc"))
        if len(paths) != 1:
            return code, Failure(
                "read",
                f"compiled alone, it leaves {len(paths)} files of optimized bitcode",
            )
        return code, whole_or_nothing(paths[0])


def program_bytes(
    setup: CompileSetup, argv: Sequence[str], text: str, phase: str
) -> int | Failure:
    """Compile a whole program from a phase to the end.

    Return the code bytes of all its entry points together.
    """
    with temporary_directory("alone-", setup.session.scratch) as directory:
        points = _compiled_points(
            setup,
            argv=(*argv, f"--compile-from={phase}"),
            text=text,
            directory=directory,
        )
    if isinstance(points, Failure):
        return points
    sizes = [point.code_bytes for point in points]
    if not sizes or None in sizes:
        return Failure("read", "the code bytes of an entry point are not known")
    return sum(size for size in sizes if size is not None)


def _compile(
    setup: CompileSetup,
    argv: Sequence[str],
    text: str,
    directory: Path,
    entry_point: str,
) -> AloneCode | Failure:
    points = _compiled_points(setup, argv=argv, text=text, directory=directory)
    if isinstance(points, Failure):
        return points
    return code_of(points, entry_point)


def _compiled_points(
    setup: CompileSetup, argv: Sequence[str], text: str, directory: Path
) -> list[EntryPoint] | Failure:
    flags = (
        *argv,
        OBJECTS,
        f"--iree-hal-dump-executable-binaries-to={_BINARIES}",
        UNTHREADED,
    )
    source = directory / "executable.mlir"
    source.write_text(text, encoding="utf-8")
    make_room_for_library(flags, directory)
    failed = run_in(
        setup,
        program=setup.toolchain.binary,
        arguments=("-", *flags, "-o", "executable"),
        directory=directory,
        stdin=source,
    )
    if failed is not None:
        return failed
    return _points_in(directory, flags)


def run_in(
    setup: CompileSetup,
    program: Path,
    arguments: Sequence[str],
    directory: Path,
    stdin: Path | None,
    keeping: Keeping | None = None,
) -> Failure | None:
    """Run the compiler, or a program beside it, in a directory.

    Return why it failed, None if it did not.

    The program leaves its temporary files in `tmp` of the directory. Raises OSError if
    it cannot be started.

    `keeping`: which of its output is kept; without it, all but dumped IR.
    """
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    outcome = run(
        [str(program), *arguments],
        cancel=setup.session.cancel,
        stdin=stdin,
        cwd=directory,
        environment={"TMPDIR": str(temporary)},
        timeout_seconds=setup.session.timeout_seconds,
        keeping=keeping or Undumped(),
    )
    if outcome.ok:
        return None
    return failure(outcome, setup.session.timeout_seconds)


def _points_in(directory: Path, flags: Sequence[str]) -> list[EntryPoint] | Failure:
    library = library_path(flags, directory)
    libraries = [] if library is None else [library]
    objects = sorted((directory / "tmp").glob("*.o")) or [
        path for path in libraries if path.is_file()
    ]
    try:
        if objects:
            return list(function_points(objects))
        return list(binary_points(sorted((directory / _BINARIES).glob("*"))))
    except MalformedBinary as error:
        return Failure("read", error.line)


def function_points(objects: Sequence[Path]) -> Iterator[EntryPoint]:
    """Yield the functions of object files; raises MalformedBinary."""
    # Imported here, as a run that compiles nothing alone needs no library of a format.
    from bot.readers.object_code import function_codes

    for path in objects:
        yield from function_codes(whole_or_nothing(path)).values()


def binary_points(executables: Sequence[Path]) -> Iterator[EntryPoint]:
    """Yield the entry points of executables; raises MalformedBinary."""
    from bot.readers.artifact import read_executable  # as in `function_points`

    for path in executables:
        yield from read_executable(whole_or_nothing(path)).entry_points


def point_named(points: Sequence[EntryPoint], entry_point: str) -> EntryPoint | None:
    """Return the only entry point of a name, whose punctuation does not matter.

    Return None if there is none, or if there are several.
    """
    symbol = UNSPEAKABLE.sub("_", entry_point)
    fitting = [point for point in points if UNSPEAKABLE.sub("_", point.name) == symbol]
    if len(fitting) == 1:
        return fitting[0]
    return None


def code_of(points: Sequence[EntryPoint], entry_point: str) -> AloneCode | Failure:
    """Return the code of an entry point among all functions, or why there is none."""
    point = point_named(points, entry_point)
    if point is None:
        return Failure(
            "read", f"compiled alone, it has no single function {entry_point}"
        )
    if point.code_bytes is None:
        return Failure(
            "read", f"compiled alone, the code bytes of {entry_point} are not known"
        )
    return AloneCode(point.code_bytes, point.code)
