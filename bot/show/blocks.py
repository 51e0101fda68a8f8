"""What an answer is made of. A block that is empty is not drawn, and neither is a fold of empty blocks.

A `name` is what a user's template of this one block is called by: `lab.answers.md.j2` for `answers` of the lab. On a
page the name of a fold is its address, too, unless it has an `address` of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from bot.show.phrase import Phrase
from bot.show.selection import Listing
from bot.show.text_tables import Line, Table


@dataclass(frozen=True, slots=True)
class Sentence:
    """One paragraph; `small` for what explains the rest."""

    said: Phrase
    small: bool = False
    name: str = ""
    kind: ClassVar = "sentence"

    def __bool__(self) -> bool:
        """True where it says anything."""
        return bool(self.said)


@dataclass(frozen=True, slots=True)
class Code:
    """Lines as they are: a command to be copied, what a compiler says, a diff.

    Attributes:
        language: what Markdown is told that they are.
    """

    text: str
    language: Literal["sh", "diff", "text"] = "sh"
    name: str = ""
    kind: ClassVar = "code"

    def __bool__(self) -> bool:
        """True where there is a line."""
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class List:
    """Lines, one below the other, each with what there is to say below it; `numbered` from 1."""

    lines: Listing[Phrase] | Listing[Phrase | Line]
    small: bool = False
    numbered: bool = False
    name: str = ""
    kind: ClassVar = "list"

    def __bool__(self) -> bool:
        """True where the whole list has anything, shown or not."""
        return bool(self.lines)


@dataclass(frozen=True, slots=True)
class Picture:
    """What scripts of a page draw, and nothing else shows: tables beside it say the same.

    Attributes:
        data: title and numbers of each drawing, as JSON.
    """

    data: tuple[tuple[str, str], ...]
    name: str = ""
    kind: ClassVar = "picture"

    def __bool__(self) -> bool:
        """True where there is something to draw."""
        return bool(self.data)


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks below a title: folded away until a reader opens it, or open, which is a section.

    Attributes:
        title: empty for a section without a heading. A title that is a Phrase is drawn as it is; a `str` stands out.
        is_open: a terminal, where nothing can be opened, has only what is.
    """

    title: Phrase | str
    blocks: tuple[Block, ...]
    is_open: bool = False
    name: str = ""
    address: str = ""
    kind: ClassVar = "fold"

    def __bool__(self) -> bool:
        """True where any of the blocks is to be drawn."""
        return any(self.blocks)


def section(title: Phrase | str, *blocks: Block, name: str, address: str = "") -> Fold:
    """Blocks below a title that are always open."""
    return Fold(title, blocks, is_open=True, name=name, address=address)


Block = Sentence | Code | List | Table | Picture | Fold


@dataclass(frozen=True, slots=True)
class Room:
    """The most that a place shows.

    Attributes:
        rows: of a table.
        lines: of a list, of footnotes, of answers.
        names: of models and the like in one sentence.
        columns: of releases.
        place: what is printed last on a terminal is seen first there; a page has room for each cell.
    """

    rows: int
    lines: int
    names: int
    columns: int
    place: Literal["file", "page", "terminal"] = "file"


FILE_TIERS = (Room(400, 40, 24, 12), Room(120, 20, 12, 8), Room(40, 10, 8, 6), Room(6, 4, 2, 6))
"""Of a Markdown file, from the roomiest to the tightest."""
PAGE, TERMINAL = Room(5_000, 200, 200, 16, "page"), Room(40, 8, 6, 8, "terminal")
