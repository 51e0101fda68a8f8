"""Measure the ladder of one dispatch (`bot.core.ladder`).

Each rung takes one phase more from base. Other compiles give both ends of the ladder,
and the IR of each phase (`bot.core.work` counts them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.compiler.compiling import CompileInput, CompileSetup, compile_to
from bot.compiler.toolchain import UNTHREADED
from bot.core.ladder import MOST_REASON, NO_BASE_COMPILER, Climb, Ladder, Rung
from bot.core.snapshot import Dispatch, Failure
from bot.study.code_generator import generated, linker_flags
from bot.study.compiling_alone import (
    CONFIGURATIONS,
    PHASES,
    SOURCES,
    TARGETS,
    AloneCode,
    compile_from,
    compile_with_bitcode,
)
from bot.study.foreign_ir import (
    LOCAL,
    NamedText,
    compile_foreign,
    generic_texts,
    transplanted,
)
from bot.system.files import temporary_directory


@dataclass(frozen=True)
class LadderSide:
    """One dispatch on one side, and what compiles it there."""

    setup: CompileSetup
    # flags of the build, with the lifted stack limit if the build needs it
    argv: Sequence[str]
    row: Dispatch
    # the IR of its executable before its target's passes, or why there is none
    source: str | Failure

    @cached_property
    def configured(self) -> str | Failure:
        """Return the IR of its executable with its configuration, or why there is none.

        The ladder and the proof of the configuration share it.
        """
        return self.at(CONFIGURATIONS)

    @cached_property
    def translated(self) -> str | Failure:
        """Return the IR of its executable for the target, or why there is none."""
        return self.at(TARGETS)

    @cached_property
    def code(self) -> AloneCode | Failure:
        """Return its code if it is compiled from the source, or why there is none."""
        if isinstance(self.source, Failure):
            return self.source
        return compile_from(
            self.setup,
            argv=self.argv,
            text=self.source,
            phase=SOURCES,
            entry_point=self.row.name,
        )

    @property
    def has_code_of_artifact(self) -> bool:
        """Return whether its code is the same as in the artifact."""
        return bool(_has_code_of(self.code, self.row))

    def at(self, phase: str) -> str | Failure:
        """Return the IR of its executable at a later phase, without aliases.

        If there is none, return why.
        """
        if isinstance(self.source, Failure):
            return self.source
        options = (
            f"--compile-from={SOURCES}",
            f"--compile-to={phase}",
            LOCAL,
            UNTHREADED,
        )
        with temporary_directory("phase-", self.setup.session.scratch) as directory:
            path = directory / "source.mlir"
            path.write_text(self.source, encoding="utf-8")
            input_ = CompileInput(self.row.executable, path)
            return compile_to(self.setup, (*self.argv, *options), input_)


@dataclass(frozen=True, slots=True)
class _Measured:
    """The values that both orders need of one side."""

    side: LadderSide
    # texts, generics: the IR at every phase without aliases, and in the generic form
    texts: Mapping[str, str | Failure]
    generics: Mapping[str, str | Failure]
    end: AloneCode | Failure  # compiled alone
    linker_flags: tuple[str, ...] | None  # None if llvm-cpu does not compile it
    bitcode: bytes | Failure


@dataclass(frozen=True, slots=True)
class FirstSide:
    """The values that a ladder needs of the side whose IR comes first.

    They take the place of its compiler.

    Attributes:
        texts: phase → the IR of its executable.
        control: the bitcode in the side's own code generator; None if llvm-cpu does
            not compile it.
    """

    name: str
    texts: Mapping[str, NamedText | Failure]
    end: Rung  # as `_end` has it
    is_same: bool | None
    bitcode: bytes | Failure
    control: Rung | None
    respelled_bytes: int = 0  # as `Climb.respelled_bytes`


def measured_ladder(
    base: LadderSide, head: LadderSide, *, both_orders: bool
) -> Ladder | str:
    """Return the ladder of one dispatch; why there can be none.

    Both orders cost four compiles more than base first.
    """
    if base.row.code is None or head.row.code is None:
        return "the digest of its code is not known"
    lower = _measured(base)
    upper = _measured(head)
    first = _first(lower)
    return Ladder(
        head_code=head.row.code,
        base_code=base.row.code,
        base_compiler=base.setup.toolchain.info.digest,
        head=_end(upper),
        base=first.end,
        climb=_climb(first, upper),
        back=_climb(_first(upper), lower) if both_orders else None,
        head_same=_is_same(upper),
        base_same=first.is_same,
    )


def first_side(side: LadderSide) -> FirstSide:
    """Return base's values for ladders of later runs, which lack its compiler."""
    return _first(_measured(side))


def ladder_from(
    base: Dispatch, base_compiler: str, first: FirstSide, head: LadderSide
) -> Ladder | str:
    """Return the ladder of one dispatch without base's compiler, or why there is none.

    Base comes first.

    Args:
        base_compiler: SHA-256 (hex) of the compiler that printed `first`.
    """
    if base.code is None or head.row.code is None:
        return "the digest of its code is not known"
    upper = _measured(head)
    return Ladder(
        head_code=head.row.code,
        base_code=base.code,
        base_compiler=base_compiler,
        head=_end(upper),
        base=first.end,
        climb=_climb(first, upper),
        back_why=NO_BASE_COMPILER,
        head_same=_is_same(upper),
        base_same=first.is_same,
    )


def _measured(side: LadderSide) -> _Measured:
    source = side.source
    if isinstance(source, Failure):
        return _Measured(
            side=side,
            texts=dict.fromkeys(PHASES, source),
            generics=dict.fromkeys(PHASES, source),
            end=source,
            linker_flags=None,
            bitcode=source,
        )
    texts = {
        SOURCES: source,
        CONFIGURATIONS: side.configured,
        TARGETS: side.translated,
    }
    generics = _generic(side, texts)
    flags = linker_flags(source)
    name = side.row.name
    if flags is None:
        return _Measured(
            side=side,
            texts=texts,
            generics=generics,
            end=side.code,
            linker_flags=None,
            bitcode=Failure("read", "the target has no bitcode"),
        )
    end, bitcode = compile_with_bitcode(
        side.setup, argv=side.argv, text=source, entry_point=name
    )
    return _Measured(
        side=side,
        texts=texts,
        generics=generics,
        end=end,
        linker_flags=flags,
        bitcode=bitcode,
    )


def _generic(
    side: LadderSide, texts: Mapping[str, str | Failure]
) -> dict[str, str | Failure]:
    """Return the IR of each phase in the generic form.

    A phase whose IR is not known keeps its failure.
    """
    known = {}
    for phase, text in texts.items():
        if not isinstance(text, Failure):
            known[phase] = text
    printed = generic_texts(side.setup, list(known.values()))
    return {**texts, **dict(zip(known, printed, strict=True))}


def _end(measured: _Measured) -> Rung:
    """Return an end of the ladder, which has to be the dispatch of the report.

    The same code has the size of the report, however long its names are.
    """
    rung = _rung(measured.end)
    code_bytes = measured.side.row.code_bytes
    if rung.code_bytes is None or rung.code_bytes == code_bytes:
        return rung
    if _is_same(measured):
        return Rung(code_bytes)
    if code_bytes is None:
        shown_bytes = "n/a"
    else:
        shown_bytes = f"{code_bytes:,} B"
    return Rung(
        why=f"compiled alone it has {rung.code_bytes:,} B, in the artifact {shown_bytes}"
    )


def _is_same(measured: _Measured) -> bool | None:
    return _has_code_of(measured.end, measured.side.row)


def _has_code_of(code: AloneCode | Failure, row: Dispatch) -> bool | None:
    """Return whether code is that of a dispatch in the artifact; None if not known."""
    if isinstance(code, Failure) or code.code is None:
        return None
    return code.code == row.code


def _respelled_bytes(measured: _Measured) -> int:
    """Return how many bytes more the artifact has for the same code."""
    end_bytes = _end(measured).code_bytes
    if end_bytes is None or isinstance(measured.end, Failure):
        return 0
    return end_bytes - measured.end.code_bytes


def _first(measured: _Measured) -> FirstSide:
    name = measured.side.row.name
    setup = measured.side.setup
    texts = dict[str, NamedText | Failure]()
    for phase, text in measured.texts.items():
        if isinstance(text, Failure):
            texts[phase] = text
            continue
        generic = measured.generics[phase]
        if isinstance(generic, Failure):
            texts[phase] = generic
        else:
            texts[phase] = NamedText(name, text, generic)
    control = None
    if measured.linker_flags is not None:
        control = _generated_rung(
            setup, bitcode=measured.bitcode, flags=measured.linker_flags, name=name
        )
    return FirstSide(
        name=name,
        texts=texts,
        end=_end(measured),
        is_same=_is_same(measured),
        bitcode=measured.bitcode,
        control=control,
        respelled_bytes=_respelled_bytes(measured),
    )


def _climb(first: FirstSide, second: _Measured) -> Climb:
    """Return the rungs with the first side's IR up to a phase.

    From there on, the second side's compiler runs.
    """
    optimized = control = None
    if first.control is not None and second.linker_flags is not None:
        setup = second.side.setup
        flags = second.linker_flags
        optimized = _generated_rung(
            setup, bitcode=first.bitcode, flags=flags, name=first.name
        )
        control = first.control
    return Climb(
        source=_foreign_rung(first, second, SOURCES),
        configured=_foreign_rung(first, second, CONFIGURATIONS),
        translated=_foreign_rung(first, second, TARGETS),
        optimized=optimized,
        control=control,
        respelled_bytes=first.respelled_bytes,
    )


def _foreign_rung(first: FirstSide, second: _Measured, phase: str) -> Rung:
    rung = _rung(_foreign_code(first, second, phase))
    if rung.code_bytes is None:
        return rung
    return Rung(rung.code_bytes + first.respelled_bytes)


def _foreign_code(
    first: FirstSide, second: _Measured, phase: str
) -> AloneCode | Failure:
    foreign = first.texts[phase]
    second_text = second.texts[phase]
    if isinstance(foreign, Failure):
        return foreign
    if isinstance(second_text, Failure):
        return second_text
    side = second.side
    receiving = NamedText(side.row.name, second_text)
    if _is_same_ir(receiving, second.generics[phase], foreign):
        return second.end
    return compile_foreign(
        side.setup, argv=side.argv, own_text=receiving, foreign=foreign, phase=phase
    )


def _is_same_ir(
    own_text: NamedText, generic: str | Failure, foreign: NamedText
) -> bool:
    """Return whether both sides have the same IR at a phase.

    One compile is then enough for both.

    Args:
        generic: the own text in the generic form.
    """
    if isinstance(generic, Failure):
        return False
    itself = transplanted(
        own_text, NamedText(own_text.name, own_text.text, generic), is_generic=True
    )
    return itself is not None and itself == transplanted(
        own_text, foreign, is_generic=True
    )


def _generated_rung(
    setup: CompileSetup, bitcode: bytes | Failure, flags: Sequence[str], name: str
) -> Rung:
    """Return the size of what a side's code generator makes of bitcode."""
    if isinstance(bitcode, Failure):
        return _rung(bitcode)
    return _rung(generated(setup, bitcode=bitcode, flags=flags, entry_point=name))


def _rung(code: AloneCode | Failure) -> Rung:
    if isinstance(code, Failure):
        return Rung(why=(code.first_line or code.stage)[:MOST_REASON])
    return Rung(code.code_bytes)
