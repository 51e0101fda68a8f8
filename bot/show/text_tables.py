"""Lines, tables and footnotes as values, of phrases that each place draws with its own escapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bot.show.escape import clean, clip
from bot.show.filters import superscript
from bot.show.phrase import Phrase, code, phrase
from bot.show.selection import Listing, listing

ABSENT = "–"
"""Where a side does not have the thing at all; what is there and not known is `n/a`."""

NOTE_LIMIT = 300
"""Characters of a footnote, or of another reason."""

Row = tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a list: what everybody should read, and below it a detail and one more line, which may be empty."""

    said: Phrase
    detail: Phrase
    below: Phrase = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        headers: as many as a row has cells; numbers begin at column `numbers_from`.
        caption: what it is of; may be empty.
        about: what its words mean, in sentences; may be empty.
        small: True for a table that is wide.
        sentences: the column that has them, which is no number and needs room.
        wanted: columns beside the names, in the order in which a narrow terminal has room for them; empty for the first
            number, the last column, and the others from left to right.
        name: of this block of an answer (`bot.show.blocks`).
    """

    headers: tuple[str, ...]
    rows: Listing[Row] = field(default_factory=Listing)
    numbers_from: int = 1
    caption: Phrase = ()
    about: str = ""
    small: bool = False
    sentences: int | None = None
    wanted: tuple[int, ...] = ()
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


class Footnotes:
    """Notes by number, each once, in the order in which they come up; what is more than `most` has none."""

    def __init__(self, most: int) -> None:
        self._most, self._numbers, self._left_out = most, dict[str, int](), set[str]()

    def mark(self, note: str) -> str:
        """The number that points to the note; empty for an empty one."""
        text = clip(clean(note), NOTE_LIMIT)
        if text and text not in self._numbers and len(self._numbers) >= self._most:
            self._left_out.add(text)
            return "…"
        return superscript(self._numbers.setdefault(text, len(self._numbers) + 1)) if text else ""

    def listed(self) -> Listing[Phrase]:
        """The notes, each behind its number."""
        lines = (phrase(f"{superscript(number)} {text}") for text, number in self._numbers.items())
        return listing(lines, len(self._numbers) + len(self._left_out), "note")
