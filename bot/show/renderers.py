"""Blocks as Markdown, as a page and on a terminal: the only places that draw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from bot.show.blocks import FILE_TIERS, Block, Code, Fold, List, Room, Sentence
from bot.show.drawing import table_of, text_of
from bot.show.environment import drawn, load
from bot.show.escape import clean, clean_block
from bot.show.filters import plural
from bot.show.fitting import first_fitting, within_bytes
from bot.show.phrase import phrase, plain, strong
from bot.show.selection import Listing
from bot.show.skeleton import skeleton
from bot.show.text_tables import Line, Table

_BREAKABLE = 12, 40
"""Of a text of more characters, a terminal needs room for two thirds, and never for more than the second."""


def markdown(
    answer: str, blocks: Callable[[Room], Sequence[Block]], limit_bytes: int, templates_dir: Path | None = None
) -> str:
    """The Markdown, at most `limit_bytes` in UTF-8, with as much as there is room for.

    Args:
        answer: what it is called: a user's `lab.md.j2` draws all of the answer `lab`, `lab.answers.md.j2` one block.
        templates_dir: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    fits = within_bytes(limit_bytes)
    names = f"{answer}.md.j2", "blocks.md.j2"
    return first_fitting(
        names, FILE_TIERS, lambda room: {"answer": answer, "blocks": blocks(room)}, fits, templates_dir
    )


def page(
    answer: str,
    blocks: Sequence[Block],
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    templates_dir: Path | None = None,
) -> Iterator[bytes]:
    """A self-contained HTML page, piece by piece, in UTF-8; the first block is its heading.

    Args:
        styles, scripts: names of files below the templates, beside those of all pages.

    Raises:
        TemplateError: a template does not work.
    """
    values = {
        "answer": answer,
        "blocks": blocks,
        "title": plain(blocks[0].said) if isinstance(blocks[0], Sentence) else answer,
        "parts": [one for one in blocks if isinstance(one, Fold) and one.is_open and one.title and one],
        "skeleton": skeleton(templates_dir, styles=styles, scripts=scripts, charts=bool(scripts)),
    }
    template = load((f"{answer}.html.j2", "blocks.html.j2"), templates_dir)
    return (piece.encode() for piece in drawn(template, **values))


def print_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    for block in blocks:
        for part in _parts(block, console.width) if block else ():
            console.print(part)


def _parts(block: Block, width: int) -> Iterator[RenderableType]:
    if isinstance(block, Sentence):
        yield text_of(block.said)
    elif isinstance(block, Code):
        yield Padding(Text(clean_block(block.text), "dim"), (0, 0, 0, 4))
    elif isinstance(block, List):
        for number, line in enumerate(block.lines, 1):
            said, *below = (line.said, line.detail, line.below) if isinstance(line, Line) else (line,)
            yield Padding(text_of(phrase(f"{number}. ", said) if block.numbered else said), (0, 0, 0, 2))
            yield from (Padding(text_of(part), (0, 0, 0, 5), style="dim") for part in below if part)
        yield from _more(block.lines)
    elif isinstance(block, Table):
        yield from _rows(block) if block.sentences is not None else _fitted(block, width)
        yield from _more(block.rows)
    elif isinstance(block, Fold) and block.is_open:
        title = block.title if isinstance(block.title, str) else plain(block.title)
        if title:
            yield Text(f"\n{clean(title)}", "bold")
        for one in block.blocks:
            yield from _parts(one, width) if one else ()


def _rows(table: Table) -> Iterator[RenderableType]:
    """A line for each row, its sentences below: they are no column of a terminal."""
    if table.caption:
        yield Text(f"\n{clean(plain(table.caption))}", "bold")
    for first, *rest in table.rows:
        values = [
            phrase(f"{header} ", text)
            for at, (header, text) in enumerate(zip(table.headers[1:], rest, strict=True), 1)
            if at != table.sentences
        ]
        yield text_of(
            phrase(strong(plain(first)), ": ", *(phrase(", " if at else "", one) for at, one in enumerate(values)))
        )
        yield Padding(text_of((first, *rest)[table.sentences or 0]), (0, 0, 0, 2))


def _fitted(table: Table, width: int) -> Iterator[RenderableType]:
    """The table, or those of its columns that there is room for, the names first; only what has blanks is broken."""
    begin, last = table.numbers_from, len(table.headers) - 1
    texts = list(zip(*([phrase(header) for header in table.headers], *table.rows), strict=True))
    words = [[clean(plain(text)) for text in column] for column in texts]
    longest = [max(map(len, column)) for column in words]
    unbroken = [max(len(word) for text in column for word in text.split(" ")) for column in words]
    shown, room = set[int](), width
    for at in dict.fromkeys((*range(begin), *(table.wanted or (begin, last, *range(begin, last))))):
        needed = max(unbroken[at], min(longest[at], _BREAKABLE[1], max(_BREAKABLE[0], longest[at] * 2 // 3))) + 2
        if at < begin or not shown - {*range(begin)} or needed <= room:
            shown.add(at)
            room -= needed
    columns = sorted(shown)
    result = table_of(clean(plain(table.caption)), *(table.headers[at] for at in columns), numbers_from=begin)
    for at, column in zip(columns, result.columns, strict=True):
        column.no_wrap = unbroken[at] == longest[at] or longest[at] <= _BREAKABLE[0]
    for row in table.rows:
        result.add_row(*(text_of(row[at]) for at in columns))
    yield result
    if missing := [header for at, header in enumerate(table.headers) if at not in shown]:
        yield Text(f"no room for {', '.join(missing)}: they are in the files", "dim")


def _more(listed: Listing) -> Iterator[Text]:  # type: ignore[type-arg]  # of anything
    if listed.more:
        yield Text(f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim")
