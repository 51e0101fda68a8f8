"""Blocks as Markdown, as a page and on a terminal: the only places that draw them, and the sandbox of templates."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import jinja2
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup
from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from bot.errors import TemplateError
from bot.show import escape, filters
from bot.show.blocks import (
    FILE_TIERS,
    PAGE,
    Block,
    Code,
    Fold,
    Line,
    List,
    Listing,
    Room,
    Sentence,
    Span,
    Table,
    Words,
    marked,
    phrase,
    plain,
)
from bot.show.escape import clean, clean_block
from bot.show.filters import plural
from bot.show.narrow import narrowed
from bot.system.files import write_atomically

_NUMBERS = (
    *(filters.amount, filters.human, filters.signed, filters.percent),
    *(filters.relative, filters.sides, filters.change, filters.plural),
)
_BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
# A template may hold an error of any of these kinds; an error of another kind is one of
# ours.
_FAULTS = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)


def templates_dir() -> Path:
    """The directory of the default templates: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data" / "templates"
    return installed if installed.is_dir() else package.parent / "templates"


def _md_span(span: Span, code: Callable[[str], str]) -> str:
    if span.kind == "break":
        return "<br>"
    if span.kind == "code":
        return code(span.text)
    edge = [
        " " if end.isspace() else "" for end in (span.text[:1], span.text[-1:])
    ]  # some controls are blanks, too
    text = escape.md_text(span.text)
    if span.kind in ("number", "up", "down"):
        return text.replace(" ", "&nbsp;")
    return (
        f"**{text}**"
        if span.kind == "strong"
        else f"{edge[0]}{text}{edge[1]}"
        if text
        else edge[0]
    )


def md_words(text: Words, code: Callable[[str], str], page: str = "") -> str:
    """A phrase as Markdown; what has an address on the page is a link where the page is known.

    `code`: draws code.
    """
    return "".join(
        _md_link(_md_span(span, code), page, span.to) for span in phrase(text)
    )


def _md_phrase(code: Callable[[str], str]) -> Callable[[Context, Words], Markup]:
    return jinja2.pass_context(
        lambda context, spans: Markup(md_words(spans, code, context.get("page") or ""))
    )


def _md_link(text: str, page: str, address: str) -> str:
    url = f"{page}#{address}" if address and text else ""
    if address.startswith("https://"):
        # A plain address of a commit or an issue leaves a back-reference there, from
        # each comment that names it.
        named = any(f"/{kind}/" in address for kind in ("commit", "issues", "pull"))
        url = (
            address.replace("https://github.com/", "https://redirect.github.com/", 1)
            if named
            else address
        )
    return f"[{text}](<{url}>)" if escape.is_link(url) else text


_TAGS = {
    "text": "{}",
    "code": "<code>{}</code>",
    "strong": "<strong>{}</strong>",
    "small": "<small>{}</small>",
}
_TAGS |= {"number": "{}", "break": "<br>"} | {
    kind: f'<span class="{kind}">{{}}</span>' for kind in ("up", "down", "fail", "warn")
}


def html_phrase(words: Words) -> Markup:
    """A phrase as HTML."""
    if isinstance(words, str):
        return Markup.escape(escape.visible(words))
    texts = []
    for span in words:
        text = _TAGS[span.kind].format(
            Markup.escape(escape.visible(span.text) or "(empty)")
        )
        to = span.to if escape.is_link(span.to) else f"#{span.to}"
        texts.append(f'<a href="{Markup.escape(to)}">{text}</a>' if span.to else text)
    return Markup("".join(texts))


def html_diff(text: str) -> Markup:
    """The lines of a unified diff for a `pre` element: added and removed ones as such."""
    lines = (Markup.escape(line) for line in escape.clean_block(text).split("\n"))
    return Markup("\n").join(
        Markup(_DIFF.get(line[:1], "{}")).format(line) for line in lines
    )


_DIFF = {"+": "<ins>{}</ins>", "-": "<del>{}</del>"}
# How many pieces are drawn before they are handed on: one may be a whole cell of a page
_PIECES = 100


def _safe(escaped: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *args: Markup(escaped(*args))


_MARKDOWN: Mapping[str, Callable[..., Any]] = {
    "code": _safe(escape.md_code),
    "cell": _safe(escape.md_cell),
    "clip": escape.clip,  # still to be escaped
    "fence": _safe(escape.md_fence),
    "html": _safe(escape.html_text),
    "link": _safe(escape.md_link),
    "phrase": _md_phrase(escape.md_code),
    "cell_phrase": _md_phrase(escape.md_cell),
    "html_phrase": html_phrase,
    "narrowed": narrowed,
}
_HTML: Mapping[str, Callable[..., Any]] = {
    "phrase": html_phrase,
    "block": lambda text: Markup.escape(
        escape.clean_block(text)
    ),  # several lines, for a `pre` element
    "diff": html_diff,
    "rows": lambda table: html_rows(table),
}


class _Sandbox(ImmutableSandboxedEnvironment):
    """Remembers what is safe: jinja2 decides by the object's type and the attribute's name, for each cell of a page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known: dict[tuple[type, str], bool] = {}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        is_safe = self._known.get((type(obj), attr))
        if is_safe is None:
            is_safe = self._known[type(obj), attr] = super().is_safe_attribute(
                obj, attr, value
            )
        return is_safe


@lru_cache(maxsize=8)  # parsing the templates costs more than rendering a usual report
def _environment(
    user_dir: Path | None, *, markdown: bool
) -> ImmutableSandboxedEnvironment:
    searched = [path for path in (user_dir, templates_dir()) if path is not None]
    made_safe: Callable[[str], str] = (
        _safe(escape.md_text) if markdown else escape.visible
    )

    def finalize(value: Any) -> Any:
        return (
            made_safe(value)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        )

    environment = _Sandbox(
        loader=jinja2.FileSystemLoader(searched),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {number.__name__: _safe(number) if markdown else number for number in _NUMBERS}
    )
    environment.filters.update(_MARKDOWN if markdown else _HTML)
    return environment


def load(names: str | Sequence[str], user_dir: Path | None) -> jinja2.Template:
    """The first template of these names that there is, of each the user's before the default one.

    Raises:
        TemplateError: it does not parse, or `user_dir` is no directory.
    """
    if user_dir is not None and not user_dir.is_dir():
        raise TemplateError(
            "is not a directory",
            where=str(user_dir),
            hint="name a directory of templates",
        )
    candidates = [names] if isinstance(names, str) else [*names]
    name = candidates[-1]
    try:
        return _environment(
            user_dir, markdown=not name.endswith(".html.j2")
        ).select_template([*candidates])
    except jinja2.TemplateSyntaxError as error:
        where = f"{error.filename or error.name}:{error.lineno}"
        raise TemplateError(
            f"template does not parse: {error.message}", where=where
        ) from None
    except (jinja2.TemplateError, OSError, ValueError) as error:
        raise TemplateError(
            f"template cannot be read: {error}",
            where=f"{user_dir or templates_dir()}/{name}",
        ) from None


def asset(name: str, user_dir: Path | None) -> str:
    """A style or script as it stands in a page: the user's before the default one.

    No template, and not escaped.

    Raises:
        TemplateError: there is none, or it cannot be read.
    """
    path = templates_dir() / name
    if user_dir is not None and (user_dir / name).is_file():
        path = user_dir / name
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise TemplateError(f"cannot be read: {error}", where=str(path)) from None
    return _BLANK_LINES.sub(
        "\n\n", text
    ).strip()  # as `drawn` leaves it: pages tell its digest


def draw(template: jinja2.Template, **values: Any) -> str:
    """Do what `drawn` does, as one text."""
    return "".join(drawn(template, **values))


def drawn(template: jinja2.Template, **values: Any) -> Iterator[str]:
    """Render, piece by piece; several blank lines become one, and the newlines at the end one.

    Raises:
        TemplateError: the template failed, with file and line.
    """
    pieces, blanks, begun = template.stream(**values), "", False
    pieces.enable_buffering(_PIECES)
    try:
        for piece in pieces:
            text = blanks + piece if begun else (blanks + piece).lstrip()
            body = text.rstrip()
            begun, blanks = begun or bool(body), text[len(body) :]
            yield _BLANK_LINES.sub("\n\n", body)
        yield "\n"
    except _FAULTS as error:
        kind = (
            ""
            if isinstance(error, jinja2.TemplateError)
            else f"{type(error).__name__}: "
        )
        raise TemplateError(
            f"template failed: {kind}{error}", where=_place(error, template)
        ) from error


def _place(error: Exception, template: jinja2.Template) -> str:
    """File and line of the innermost template frame of the traceback."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.filename or error.name}:{error.lineno}"
    place, trace = str(template.filename or template.name), error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        place, trace = (
            (f"{name}:{trace.tb_lineno}" if name.endswith(".j2") else place),
            trace.tb_next,
        )
    return place


_Room = TypeVar("_Room")


def length(text: str) -> int:
    """Length of a text as GitHub's limits are taken here: UTF-16 units, never fewer than characters."""
    return len(text.encode("utf-16-le")) // 2


def first_fitting(
    names: str | Sequence[str],
    tiers: Sequence[_Room],
    values: Callable[[_Room], Mapping[str, Any]],
    fits: Callable[[str], bool],
    templates_dir: Path | None = None,
    check: Callable[[str, str], None] = lambda _text, _file: None,
) -> str:
    """The first room that fits; a user's template of which none does gives way to the default one.

    `names`: the first template of these that there is is drawn; `values`: with what it
    is drawn, by the room there is; `check`: raises TemplateError for a text that cannot
    be used; `str` is the template's file.

    Raises:
        TemplateError: a template does not work.
    """
    template = load(names, templates_dir)
    for room in tiers:
        text = draw(template, **values(room))
        check(text, str(template.filename))
        if fits(text):
            return text
    if templates_dir is None:
        raise AssertionError(f"{template.name} is too large even in its smallest form")
    return first_fitting(
        names, tiers=tiers, values=values, fits=fits, templates_dir=None, check=check
    )


def utf8_bytes(text: str) -> int:
    """How many bytes it takes."""
    return len(text.encode())


def html_rows(table: Table) -> Markup:
    """The rows of a table, each led by its name.

    What stands in place of the last columns is as wide as they.
    """
    lines, width = list[str](), len(table.headers)
    scope = (
        "" if table.headers[0] else ' scope="row"'
    )  # a column without a header is no column of names by itself
    for row in map(marked, table.rows):
        about = {"id": row.address, "class": row.css}
        attributes = "".join(
            f' {name}="{value}"' for name, value in about.items() if value
        )  # of ours: not escaped
        name, *texts = map(html_phrase, row.texts)
        css = (
            {} if table.sentences is None else {table.sentences - 1: ' class="causes"'}
        )
        if len(row.texts) < width:
            css[len(texts) - 1] = f' colspan="{width - len(texts)}" class="gap"'
        cells = "".join(
            f"<td{css.get(number, '')}>{text}</td>" for number, text in enumerate(texts)
        )
        lines.append(f"<tr{attributes}><th{scope}>{name}</th>{cells}</tr>")
    return Markup("\n".join(lines))


_STYLES: Mapping[str, str] = {
    **dict.fromkeys(("text", "number", "up", "down", "break"), ""),
    "code": "cyan",
    "strong": "bold",
    "small": "dim",
    "fail": "bold red",
    "warn": "yellow",
}


def text_of(spans: Words) -> Text:
    """A phrase; of the blanks at the ends of a span one stays."""
    text = Text()
    for span in phrase(spans):
        leading, trailing = (
            " " if end.isspace() else "" for end in (span.text[:1], span.text[-1:])
        )
        text.append(
            (
                f"{leading}{clean(span.text)}{trailing}"
                if span.text.strip()
                else span.text and " "
            ),
            _STYLES[span.kind],
        )
    return text


def chart_library() -> str:
    """The text of the library that draws charts, led by its licence as a comment.

    `make vendor` fetches both.
    """
    directory = templates_dir() / "vendor"
    licence = (directory / "chart.LICENSE.md").read_text(encoding="utf-8").strip()
    return (
        f"/*!\n{licence}\n*/\n"
        + (directory / "chart.js").read_text(encoding="utf-8").strip()
    )


def data_element(name: str, json: str) -> Markup:
    """JSON for a script, as an element with this id.

    Raises TemplateError for text that would end its element.
    """
    return _elements(
        [json], f'<script type="application/json" id="{name}">', "</script>"
    )


def sources(texts: Sequence[str]) -> str:
    """The value of `script-src` or `style-src` that allows these texts alone (CSP level 3, hash sources)."""
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(
        f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests
    )


def _elements(texts: Sequence[str], begin: str, end: str) -> Markup:
    for text in texts:
        if end[:-1] in text.lower() or "<!--" in text:
            raise TemplateError(
                f"contains {end!r} or the beginning of a comment, which a page cannot"
                " have"
            )
    return Markup("\n".join(f"{begin}{text}{end}" for text in texts))


_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {};"
    " script-src {}"
)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What `page/skeleton.html.j2` draws."""

    # the Content-Security-Policy: everything that the page carries, by its digest, and
    # nothing else
    policy: str
    # style, scripts: as elements
    style: Markup
    scripts: Markup


def skeleton(
    templates_dir: Path | None = None,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    charts: bool = False,
) -> Skeleton:
    """The frame of a page with the shared style, addresses and sortable tables, and what it has of its own.

    `templates_dir`: the user's templates, whose files are searched before the default
    ones; `styles`, `scripts`: names of files below the templates, added after the
    shared ones; `charts`: True where a script draws charts: the library is carried as
    text, which `page/charts.js` runs when it is needed.

    Raises:
        TemplateError: a file is not there, or cannot stand inside a page.
    """
    style = "\n".join(asset(name, templates_dir) for name in ("page/page.css", *styles))
    shared = (
        "page/addresses.js",
        "page/choices.js",
        "page/tables.js",
        "page/copy.js",
        *(["page/charts.js"] if charts else []),
    )
    texts = [asset(name, templates_dir) for name in (*shared, *scripts)]
    library = [chart_library()] if charts else []
    text_only = _elements(
        library, '<script type="text/plain" class="library">', "</script>"
    )  # run when it is needed
    elements = Markup("\n").join(
        [*filter(None, [text_only]), _elements(texts, "<script>", "</script>")]
    )
    policy = _POLICY.format(sources([style]), sources([*library, *texts]))
    return Skeleton(policy, _elements([style], "<style>", "</style>"), elements)


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_BREAKABLE, _NUMBER = (12, 40), 18
"""Of a text of more characters, a terminal needs room for two thirds, and never for more than the second; of a number
for all of so many."""


def markdown(
    answer: str,
    blocks: Callable[[Room], Sequence[Block]],
    limit_bytes: int,
    templates_dir: Path | None = None,
) -> str:
    """The Markdown, at most `limit_bytes` in UTF-8, with as much as there is room for.

    `answer`: what it is called: a user's `lab.md.j2` draws all of the answer `lab`,
    `lab.answers.md.j2` one block; `templates_dir`: the user's templates, searched
    before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    names = f"{answer}.md.j2", "blocks.md.j2"

    def drawn_with(room: Room) -> Mapping[str, object]:
        return {"answer": answer, "blocks": blocks(room)}

    return first_fitting(
        names,
        tiers=FILE_TIERS,
        values=drawn_with,
        fits=lambda text: utf8_bytes(text) <= limit_bytes,
        templates_dir=templates_dir,
    )


def write_answer(
    answer: str,
    json: Iterable[bytes],
    blocks: Callable[[Room], Sequence[Block]],
    limit_bytes: int,
    templates_dir: Path | None,
    out: Path,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
) -> list[Path]:
    """Write the JSON of an answer, its Markdown and its page into `out`.

    The first block is the page's heading. `styles`, `scripts`: names of files below the
    templates, beside those of all pages; a page with scripts has charts. The other
    arguments: as of `markdown`.

    Raises:
        TemplateError: a template does not work.
    """
    files = [out / f"{answer}.json", out / f"{answer}.md", out / f"{answer}.html"]
    write_atomically(files[0], json)
    write_atomically(
        files[1],
        markdown(
            answer, blocks=blocks, limit_bytes=limit_bytes, templates_dir=templates_dir
        ).encode(),
    )
    page_blocks = blocks(PAGE)
    values = {
        "answer": answer,
        "blocks": page_blocks,
        "title": plain(page_blocks[0].said)
        if isinstance(page_blocks[0], Sentence)
        else answer,
        "parts": [
            block
            for block in page_blocks
            if isinstance(block, Fold) and block.is_open and block.title and block
        ],
        "skeleton": skeleton(
            templates_dir, styles=styles, scripts=scripts, charts=bool(scripts)
        ),
    }
    template = load((f"{answer}.html.j2", "blocks.html.j2"), templates_dir)
    write_atomically(files[2], (piece.encode() for piece in drawn(template, **values)))
    return files


def print_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    for block in blocks:
        for part in _parts(block, console.width) if block else ():
            console.print(
                part, soft_wrap=isinstance(part, Text) and part.no_wrap is True
            )


def _parts(block: Block, width: int) -> Iterator[RenderableType]:
    if isinstance(block, Sentence):
        yield text_of(block.said)
    elif isinstance(block, Code) and block.language == "sh":
        yield Text(clean_block(block.text), no_wrap=True)  # to be copied whole
    elif isinstance(block, Code):
        styles, text = (
            _DIFF_STYLES if block.language == "diff" else {},
            clean_block(block.text),
        )
        lines = (Text(line, styles.get(line[:1], "dim")) for line in text.split("\n"))
        yield Padding(Text("\n").join(lines), (0, 0, 0, 4), expand=False)
    elif isinstance(block, List):
        for number, line in enumerate(block.lines, block.numbered):
            lead, *below = (
                (line.said, line.detail, line.below)
                if isinstance(line, Line)
                else (line,)
            )
            yield Padding(
                text_of(phrase(f"{number}. ", lead) if block.numbered else lead),
                (0, 0, 0, 2),
                expand=False,
            )
            yield from (
                Padding(text_of(part), (0, 0, 0, 5), style="dim", expand=False)
                for part in below
                if part
            )
        yield from _more(block.lines)
    elif isinstance(block, Table):
        yield from _fitted(block, width)
        yield from _more(block.rows)
    elif isinstance(block, Fold) and block.is_open:
        title = block.title if isinstance(block.title, str) else plain(block.title)
        if title:
            yield Text(f"\n{clean(title)}", "bold")
        for child in block.blocks:
            yield from _parts(child, width) if child else ()


def _fitted(table: Table, width: int) -> Iterator[RenderableType]:
    """The table, or those of its columns that there is room for, the names first.

    Only what has blanks is broken.
    """
    last = len(table.headers) - 1
    begin = (
        table.numbers_from if table.numbers_from <= last else 1
    )  # a table of words is led by its first column
    texts = list(zip(table.headers, *table.texts, strict=True))
    cells = [[clean(plain(text)) for text in column] for column in texts]
    longest = [max(map(cell_len, column)) for column in cells]
    unbroken = [
        max(cell_len(word) for text in column for word in text.split(" "))
        for column in cells
    ]
    changes = (
        number for number in range(begin, last + 1) if table.headers[number] == "change"
    )
    widths, room = dict[int, int](), width
    for column in dict.fromkeys(
        (*range(begin), *(table.wanted or (*changes, begin, last, *range(begin, last))))
    ):
        minimum = (
            _NUMBER
            if table.is_number(column)
            else max(_BREAKABLE[0], longest[column] * 2 // 3)
        )
        needed = max(unbroken[column], min(longest[column], _BREAKABLE[1], minimum))
        if column < begin or len(widths) == begin or needed + 2 <= room:
            widths[column] = needed
            room -= needed + 2
    if room < 0:  # the widest name gives way
        column = max(widths, key=widths.__getitem__)
        widths[column] = max(_BREAKABLE[0], widths[column] + room)
    for column in sorted(widths, key=longest.__getitem__):
        added = max(0, min(room, longest[column] - widths[column]))
        widths[column], room = widths[column] + added, room - added
    columns = sorted(widths)
    title = Text(f"\n{clean(plain(table.caption))}", "bold") if table.caption else None
    result = RichTable(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        side: Literal["right", "left"] = "right" if table.is_number(column) else "left"
        result.add_column(
            table.headers[column], overflow="fold", justify=side, width=widths[column]
        )
    for row in table.texts:
        result.add_row(*(text_of(row[column]) for column in columns))
    yield result
    if missing := [
        header for number, header in enumerate(table.headers) if number not in widths
    ]:
        yield Text(f"{width} columns have no room for {', '.join(missing)}", "dim")


def _more(listed: Listing) -> Iterator[Text]:  # type: ignore[type-arg]  # of anything
    if listed.more:
        yield Text(
            f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim"
        )
