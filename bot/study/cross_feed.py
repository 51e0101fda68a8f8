"""Run one compiler's IR through the other compiler's passes, cut by cut.

Each cut of the two pipelines has its code bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bot.core.ladder import Climb, alone_bytes
from bot.core.mappings import known_values
from bot.core.pass_cuts import Cut
from bot.core.snapshot import Failure
from bot.study.compiling_alone import AloneCode
from bot.study.splicing import Splicer


class Piece(NamedTuple):
    """The passes between two cuts, as the places of these."""

    start: int
    end: int


class Feed(Protocol):
    """Code bytes at the cuts of one order."""

    @property
    def whole(self) -> Piece:
        """Return the piece with all passes."""

    def bytes_at(self, place: int) -> int | None:
        """Return the code bytes at a cut; None if the cut is not usable."""

    def carried(self, piece: Piece) -> int | None:
        """Return the bytes that a piece carries; None if an end of it is unusable."""


class CrossFeed:
    """One side's passes up to a cut, and the other side's passes from there on.

    A cut is usable only if its control holds: the second side's own IR has to give the
    second side's own code.

    Attributes:
        reasons: why cuts are not usable.
    """

    def __init__(
        self, first: Splicer, second: Splicer, cuts: Sequence[Cut], climb: Climb | None
    ) -> None:
        self.reasons = list[str]()
        self._first = first
        self._second = second
        self._cuts = cuts
        self._bytes_by_place = dict[int, int | None]()
        if climb is not None:
            self._bytes_by_place[0] = alone_bytes(climb, climb.configured)
            self._bytes_by_place[self.end] = alone_bytes(climb, climb.translated)
        self._has_compiled_alone = False

    @property
    def end(self) -> int:
        """Return the place of the last cut."""
        return len(self._cuts) - 1

    @property
    def whole(self) -> Piece:
        """Return the piece with all passes."""
        return Piece(0, self.end)

    @property
    def compiles(self) -> int:
        """Return how many compiles this order and its controls took."""
        return self._second.compiles + self._has_compiled_alone

    @property
    def measured(self) -> dict[int, int]:
        """Return the code bytes of all usable cuts that were measured, by place."""
        return known_values(dict(sorted(self._bytes_by_place.items())))

    def bytes_at(self, place: int) -> int | None:
        """Return the code bytes at a cut; None if the cut is not usable."""
        if place not in self._bytes_by_place:
            code = self._code_at(self._cuts[place])
            if isinstance(code, Failure):
                self.reasons.append(code.first_line)
                self._bytes_by_place[place] = None
            else:
                self._bytes_by_place[place] = code.code_bytes
        return self._bytes_by_place[place]

    def carried(self, piece: Piece) -> int | None:
        """Return the bytes that a piece carries; None if an end of it is unusable."""
        before = self.bytes_at(piece.start)
        behind = self.bytes_at(piece.end)
        if before is None or behind is None:
            return None
        return before - behind

    def _code_at(self, cut: Cut) -> AloneCode | Failure:
        self._has_compiled_alone = True
        alone_code = self._second.side.code
        if isinstance(alone_code, Failure):
            return alone_code
        if alone_code.code is None:
            return Failure("read", "the digest of its code is not known")
        control = self._second.own_code(cut.head)
        if isinstance(control, Failure):
            return control
        if control != alone_code:
            return Failure(
                "read", "the control failed: its own IR gives other code there"
            )
        return self._second.foreign_code(self._first, cut.base, cut.head)
