"""IREE as the compiler of a side: `iree-compile`, its measuring options, its bindings and its import of models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from bot.compiler.bindings import Importer, opset_hint, reading
from bot.compiler.compiler import Compile, Compiler, Result, Session
from bot.compiler.compiling import Kit, Source, compile_directly
from bot.compiler.probe import for_release, in_its_words, known_measuring_options, unknown_option_of
from bot.compiler.toolchain import Toolchain
from bot.core.planned import PlannedCell, Target
from bot.core.snapshot import CompilerInfo, Failure
from bot.errors import UsageError
from bot.system.files import temporary_directory
from bot.system.processes import Cancel


@dataclass(frozen=True, slots=True)
class Iree:
    """One `iree-compile`."""

    toolchain: Toolchain
    is_traced: bool = True

    @property
    def info(self) -> CompilerInfo:
        """Which one it is."""
        return self.toolchain.info

    @property
    def backends(self) -> tuple[str, ...]:
        """What it registers."""
        return self.toolchain.backends

    def refuses(self, target: Target) -> str | None:
        """What the configuration says of the target: the compiler is not asked."""
        return target.unsupported

    def in_its_words(self, side: str, cells: Sequence[PlannedCell], cancel: Cancel) -> tuple[PlannedCell, ...]:
        """The cells with the flags of its release, under the names that it knows; see the protocol."""
        named = in_its_words(self.toolchain, for_release(self.info, cells), cancel)
        check_flags(side, self.toolchain, named, max((cell.user_flags for cell in named), key=len, default=()), cancel)
        return named

    @contextmanager
    def at_work(self, session: Session) -> Iterator[Compile]:
        """With the process that reads IR, which ends with the context."""
        with open_kit(self.toolchain, session) as (kit, importer):

            def compile_cell(cell: PlannedCell, layout: int) -> Result:
                """Its printed command, over the model or what its import gave."""
                source = importer.source(cell.model)
                if isinstance(source, Failure):
                    return source
                result = compile_directly(kit, cell.argv, Source(cell.model.name, source), layout=layout)
                if isinstance(result, Failure) and (hint := opset_hint(cell.model, source)):
                    return replace(result, message=f"{hint}{result.message}")
                return result

            yield compile_cell


def toolchain_of(compiler: Compiler) -> Toolchain:
    """What only `iree-compile` can be asked for; raises UsageError where the compiler is another."""
    if not isinstance(compiler, Iree):
        hint = "compare, measure, report, history, plan and review work with any compiler"
        raise UsageError("only IREE's compiler can do this", where=compiler.info.spec, hint=hint)
    return compiler.toolchain


@contextmanager
def open_kit(toolchain: Toolchain, session: Session) -> Iterator[tuple[Kit, Importer]]:
    """What compiles with one compiler, and what imports its models; the process that reads IR ends with the context."""
    scratch, timeout_seconds, cancel = session.scratch, session.timeout_seconds, session.cancel
    bindings = reading(toolchain, cancel)
    try:
        options = known_measuring_options(toolchain, scratch, cancel)
        kit = Kit(session.label, toolchain, options, bindings, scratch, timeout_seconds, cancel, session.meter)
        yield kit, Importer(toolchain, scratch, timeout_seconds, cancel)
    finally:
        bindings.close()


def check_flags(
    side: str, toolchain: Toolchain, cells: Sequence[PlannedCell], user_flags: Sequence[str], cancel: Cancel
) -> None:
    """Refuse, before any compile, an option for every cell that this side's compiler does not know.

    An option of a single target is not refused: its cells fail with that reason, the others go on.
    """
    unknown = unknown_option(toolchain, cells, cancel)
    if unknown is not None:
        mine = any(flag.partition("=")[0] == unknown for flag in user_flags)
        raise UsageError(
            f"the {side} compiler ({toolchain.info.spec}, {toolchain.info.version}) does not know the option {unknown}",
            where="flags" if mine else "every cell",
            hint="remove it, or compare releases that both know it" if mine else "compare newer releases",
        )


def unknown_option(toolchain: Toolchain, cells: Sequence[PlannedCell], cancel: Cancel) -> str | None:
    """An option for every cell that the compiler does not know; None where it knows them all."""
    for flags in dict.fromkeys(cell.flags for cell in cells):
        with temporary_directory("run-") as scratch:
            unknown = unknown_option_of(toolchain, flags, scratch, cancel)
        if unknown is not None:
            return unknown
    return None
