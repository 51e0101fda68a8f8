"""Store the IR of a baseline's largest dispatches.

It replaces base's compiler if a later run does not have it. A ladder
(`bot.core.ladder`) needs of base only its IR at each phase, and the sizes of base's own
compiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

import msgspec

from bot.core.json_text import canonical, decoded, require_schema
from bot.core.ladder import MOST_REASON, Rung
from bot.core.record import Amount, Digest, Name, Record, always
from bot.core.snapshot import CellKey, Dispatch

SCHEMA = "code-size-stored-ir/1"
_NOUN = "file with a baseline's IR"
_HINT = "the next push that measures the commit's builds anew writes another one"
_Reason = Annotated[str, msgspec.Meta(max_length=MOST_REASON)]
_Hex = Annotated[str, msgspec.Meta(pattern=r"\A(?:[0-9a-f]{2})*\Z")]


class PhaseText(Record, frozen=True, omit_defaults=True):
    """The IR of one executable at one phase, as base's compiler printed it."""

    plain: str = ""
    generic: str = ""  # in the form that all releases spell alike
    why: _Reason = ""  # why there is none; empty if there is one

    def __post_init__(self) -> None:
        """Raise ValueError unless there is either IR or a reason."""
        is_there = bool(self.plain and self.generic)
        if is_there == bool(self.why):
            raise ValueError("a phase has either IR or a reason")


class Bitcode(Record, frozen=True, omit_defaults=True):
    """LLVM's optimized bitcode of one executable.

    `control`: the code that base's own code generator makes of it.
    """

    control: Rung
    data: _Hex = ""
    why: _Reason = ""  # why there is none; empty if there is one

    def __post_init__(self) -> None:
        """Raise ValueError unless there is either bitcode or a reason."""
        if bool(self.data) == bool(self.why):
            raise ValueError("there is either bitcode or a reason")


class StoredDispatch(Record, frozen=True, omit_defaults=True):
    """The values that a ladder needs of one dispatch of base."""

    model: Name
    target: Name
    name: Name  # as `Dispatch.name`
    code: Digest  # as `Dispatch.code`; the values hold only for this code
    source: PhaseText
    configured: PhaseText
    translated: PhaseText
    end: Rung  # compiled alone; without bytes if these are not those of the artifact
    end_same: bool | None = None  # as `Ladder.base_same`
    respelled_bytes: Amount = 0  # as `Climb.respelled_bytes`
    bitcode: Bitcode | None = None  # None if llvm-cpu does not compile it

    @property
    def key(self) -> CellKey:
        """Return the build that it is in."""
        return CellKey(self.model, self.target)


class StoredIr(Record, frozen=True):
    """The IR that one baseline stores."""

    compiler: str  # SHA-256 (hex) of the compiler that printed it
    dispatches: tuple[StoredDispatch, ...]  # the largest one first
    schema: str = always(SCHEMA)


class BaseIr:
    """The stored IR of a base, found by dispatch."""

    def __init__(self, stored: StoredIr) -> None:
        self._stored = stored

    @property
    def compiler(self) -> str:
        """Return the SHA-256 (hex) of the compiler that printed it."""
        return self._stored.compiler

    @cached_property
    def _by_place(self) -> Mapping[tuple[CellKey, str], StoredDispatch]:
        dispatches = self._stored.dispatches
        return {(dispatch.key, dispatch.name): dispatch for dispatch in dispatches}

    def of(self, key: CellKey, row: Dispatch) -> StoredDispatch | None:
        """Return the stored IR of a dispatch of base.

        Return None if there is none, or only of other code.
        """
        dispatch = self._by_place.get((key, row.name))
        if dispatch is None or dispatch.code != row.code:
            return None
        if dispatch.end.code_bytes not in (None, row.code_bytes):
            return None
        return dispatch


def written_ir(stored: StoredIr) -> bytes:
    """Return stored IR as JSON; equal IR gives equal bytes."""
    return canonical(stored)


def read_ir(text: bytes, where: str) -> StoredIr:
    """Read stored IR; raises InputError for any other text or another version."""
    require_schema(text, schema=SCHEMA, noun=_NOUN, where=where, hint=_HINT)
    return decoded(text, kind=StoredIr, where=where, hint=_HINT, noun=_NOUN)
