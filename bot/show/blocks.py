"""Define what an answer is made of: phrases, listings, and the blocks of the renderers.

A listing has the shown part of a longer list. Three renderers draw the blocks. A block
that is empty is not drawn, and neither is a fold of empty blocks. A user's template of
one block has the block's `name` in its own name: `lab.answers.md.j2` for `answers` of
the lab. On a page the name of a fold is its address, too, unless it has an `address` of
its own.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

from bot.show.escape import clean, clip
from bot.show.filters import superscript

ABSENT = "–"
"""Stands for a value that a side does not have at all; `n/a` is an unknown value."""
NOTE_LIMIT = 300  # Characters of a footnote, or of another reason
Kind = Literal[
    "text", "code", "strong", "small", "number", "up", "down", "fail", "warn", "break"
]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text.

    `code` is for everything that came from a model, a compiler or a pull request.

    `small` is for remarks beside the rest. A `number` is not broken into lines, nor are
    `up` and `down`, which are numbers that grew and shrank. These and `fail` and `warn`
    have colours. A `break` begins a new line, and has a blank as its text.
    """

    text: str
    kind: Kind = "text"
    # the address on the page (`cell_address` and its like) of what the text names, or
    # an https one of another page; empty for none
    to: str = ""


Phrase = tuple[Span, ...]
Words = Phrase | str  # A `str` is one span of text
Row = tuple[Words, ...]


BREAK = Span(" ", "break")
"""A new line inside a cell of a table."""
SUM_CSS = "sum"
"""The class of a row of sums: it stays last when a reader sorts the table."""


class Marked(NamedTuple):
    """A row with an address or a style of its own on a page."""

    texts: Row
    address: str = ""  # address of the row on the page
    css: str = ""  # its class: `up` or `down` for what grew or shrank, or SUM_CSS


def marked(row: Row | Marked) -> Marked:
    """Return a row in its marked form; a plain row has no address and no class."""
    if isinstance(row, Marked):
        return row
    return Marked(row)


def code(text: str, to: str = "") -> Span:
    """Return a name or value that is not ours."""
    return Span(text, "code", to)


def strong(text: str) -> Span:
    """Return words that stand out."""
    return Span(text, "strong")


def kind_of(level: str) -> Kind:
    """Return the colour of words of a level, if the place has colours."""
    if level == "fail":
        return "fail"
    if level == "warn":
        return "warn"
    return "text"


def name_cell(text: str) -> Phrase:
    """Return a name that is not ours, as the cell of a table."""
    return phrase(code(text))


def phrase(*parts: str | Span | Iterable[Span]) -> Phrase:
    """Join words, spans and phrases."""
    spans: list[Span] = []
    for part in parts:
        if isinstance(part, str):
            spans.append(Span(part))
        elif isinstance(part, Span):
            spans.append(part)
        else:
            spans.extend(part)
    return tuple(span for span in spans if span.text or span.kind == "code")


def joined(phrases: Iterable[Words], separator: Words) -> Phrase:
    """Return the phrases with a separator between them."""
    spans: list[Span] = []
    for part in phrases:
        if spans:
            spans.extend(phrase(separator))
        spans.extend(phrase(part))
    return tuple(spans)


def sides_phrase(text: str) -> Phrase:
    """Return base and head as `filters.sides` writes them.

    A line may break only between the two.
    """
    base, arrow, head = text.rpartition(" → ")
    if not arrow:
        return phrase(Span(head, "number"))
    return phrase(Span(f"{base} →", "number"), " ", Span(head, "number"))


def some(phrases: Iterable[Words], total: int) -> Phrase:
    """Return the phrases, of `total` in all: `a, b and 3 more`."""
    parts = [*phrases]
    if total > len(parts):
        ending = f" and {total - len(parts)} more"
    else:
        ending = ""
    return phrase(joined(parts, ", "), ending)


def plain(text: Words) -> str:
    """Return the text without its kinds and links, unescaped: for lengths and tests."""
    if isinstance(text, str):
        return text
    return "".join(span.text for span in text)


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T_co]):
    """The shown part of a list of `total` entries.

    `noun`: the name of an entry, in the singular.
    """

    items: tuple[T_co, ...] = ()
    total: int = 0
    noun: str = "entry"

    @property
    def more(self) -> int:
        """Return the number of items that are left out."""
        return max(0, self.total - len(self.items))

    def first(self, count: int) -> Listing[T_co]:
        """Return the listing with its first items shown."""
        return replace(self, items=self.items[:count])

    def __bool__(self) -> bool:
        """Return whether the whole list has any item, shown or not."""
        return self.total > 0

    def __iter__(self) -> Iterator[T_co]:
        """Yield the items that are shown."""
        return iter(self.items)


def listing(items: Iterable[T], total: int, noun: str) -> Listing[T]:
    """Return a selection of a longer list."""
    return Listing(tuple(items), total, noun)


def listed(items: Iterable[T], noun: str = "line") -> Listing[T]:
    """Return the listing of all items."""
    entries = tuple(items)
    return Listing(entries, len(entries), noun)


def by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items grouped by what `key` returns for them, all in order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def fair(items: Sequence[T], group: Callable[[T], Hashable], limit: int) -> list[T]:
    """Return the first `limit` of `items` by turns.

    Every group's first item comes first, then every group's second, and so on. `items`
    are in order of importance. The order in which the groups take turns follows from
    it.
    """
    return [items[index] for _, index in _turns(items, group, limit)]


def fair_in_order(
    items: Sequence[T], group: Callable[[T], Hashable], limit: int
) -> list[T]:
    """Return the selection of `fair`, in the order of `items`."""
    indexes = sorted(index for _, index in _turns(items, group, limit))
    return [items[index] for index in indexes]


def _turns(
    items: Sequence[T], group: Callable[[T], Hashable], limit: int
) -> list[tuple[int, int]]:
    """Return turn and index of the selected items."""
    counts: Counter[Hashable] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, item in enumerate(items):
        name = group(item)
        ranked.append((counts[name], index))
        counts[name] += 1
    return heapq.nsmallest(limit, ranked)


class Footnotes:
    """Footnotes by number, each once, in the order in which they come up.

    Notes after the first `limit` have no number.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._numbers: dict[str, int] = {}
        self._left_out: set[str] = set()

    def mark(self, note: str) -> str:
        """Return the note's number; `…` above the limit; empty without a note."""
        text = clip(clean(note), NOTE_LIMIT)
        if not text:
            return ""
        if text not in self._numbers and len(self._numbers) >= self._limit:
            self._left_out.add(text)
            return "…"
        return superscript(self._numbers.setdefault(text, len(self._numbers) + 1))

    def listed(self) -> Listing[Phrase]:
        """Return the notes, each behind its number."""
        lines = []
        for text, number in self._numbers.items():
            lines.append(phrase(f"{superscript(number)} {text}"))
        return listing(lines, len(self._numbers) + len(self._left_out), "note")


class _Drawn:
    """A block that is not drawn if its field `content` is empty."""

    __slots__ = ()
    content: ClassVar[str]

    def __bool__(self) -> bool:
        """Return whether there is something to draw."""
        return bool(getattr(self, self.content))


@dataclass(frozen=True, slots=True)
class Sentence(_Drawn):
    """One paragraph; `small` for one that explains the rest."""

    said: Words
    small: bool = False
    name: str = ""
    kind: ClassVar = "sentence"
    content: ClassVar = "said"


@dataclass(frozen=True, slots=True)
class Code(_Drawn):
    """Lines as they are: a command to copy, a compiler's message, a diff.

    `language`: the language that Markdown gets.
    """

    text: str
    language: Literal["sh", "diff", "text"] = "sh"
    name: str = ""
    kind: ClassVar = "code"
    content: ClassVar = "text"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a list: what everybody should read, and two lines below it.

    The two lines are a detail and one more, which may be empty.
    """

    said: Words
    detail: Words = ""
    below: Words = ""
    address: str = ""  # of the line on a page; empty for none


@dataclass(frozen=True, slots=True)
class List(_Drawn):
    """Lines, one below the other; `numbered` from that number on, 0 for no numbers.

    In Markdown each line has the first number, and the viewer counts them.
    """

    lines: Listing[Words | Line]
    small: bool = False
    numbered: int = 0
    name: str = ""
    kind: ClassVar = "list"
    content: ClassVar = "lines"


class Stacked(NamedTuple):
    """A column that shares a cell with the columns before it, in a narrow table."""

    column: int
    # between it and the column before it; empty for the first column of a cell
    joint: Words = ""
    lead: str = ""  # before its text, but not before its header


Stacks = tuple[tuple[Stacked, ...], ...]  # the columns of each cell


@dataclass(frozen=True, slots=True)
class Table(_Drawn):
    """One table."""

    # as many as a row has cells; numbers begin at column `numbers_from`
    headers: tuple[str, ...]
    rows: Listing[Row | Marked] = field(default_factory=Listing)
    numbers_from: int = 1
    caption: Words = ""  # what it is of; may be empty
    about: str = ""  # what its words mean, in sentences; may be empty
    small: bool = False  # True for a table that is wide
    # the column that has sentences, which are not numbers and need room
    sentences: int | None = None
    # columns beside the names, in the order in which a narrow terminal keeps them;
    # empty: first number, last column, then the others from left to right
    wanted: tuple[int, ...] = ()
    # other columns from `numbers_from` on that have no numbers
    unnumbered: tuple[int, ...] = ()
    css: str = ""  # its class on a page, by which styles and scripts find it
    # in Markdown, which may be read on a telephone: the columns that share each cell;
    # empty for a cell of each column
    stacks: Stacks = ()
    name: str = ""
    kind: ClassVar = "table"
    content: ClassVar = "rows"

    @property
    def marks(self) -> tuple[str, ...]:
        """Return the marks that align the columns in Markdown."""
        rules = []
        for column in range(len(self.headers)):
            if self.is_number(column):
                rules.append("--:")
            else:
                rules.append(":--")
        return tuple(rules)

    @property
    def texts(self) -> tuple[Row, ...]:
        """Return the texts of the shown rows, without the marks for a page."""
        return tuple(marked(row).texts for row in self.rows)

    def is_number(self, column: int) -> bool:
        """Return whether a column has numbers, which are aligned to the right."""
        return column >= self.numbers_from and column not in (
            self.sentences,
            *self.unnumbered,
        )


@dataclass(frozen=True, slots=True)
class Picture(_Drawn):
    """Data that only scripts of a page draw: tables beside it show the same."""

    data: tuple[tuple[str, str], ...]  # title and numbers of each drawing, as JSON
    name: str = ""
    kind: ClassVar = "picture"
    content: ClassVar = "data"


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks below a title: folded until a reader opens it, or open as a section."""

    # empty for a section without a heading. A title that is a Phrase is drawn as it is;
    # a `str` stands out.
    title: Words
    blocks: tuple[Block, ...]
    is_open: bool = False  # a terminal shows only open folds
    name: str = ""
    address: str = ""
    css: str = ""  # as of a table
    kind: ClassVar = "fold"

    def __bool__(self) -> bool:
        """Return whether any of the blocks is to be drawn."""
        return any(self.blocks)


def section(
    title: Words, *blocks: Block, name: str = "", address: str = "", css: str = ""
) -> Fold:
    """Return blocks below a title that are always open."""
    return Fold(
        title=title, blocks=blocks, is_open=True, name=name, address=address, css=css
    )


def more_of(entries: Listing[object]) -> List:
    """Return how many entries are left out; the shown ones are drawn elsewhere."""
    return List(Listing((), entries.more, entries.noun))


Make = Callable[[int], "Iterable[Block]"]


class Rank(IntEnum):
    """The worth of a part to a reader: `fit` shortens the lowest rank first."""

    STORY = 0  # why one build changed
    ROW = 1  # a figure of one build
    LINE = 2
    MESSAGE = 3  # of a build that fails
    COMMAND = 4
    ANSWER = 5  # what the first screen says


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Blocks that show the entries of a list, and can show fewer of them.

    `fit` shortens the parts of the lowest rank first. Renderers draw what is in a part.
    """

    make: Make  # the blocks with at most so many entries
    entries: int
    rank: Rank
    blocks: tuple[Block, ...]
    kind: ClassVar = "part"

    def __bool__(self) -> bool:
        """Return whether any of the blocks is to be drawn."""
        return any(self.blocks)

    def shortened(self, share: float) -> Part:
        """Return the part with about this share of its entries.

        It has half of them at least, and nine tenths of them at most.
        """
        entries = int(self.entries * min(0.9, max(0.5, share)))
        return part(self.make, entries, self.rank)


def part(make: Make, entries: int, rank: Rank) -> Part:
    """Return the blocks that `make` returns for at most so many entries."""
    return Part(make, entries, rank, tuple(make(entries)))


def bounded(block: List | Table, rank: Rank, entries: int | None = None) -> Part:
    """Return a part that shows the beginning of a whole list or table.

    `entries`: the number of shown entries; None for all of them.
    """
    count = len((block.lines if isinstance(block, List) else block.rows).items)

    def beginning(count: int) -> tuple[Block]:
        if isinstance(block, List):
            return (replace(block, lines=block.lines.first(count)),)
        return (replace(block, rows=block.rows.first(count)),)

    return part(beginning, count if entries is None else min(entries, count), rank)


def several(
    blocks: Iterable[Block], rank: Rank, noun: str = "", limit: int | None = None
) -> Part:
    """Return the first blocks as a part, at most `limit` of them.

    `noun`: the name of a block in the singular, if those left out are counted.
    """
    entries = tuple(blocks)

    def beginning(count: int) -> tuple[Block, ...]:
        if not noun:
            return entries[:count]
        return (*entries[:count], more_of(listed(entries, noun).first(count)))

    return part(beginning, len(entries) if limit is None else limit, rank)


Block = Sentence | Code | List | Table | Picture | Fold | Part
Blocks = tuple[Block, ...]
