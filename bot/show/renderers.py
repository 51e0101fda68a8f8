"""Draw blocks as Markdown, as an HTML page and as terminal text.

Nothing else draws blocks. Templates run in a sandbox that is made here.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

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
    Block,
    Code,
    Fold,
    Line,
    List,
    Listing,
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
from bot.show.fit import drawable, fit
from bot.show.narrow import narrowed
from bot.show.sizes import block_bytes
from bot.show.views import FILE, PAGE_ROOM, Room
from bot.system.files import write_atomically

_NUMBERS = (
    *(filters.amount, filters.human, filters.signed, filters.percent),
    *(filters.relative, filters.sides, filters.change, filters.plural),
)
_MARGIN = 0.98
"""The share of the room that `fit` aims at, as it estimates what blocks take."""
_BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
# A template may raise an error of any of these kinds; any other error is ours.
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
    """Return the directory of the default templates.

    It is inside the installed package, or beside it in a checkout.
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data" / "templates"
    if installed.is_dir():
        return installed
    return package.parent / "templates"


def _md_span(span: Span, code: Callable[[str], str]) -> str:
    if span.kind == "break":
        return "<br>"
    if span.kind == "code":
        return code(span.text)
    text = escape.md_text(span.text)
    if span.kind in ("number", "up", "down"):
        return text.replace(" ", "&nbsp;")
    if span.kind == "strong":
        return f"**{text}**"
    leading, trailing = _edges(span.text)
    if text:
        return f"{leading}{text}{trailing}"
    return leading


def md_words(text: Words, code: Callable[[str], str], page: str = "") -> str:
    """Return a phrase as Markdown.

    A span with an address on the page is a link if the page is known. `code` draws
    code.
    """
    pieces = []
    for span in phrase(text):
        pieces.append(_md_link(_md_span(span, code), page, span.to))
    return "".join(pieces)


def _md_phrase(code: Callable[[str], str]) -> Callable[[Context, Words], Markup]:
    return jinja2.pass_context(
        lambda context, spans: Markup(md_words(spans, code, context.get("page") or ""))
    )


def _md_link(text: str, page: str, address: str) -> str:
    url = ""
    if address.startswith("https://"):
        url = _without_reference(address)
    elif address and text:
        url = f"{page}#{address}"
    if escape.is_link(url):
        return f"[{text}](<{url}>)"
    return text


def _without_reference(address: str) -> str:
    """Return the address in a form that leaves no back-reference on GitHub.

    The plain address of a commit or an issue leaves one there, from each comment that
    names it.
    """
    if any(f"/{kind}/" in address for kind in ("commit", "issues", "pull")):
        return address.replace("https://github.com/", "https://redirect.github.com/", 1)
    return address


_TAGS = {
    "text": "{}",
    "code": "<code>{}</code>",
    "strong": "<strong>{}</strong>",
    "small": "<small>{}</small>",
}
_TAGS |= {"number": "{}", "break": "<br>"}
for _kind in ("up", "down", "fail", "warn"):
    _TAGS[_kind] = f'<span class="{_kind}">{{}}</span>'


def html_phrase(words: Words) -> Markup:
    """Return a phrase as HTML."""
    if isinstance(words, str):
        return Markup.escape(escape.visible(words))
    texts = []
    for span in words:
        text = _TAGS[span.kind].format(
            Markup.escape(escape.visible(span.text) or "(empty)")
        )
        if span.to:
            url = span.to
            if not escape.is_link(url):
                url = f"#{url}"
            text = f'<a href="{Markup.escape(url)}">{text}</a>'
        texts.append(text)
    return Markup("".join(texts))


def html_diff(text: str) -> Markup:
    """Return a unified diff for a `pre` element; added and removed lines are marked."""
    lines = (Markup.escape(line) for line in escape.clean_block(text).split("\n"))
    marked_lines = []
    for line in lines:
        marked_lines.append(Markup(_DIFF.get(line[:1], "{}")).format(line))
    return Markup("\n").join(marked_lines)


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
    # several lines, for a `pre` element
    "block": lambda text: Markup.escape(escape.clean_block(text)),
    "diff": html_diff,
    "rows": lambda table: html_rows(table),
}


class _Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox that remembers which attributes are safe.

    jinja2 decides by the object's type and the attribute's name. Without a memory it
    does so again for each build of a page.
    """

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
        if isinstance(value, str) and not isinstance(value, Markup):
            return made_safe(value)
        return value

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
    """Return the first template of these names that exists.

    The user's template of a name is taken before the default one.

    Raises:
        TemplateError: The template does not parse, or `user_dir` is not a directory.
    """
    if user_dir is not None and not user_dir.is_dir():
        raise TemplateError(
            "is not a directory",
            where=str(user_dir),
            hint="name a directory of templates",
        )
    if isinstance(names, str):
        candidates = [names]
    else:
        candidates = [*names]
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
    """Return a style or script as it stands in a page.

    The user's file is taken before the default one. It is not a template, and is not
    escaped.

    Raises:
        TemplateError: The file does not exist, or cannot be read.
    """
    path = templates_dir() / name
    if user_dir is not None and (user_dir / name).is_file():
        path = user_dir / name
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise TemplateError(f"cannot be read: {error}", where=str(path)) from None
    # as `drawn` leaves it: pages have its digest
    return _BLANK_LINES.sub("\n\n", text).strip()


def draw(template: jinja2.Template, **values: Any) -> str:
    """Do what `drawn` does, as one text."""
    return "".join(drawn(template, **values))


def drawn(template: jinja2.Template, **values: Any) -> Iterator[str]:
    """Yield the rendered text, piece by piece.

    Several blank lines become one, and so do the newlines at the end.

    Raises:
        TemplateError: The template failed; the error has file and line.
    """
    pieces = template.stream(**values)
    blanks = ""
    begun = False
    pieces.enable_buffering(_PIECES)
    try:
        for piece in pieces:
            if begun:
                text = blanks + piece
            else:
                text = (blanks + piece).lstrip()
            body = text.rstrip()
            begun = begun or bool(body)
            blanks = text[len(body) :]
            yield _BLANK_LINES.sub("\n\n", body)
        yield "\n"
    except _FAULTS as error:
        if isinstance(error, jinja2.TemplateError):
            kind = ""
        else:
            kind = f"{type(error).__name__}: "
        raise TemplateError(
            f"template failed: {kind}{error}", where=_place(error, template)
        ) from error


def _place(error: Exception, template: jinja2.Template) -> str:
    """Return file and line of the innermost template frame of the traceback."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.filename or error.name}:{error.lineno}"
    place = str(template.filename or template.name)
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.endswith(".j2"):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def length(text: str) -> int:
    """Return the length of a text in UTF-16 units, which GitHub's limits are taken in.

    It is never less than the number of characters.
    """
    return len(text.encode("utf-16-le")) // 2


def fitting_text(
    names: str | Sequence[str],
    blocks: Sequence[Block],
    values: Callable[[tuple[Block, ...]], Mapping[str, Any]],
    limit: int,
    size: Callable[[str], int] = length,
    templates_dir: Path | None = None,
) -> str:
    """Draw blocks with a template, shortened until the text fits.

    If no shorter form fits a user's template, the default one is drawn.

    `names`: the first template of these that exists is drawn. `values` gives the values
    of the template by the blocks to draw. `limit`: the largest `size` of the text.

    Raises:
        TemplateError: A template does not work.
    """
    template = load(names, templates_dir)
    shortened = blocks
    while True:
        text = draw(template, **values(drawable(shortened)))
        if size(text) <= limit:
            return text
        longer = shortened
        room_bytes = sum(map(block_bytes, longer)) * _MARGIN * limit / size(text)
        shortened = fit(longer, room_bytes)
        if shortened == longer:
            break
    if templates_dir is None:
        raise AssertionError(f"{template.name} is too large even in its smallest form")
    return fitting_text(names, blocks, values=values, limit=limit, size=size)


def utf8_bytes(text: str) -> int:
    """Return how many bytes a text takes in UTF-8."""
    return len(text.encode())


def html_rows(table: Table) -> Markup:
    """Return the rows of a table, each led by its name.

    The last cell of a short row is as wide as the columns that the row lacks.
    """
    lines = list[str]()
    width = len(table.headers)
    # a column without a header is not a column of names by itself
    scope = ""
    if not table.headers[0]:
        scope = ' scope="row"'
    for row in map(marked, table.rows):
        # of ours: not escaped
        attributes = ""
        if row.address:
            attributes += f' id="{row.address}"'
        if row.css:
            attributes += f' class="{row.css}"'
        name, *texts = map(html_phrase, row.texts)
        if table.sentences is None:
            css = {}
        else:
            css = {table.sentences - 1: ' class="causes"'}
        if len(row.texts) < width:
            css[len(texts) - 1] = f' colspan="{width - len(texts)}" class="gap"'
        cells = ""
        for number, text in enumerate(texts):
            cells += f"<td{css.get(number, '')}>{text}</td>"
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
    """Return a phrase for a terminal; of the blanks at the ends of a span one stays."""
    text = Text()
    for span in phrase(spans):
        if span.text.strip():
            leading, trailing = _edges(span.text)
            span_text = f"{leading}{clean(span.text)}{trailing}"
        else:
            span_text = span.text and " "
        text.append(span_text, _STYLES[span.kind])
    return text


def _edges(text: str) -> tuple[str, str]:
    """Return a blank for each end of a text that has a blank or a similar control."""
    leading = " " if text[:1].isspace() else ""
    trailing = " " if text[-1:].isspace() else ""
    return leading, trailing


def chart_library() -> str:
    """Return the library that draws charts, led by its licence as a comment.

    `make vendor` fetches both.
    """
    directory = templates_dir() / "vendor"
    licence = (directory / "chart.LICENSE.md").read_text(encoding="utf-8").strip()
    return (
        f"/*!\n{licence}\n*/\n"
        + (directory / "chart.js").read_text(encoding="utf-8").strip()
    )


def data_element(name: str, json: str) -> Markup:
    """Return JSON for a script, as an element with this id.

    Raises:
        TemplateError: The text would end its element.
    """
    return _elements(
        [json], f'<script type="application/json" id="{name}">', "</script>"
    )


def sources(texts: Sequence[str]) -> str:
    """Return the value of `script-src` or `style-src` that allows only these texts.

    CSP level 3 calls them hash sources.
    """
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    hashes = []
    for digest in digests:
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return " ".join(hashes)


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
    """The values that `page/skeleton.html.j2` draws."""

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
    """Return the frame of a page: the shared style and scripts, and the page's own.

    `templates_dir`: the user's templates, whose files are searched before the default
    ones. `styles`, `scripts`: names of files below the templates, added after the
    shared ones. `charts`: True if a script draws charts. The library is then carried
    as text, which `page/charts.js` runs when it is needed.

    Raises:
        TemplateError: A file does not exist, or cannot stand inside a page.
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
    if charts:
        library = [chart_library()]
    else:
        library = []
    # run when it is needed
    text_only = _elements(
        library, '<script type="text/plain" class="library">', "</script>"
    )
    elements = Markup("\n").join(
        [*filter(None, [text_only]), _elements(texts, "<script>", "</script>")]
    )
    policy = _POLICY.format(sources([style]), sources([*library, *texts]))
    return Skeleton(policy, _elements([style], "<style>", "</style>"), elements)


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_BREAKABLE = (12, 40)
_NUMBER = 18
"""How narrow a terminal may draw a column.

A text of more characters than the first figure needs room for two thirds of them, and
never for more than the second figure. A number needs room for so many characters.
"""


def markdown(
    answer: str,
    blocks: Callable[[Room], Sequence[Block]],
    limit_bytes: int,
    templates_dir: Path | None = None,
) -> str:
    """Return the Markdown of an answer, shortened to `limit_bytes` in UTF-8.

    `answer`: its name. A user's `lab.md.j2` draws all of the answer `lab`, and
    `lab.answers.md.j2` one block. `templates_dir`: the user's templates, searched
    before the default ones.

    Raises:
        TemplateError: A template does not work.
    """
    names = f"{answer}.md.j2", "blocks.md.j2"

    return fitting_text(
        names,
        blocks(FILE),
        values=lambda shown: {"answer": answer, "blocks": shown},
        limit=limit_bytes,
        size=utf8_bytes,
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
    templates, beside those of all pages. A page with scripts has charts. The other
    arguments are those of `markdown`.

    Raises:
        TemplateError: A template does not work.
    """
    files = [out / f"{answer}.json", out / f"{answer}.md", out / f"{answer}.html"]
    write_atomically(files[0], json)
    write_atomically(
        files[1],
        markdown(
            answer, blocks=blocks, limit_bytes=limit_bytes, templates_dir=templates_dir
        ).encode(),
    )
    page_blocks = drawable(blocks(PAGE_ROOM))
    title = answer
    if isinstance(page_blocks[0], Sentence):
        title = plain(page_blocks[0].said)
    parts = []
    for block in page_blocks:
        if isinstance(block, Fold) and block.is_open and block.title and block:
            parts.append(block)
    values = {
        "answer": answer,
        "blocks": page_blocks,
        "title": title,
        "parts": parts,
        "skeleton": skeleton(
            templates_dir, styles=styles, scripts=scripts, charts=bool(scripts)
        ),
    }
    template = load((f"{answer}.html.j2", "blocks.html.j2"), templates_dir)
    write_atomically(files[2], (piece.encode() for piece in drawn(template, **values)))
    return files


def print_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print blocks on a terminal; the files have what it has no room for."""
    for block in drawable(blocks):
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
        yield _code_part(block)
    elif isinstance(block, List):
        yield from _list_parts(block)
        yield from _more(block.lines)
    elif isinstance(block, Table):
        yield from _fitted(block, width)
        yield from _more(block.rows)
    elif isinstance(block, Fold) and block.is_open:
        title = plain(block.title)
        if title:
            yield Text(f"\n{clean(title)}", "bold")
        for child in block.blocks:
            if child:
                yield from _parts(child, width)


def _code_part(block: Code) -> Padding:
    styles: Mapping[str, str] = {}
    if block.language == "diff":
        styles = _DIFF_STYLES
    lines = clean_block(block.text).split("\n")
    texts = [Text(line, styles.get(line[:1], "dim")) for line in lines]
    return Padding(Text("\n").join(texts), (0, 0, 0, 4), expand=False)


def _list_parts(block: List) -> Iterator[Padding]:
    """Yield each line of a list, with its number and what stands below it."""
    for number, line in enumerate(block.lines, block.numbered):
        below: tuple[Words, ...] = ()
        if isinstance(line, Line):
            lead = line.said
            below = (line.detail, line.below)
        else:
            lead = line
        if block.numbered:
            lead = phrase(f"{number}. ", lead)
        yield Padding(text_of(lead), (0, 0, 0, 2), expand=False)
        for part in below:
            if part:
                yield Padding(text_of(part), (0, 0, 0, 5), style="dim", expand=False)


def _fitted(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield the table, or those of its columns that fit.

    Only texts with blanks are broken into lines.
    """
    widths = _column_widths(table, width)
    columns = sorted(widths)
    title: Text | None = None
    if table.caption:
        title = Text(f"\n{clean(plain(table.caption))}", "bold")
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
    missing = []
    for number, header in enumerate(table.headers):
        if number not in widths:
            missing.append(header)
    if missing:
        yield Text(f"{width} columns have no room for {', '.join(missing)}", "dim")


def _column_widths(table: Table, width: int) -> dict[int, int]:
    """Return the width of each column that there is room for, the names first."""
    last = len(table.headers) - 1
    begin = table.numbers_from
    if begin > last:
        begin = 1  # a table of words is led by its first column
    longest = list[int]()
    unbroken = list[int]()
    for column_texts in zip(table.headers, *table.texts, strict=True):
        cells = [clean(plain(text)) for text in column_texts]
        words = list[str]()
        for text in cells:
            words += text.split(" ")
        longest.append(max(map(cell_len, cells)))
        unbroken.append(max(map(cell_len, words)))
    widths = dict[int, int]()
    room = width
    for column in _column_order(table, begin):
        if table.is_number(column):
            minimum = _NUMBER
        else:
            minimum = max(_BREAKABLE[0], longest[column] * 2 // 3)
        needed = max(unbroken[column], min(longest[column], _BREAKABLE[1], minimum))
        if column < begin or len(widths) == begin or needed + 2 <= room:
            widths[column] = needed
            room -= needed + 2
    if room < 0:  # the widest name gives way
        column = max(widths, key=widths.__getitem__)
        widths[column] = max(_BREAKABLE[0], widths[column] + room)
    for column in sorted(widths, key=longest.__getitem__):
        added = max(0, min(room, longest[column] - widths[column]))
        widths[column] += added
        room -= added
    return widths


def _column_order(table: Table, begin: int) -> Iterable[int]:
    """Return the columns in the order in which they get their room.

    `begin`: the first column that is not a name.
    """
    order = table.wanted
    if not order:
        last = len(table.headers) - 1
        places = range(begin, last + 1)
        changes = [place for place in places if table.headers[place] == "change"]
        order = (*changes, begin, last, *range(begin, last))
    return dict.fromkeys((*range(begin), *order))


def _more(listed: Listing) -> Iterator[Text]:  # type: ignore[type-arg]  # of anything
    if listed.more:
        yield Text(
            f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim"
        )
