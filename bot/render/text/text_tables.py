"""Lines and tables as values, of phrases that each place draws with its own escapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bot.render.text.phrase import Phrase, code, phrase
from bot.render.text.selection import Listing

ABSENT = "–"
"""Where a side does not have the thing at all; what is there and not known is `n/a`."""

Row = tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a list: what everybody should read, and a detail below it, which may be empty."""

    said: Phrase
    detail: Phrase


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        headers: as many as a row has cells; numbers begin at column `numbers_from`.
        caption: what it is of; may be empty.
        about: what its words mean, in sentences; may be empty.
        small: True for a table that is wide.
        sentences: the column that has them, which is no number and needs room.
        is_timeline: True where columns follow one another in time, so that the newest are the last to be left out.
        name: of this block of an answer (`bot.show.blocks`).
    """

    headers: tuple[str, ...]
    rows: Listing[Row] = field(default_factory=Listing)
    numbers_from: int = 1
    caption: Phrase = ()
    about: str = ""
    small: bool = False
    sentences: int | None = None
    is_timeline: bool = False
    name: str = ""
    kind: ClassVar = "table"

    @property
    def marks(self) -> tuple[str, ...]:
        """How Markdown aligns the columns."""
        return tuple("--:" if self.is_number(at) else ":--" for at in range(len(self.headers)))

    def is_number(self, column: int) -> bool:
        """True for a column of numbers, which stand at its right edge."""
        return column >= self.numbers_from and column != self.sentences

    def __bool__(self) -> bool:
        """True where it has rows."""
        return bool(self.rows)


def name_cell(text: str) -> Phrase:
    """A name that is not ours."""
    return phrase(code(text))
