"""Blocks as Markdown, as a page and on a terminal: the only places that draw them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from bot.errors import TemplateError
from bot.show.blocks import (
    FILE_TIERS,
    Block,
    Code,
    Fold,
    Line,
    List,
    Listing,
    Room,
    Sentence,
    Table,
    Words,
    phrase,
    plain,
    strong,
)
from bot.show.environment import asset, drawn, first_fitting, load, templates_dir, utf8_bytes
from bot.show.escape import clean, clean_block
from bot.show.filters import plural

LEVELS: Mapping[str, str] = {"fail": "bold red", "warn": "yellow"}  # Colours of findings
_STYLES = {"text": "", "code": "cyan", "strong": "bold", "small": "dim", "number": "", "up": "", "down": "", **LEVELS}


def text_of(words: Words) -> Text:
    """A phrase; spans keep the blanks at their ends."""
    return Text.assemble(*((_clean_span(span.text), _STYLES[span.kind]) for span in phrase(words)))


def _clean_span(text: str) -> str:
    left, right = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{left and ' '}{clean(text)}{right and ' '}" if text.strip() else text and " "


def table_of(title: str, *headers: str, numbers_from: int = 1) -> RichTable:
    """An empty table; columns from `numbers_from` on are numbers."""
    heading = Text(f"\n{title}", "bold") if title else None
    table = RichTable(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, header in enumerate(headers):
        table.add_column(header, overflow="fold", justify="right" if index >= numbers_from else "left")
    return table


CHARTS = ("chart",)
"""Libraries below `templates/vendor`, in the order in which they need each other; `make vendor` fetches them."""


def vendored(name: str) -> str:
    """The library's text, led by its licence as a comment."""
    directory = templates_dir() / "vendor"
    licence = (directory / f"{name}.LICENSE.md").read_text(encoding="utf-8").strip()
    return f"/*!\n{licence}\n*/\n" + (directory / f"{name}.js").read_text(encoding="utf-8").strip()


def script_elements(scripts: Sequence[str]) -> Markup:
    """The scripts as elements of a page; raises TemplateError for one that would end its element itself."""
    return _elements(scripts, "<script>", "</script>")


def library_elements(scripts: Sequence[str]) -> Markup:
    """The same as text that is not run: a script may do that when it needs it."""
    return _elements(scripts, '<script type="text/plain" class="library">', "</script>")


def data_element(name: str, json: str) -> Markup:
    """JSON for a script, as an element with this id; raises TemplateError for text that would end its element."""
    return _elements([json], f'<script type="application/json" id="{name}">', "</script>")


def style_element(style: str) -> Markup:
    """The style as an element of a page; raises TemplateError for one that would end its element itself."""
    return _elements([style], "<style>", "</style>")


def sources(texts: Sequence[str]) -> str:
    """The value of `script-src` or `style-src` that allows these texts alone (CSP level 3, hash sources)."""
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _elements(texts: Sequence[str], begin: str, end: str) -> Markup:
    for text in texts:
        if end[:-1] in text.lower() or "<!--" in text:
            raise TemplateError(f"holds {end!r} or the beginning of a comment: it cannot stand inside a page")
    elements = "\n".join(f"{begin}{text}{end}" for text in texts)
    return Markup(elements)  # noqa: S704 - text of ours, of the user's templates or of the vendored library


STYLE = "page/page.css"
ADDRESSES, TABLES, DRAWING = "page/addresses.js", "page/tables.js", "page/charts.js"
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}; script-src {}"


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What `page/skeleton.html.j2` draws."""

    policy: str  # the Content-Security-Policy: everything that the page carries, by its digest, and nothing else
    # style, scripts: as elements
    style: Markup
    scripts: Markup


def skeleton(
    templates_dir: Path | None = None, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), charts: bool = False
) -> Skeleton:
    """The frame of a page with the shared style, addresses and sortable tables, and what it has of its own.

    `templates_dir`: the user's templates, whose files are searched before the default ones; `styles`, `scripts`: names
    of files below the templates, added after the shared ones; `charts`: True where a script draws charts: the library
    is carried as text, which `page/charts.js` runs when it is needed.

    Raises:
        TemplateError: a file is not there, or cannot stand inside a page.
    """
    style = "\n".join(asset(name, templates_dir) for name in (STYLE, *styles))
    shared = (ADDRESSES, TABLES, *((DRAWING,) if charts else ()))
    own = [asset(name, templates_dir) for name in (*shared, *scripts)]
    library = [vendored(name) for name in CHARTS] if charts else []
    elements = Markup("\n").join([*filter(None, [library_elements(library)]), script_elements(own)])
    return Skeleton(_POLICY.format(sources([style]), sources([*library, *own])), style_element(style), elements)


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_BREAKABLE = 12, 40
"""Of a text of more characters, a terminal needs room for two thirds, and never for more than the second."""


def markdown(
    answer: str, blocks: Callable[[Room], Sequence[Block]], limit_bytes: int, templates_dir: Path | None = None
) -> str:
    """The Markdown, at most `limit_bytes` in UTF-8, with as much as there is room for.

    `answer`: what it is called: a user's `lab.md.j2` draws all of the answer `lab`, `lab.answers.md.j2` one block;
    `templates_dir`: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    names = f"{answer}.md.j2", "blocks.md.j2"

    def drawn_with(room: Room) -> Mapping[str, object]:
        return {"answer": answer, "blocks": blocks(room)}

    return first_fitting(names, FILE_TIERS, drawn_with, lambda text: utf8_bytes(text) <= limit_bytes, templates_dir)


def page(
    answer: str,
    blocks: Sequence[Block],
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    templates_dir: Path | None = None,
) -> Iterator[bytes]:
    """A self-contained HTML page, piece by piece, in UTF-8; the first block is its heading.

    `styles`, `scripts`: names of files below the templates, beside those of all pages.

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
            console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap is True)


def _parts(block: Block, width: int) -> Iterator[RenderableType]:
    if isinstance(block, Sentence):
        yield text_of(block.said)
    elif isinstance(block, Code) and block.language == "sh":
        yield Text(clean_block(block.text), no_wrap=True)  # to be copied whole
    elif isinstance(block, Code):
        styles, text = _DIFF_STYLES if block.language == "diff" else {}, clean_block(block.text)
        lines = (Text(line, styles.get(line[:1], "dim")) for line in text.split("\n"))
        yield Padding(Text("\n").join(lines), (0, 0, 0, 4))
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
    for first, *rest in table.texts:
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
    texts = list(zip(table.headers, *table.texts, strict=True))
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
    for row in table.texts:
        result.add_row(*(text_of(row[at]) for at in columns))
    yield result
    if missing := [header for at, header in enumerate(table.headers) if at not in shown]:
        yield Text(f"no room for {', '.join(missing)}: they are in the files", "dim")


def _more(listed: Listing) -> Iterator[Text]:  # type: ignore[type-arg]  # of anything
    if listed.more:
        yield Text(f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim")
