"""Use IREE as the compiler of a side.

It has `iree-compile`, its bindings and its import of models.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache

from msgspec.structs import replace

from bot.compiler.bindings import working
from bot.compiler.compiler import Compile, Compiler, Result, Session
from bot.compiler.compiling import CompileInput, CompileSetup, compile_directly
from bot.compiler.importing import Importer
from bot.compiler.iree_options import (
    RENAMED,
    known_measuring_options,
    other_name,
    unknown_option_of,
)
from bot.compiler.release_flags import for_release
from bot.compiler.toolchain import Toolchain
from bot.core.planned import PlannedCell
from bot.core.snapshot import CompilerInfo, Failure
from bot.errors import UsageError
from bot.system.cancel import Cancel
from bot.system.files import temporary_directory


@dataclass(frozen=True, slots=True)
class Iree:
    """One `iree-compile`, as the compiler of a side."""

    toolchain: Toolchain
    is_traced: bool = True

    @property
    def info(self) -> CompilerInfo:
        """Return which compiler this is."""
        return self.toolchain.info

    def in_its_words(
        self, side: str, cells: Sequence[PlannedCell], cancel: Cancel
    ) -> tuple[PlannedCell, ...]:
        """Return the cells with the flags of this release, under the names it knows.

        `Compiler.in_its_words` has the rest.
        """
        named = in_its_words(self.toolchain, cells, cancel)
        check_flags(
            side,
            toolchain=self.toolchain,
            cells=named,
            user_flags=max((cell.user_flags for cell in named), key=len, default=()),
            cancel=cancel,
        )
        return named

    @contextmanager
    def at_work(self, session: Session) -> Iterator[Compile]:
        """Return the function that compiles a cell.

        The process that reads its IR ends with the context.
        """
        with open_setup(self.toolchain, session) as (setup, importer):

            def compile_cell(cell: PlannedCell, layout: int) -> Result:
                """Return what the printed command of a cell gives.

                It is run over the model or what its import gave.
                """
                source = importer.source(cell.model)
                if isinstance(source, Failure):
                    return source
                return compile_directly(
                    setup,
                    cell.argv,
                    CompileInput(cell.model.name, source),
                    layout=layout,
                )

            yield compile_cell


def toolchain_of(compiler: Compiler) -> Toolchain:
    """Return the IREE compiler, for questions that only it answers.

    Raises UsageError if the compiler is another one.
    """
    if not isinstance(compiler, Iree):
        hint = (
            "compare, measure, report, history, plan and review work with any compiler"
        )
        raise UsageError(
            "only IREE's compiler can do this", where=compiler.info.spec, hint=hint
        )
    return compiler.toolchain


@contextmanager
def open_setup(
    toolchain: Toolchain, session: Session
) -> Iterator[tuple[CompileSetup, Importer]]:
    """Return the setup of compiles with one compiler, and the importer of its models.

    The process that reads IR ends with the context.
    """
    with closing(working(toolchain, session.cancel)) as bindings:
        options = known_measuring_options(toolchain, session.scratch, session.cancel)
        yield (
            CompileSetup(
                toolchain=toolchain, session=session, bindings=bindings, options=options
            ),
            Importer(toolchain, session),
        )


def check_flags(
    side: str,
    toolchain: Toolchain,
    cells: Sequence[PlannedCell],
    user_flags: Sequence[str],
    cancel: Cancel,
) -> None:
    """Refuse an option for every cell that this side's compiler does not know.

    This is before any compile. An option of a single target is not refused: its cells
    fail with that reason, the others go on.
    """
    unknown = unknown_to_all(toolchain, cells, cancel)
    if unknown is not None:
        where = "every cell"
        hint = "compare newer releases"
        if any(flag.partition("=")[0] == unknown for flag in user_flags):
            where = "flags"
            hint = "remove it, or compare releases that both know it"
        raise UsageError(
            f"the {side} compiler ({toolchain.info.spec}, {toolchain.info.version})"
            f" does not know the option {unknown}",
            where=where,
            hint=hint,
        )


def unknown_to_all(
    toolchain: Toolchain, cells: Sequence[PlannedCell], cancel: Cancel
) -> str | None:
    """Return an option of every cell that the compiler does not know.

    None if it knows them all.
    """
    for flags in dict.fromkeys(cell.flags for cell in cells):
        with temporary_directory("run-") as scratch:
            unknown = unknown_option_of(
                toolchain, flags=flags, scratch=scratch, cancel=cancel
            )
        if unknown is not None:
            return unknown
    return None


def in_its_words(
    toolchain: Toolchain, cells: Sequence[PlannedCell], cancel: Cancel
) -> tuple[PlannedCell, ...]:
    """Return the cells with the flags of this release, under the names it knows.

    Raises CompilerUnavailable.
    """
    cells = for_release(toolchain.info, cells)
    if not any(map(_has_renamed_option, cells)):
        return tuple(cells)
    with temporary_directory("code-size-") as scratch:
        is_known = cache(
            lambda flag: (
                unknown_option_of(
                    toolchain, flags=(flag,), scratch=scratch, cancel=cancel
                )
                is None
            )
        )

        def named(flag: str) -> str:  # one that is known under no name stays as it is
            other_flag = other_name(flag)
            if other_flag == flag or is_known(flag) or not is_known(other_flag):
                return flag
            return other_flag

        result = []
        for cell in cells:
            target = replace(cell.target, flags=tuple(map(named, cell.target.flags)))
            result.append(
                replace(
                    cell, target=target, user_flags=tuple(map(named, cell.user_flags))
                )
            )
        return tuple(result)


def _has_renamed_option(cell: PlannedCell) -> bool:
    return any(flag.startswith(RENAMED) for flag in cell.argv)


def flags_of(command: str) -> list[str]:
    """Return the flags that a printed command gives the compiler.

    Each option has one of its names. The result is empty if the command cannot be
    read. The files of the input and the output are left out, because their folders
    may differ.
    """
    try:
        arguments = shlex.split(command)
    except ValueError:
        return []
    start = len(arguments)
    if "iree-compile" in arguments:
        start = arguments.index("iree-compile") + 1
    if "-o" in arguments[start:]:
        end = arguments.index("-o", start)
    else:
        end = None
    return [min(word, other_name(word)) for word in arguments[start:end]]
