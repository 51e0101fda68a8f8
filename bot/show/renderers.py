"""Blocks as Markdown, as a page and on a terminal: the only places that draw them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from bot.render.html.skeleton import skeleton
from bot.render.terminal.drawing import table_of, text_of
from bot.render.text.environment import drawn, load
from bot.render.text.escape import clean
from bot.render.text.filters import plural
from bot.render.text.fitting import first_fitting, within_bytes
from bot.render.text.phrase import phrase, plain, strong
from bot.render.text.selection import Listing
from bot.render.text.text_tables import Table
from bot.show.blocks import FILE_TIERS, Block, Fold, List, Room, Sentence
from bot.system.files import write_atomically

_BREAKABLE = 24
"""A value of more characters may be broken into lines on a terminal."""


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
    made: str,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    templates_dir: Path | None = None,
) -> Iterator[bytes]:
    """A self-contained HTML page, piece by piece, in UTF-8; the first block is its heading.

    Args:
        made: what stands below all.
        styles, scripts: names of files below the templates, beside those of all pages.

    Raises:
        TemplateError: a template does not work.
    """
    values = {
        "answer": answer,
        "blocks": blocks,
        "title": plain(blocks[0].said) if isinstance(blocks[0], Sentence) else answer,
        "parts": [one for one in blocks if isinstance(one, Fold) and one.is_open and one.title and one],
        "made": made,
        "skeleton": skeleton(templates_dir, styles=styles, scripts=scripts, charts=bool(scripts)),
    }
    template = load((f"{answer}.html.j2", "blocks.html.j2"), templates_dir)
    return (piece.encode() for piece in drawn(template, **values))


def write_files(out: Path, contents: Mapping[str, Callable[[], bytes | Iterable[bytes]]]) -> list[Path]:
    """Write files below `out`, each made when it is its turn: one that cannot be made takes none of those before it."""
    for name, content in contents.items():
        write_atomically(out / name, content())
    return [out / name for name in contents]


def print_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    for block in blocks:
        for part in _parts(block, console.width) if block else ():
            console.print(part)


def _parts(block: Block, width: int) -> Iterator[RenderableType]:
    if isinstance(block, Sentence):
        yield text_of(block.said)
    elif isinstance(block, List):
        yield from (Padding(text_of(line), (0, 0, 0, 2)) for line in block.lines)
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
    """The table, or those of its columns that there is room for.

    Names, the first number and the last column come before what is between: from the left, or the newest first.
    """
    begin, last = table.numbers_from, len(table.headers) - 1
    longest = [
        max(len(clean(plain(text))) for text in column)
        for column in zip(*((phrase(header) for header in table.headers), *table.rows), strict=True)
    ]
    between = range(begin + 1, last)
    shown, left_over = set[int](), width
    for at in dict.fromkeys((*range(begin + 1), last, *(reversed(between) if table.is_timeline else between))):
        needed = min(longest[at], max(_BREAKABLE, len(table.headers[at]))) + 2 if at > 0 else longest[at] + 2
        if at <= begin or needed <= left_over:
            shown.add(at)
            left_over -= needed
    columns = sorted(shown)
    result = table_of(clean(plain(table.caption)), *(table.headers[at] for at in columns), numbers_from=begin)
    for at, column in zip(columns, result.columns, strict=True):
        column.no_wrap = longest[at] <= _BREAKABLE or at == 0
    for row in table.rows:
        result.add_row(*(text_of(row[at]) for at in columns))
    yield result
    if len(columns) <= last:
        missing = ", ".join(header for at, header in enumerate(table.headers) if at not in shown)
        yield Text(f"no room for {missing}: they are in the files", "dim")


def _more(listed: Listing) -> Iterator[Text]:  # type: ignore[type-arg]  # of anything
    if listed.more:
        yield Text(f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim")
