"""Rows of tables, escaped and drawn at once: a template that did that cell by cell would be slow on large pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bot.show.escape import visible

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric that is not the same on both sides; `css` as below."""

    label: str
    base: str
    head: str
    change: str
    css: str


@dataclass(frozen=True, slots=True)
class Addressed:
    """A row that has an address.

    Attributes:
        side: `base` or `head` where that side alone has it; empty elsewhere.
        css: `up` or `down` for what grew or shrank, empty elsewhere.
        level: how deep in a tree.
        told: True where another row has the address as its id: that of why it changed.
    """

    address: str
    texts: Row
    side: str = ""
    css: str = ""
    level: int = 0
    told: bool = False


_SEPARATOR = "\x1f"  # no text that was made visible has it
_DEEPEST = 9


def plain_rows(rows: Iterable[Sequence[str]]) -> Markup:
    """Each led by its name."""
    return _all(_row("", texts) for texts in rows)


def addressed_rows(rows: Iterable[Addressed]) -> Markup:
    """Rows with their addresses as ids; one that has another row's links to that."""
    return _all(_row(_attributes(row), row.texts) for row in rows)


def tree_rows(rows: Iterable[Addressed]) -> Markup:
    """The same, and how deep each is."""
    return _all(_row(f'{_attributes(row)} data-level="{min(row.level, _DEEPEST)}"', row.texts) for row in rows)


def metric_rows(lines: Iterable[MetricLine]) -> Markup:
    """Metrics that changed; the change has a colour."""
    drawn = (_row("", (line.label, line.base, line.head, line.change)) for line in lines)
    styled = zip(drawn, (line.css for line in lines), strict=True)
    return _all(_last(row, css) if css else row for row, css in styled)


def _all(rows: Iterable[str]) -> Markup:
    return Markup("\n".join(rows))  # noqa: S704 - `_row` escapes


def _attributes(row: Addressed) -> str:
    """An address needs no escape: it consists of letters, digits and `-._~%/=`."""
    told = [("data-to" if row.told else "id", row.address), ("class", row.css), ("data-side", row.side)]
    return "".join(f' {name}="{value}"' for name, value in told if value)


def _row(attributes: str, texts: Sequence[str]) -> str:
    escaped = str(Markup.escape(_SEPARATOR.join(map(visible, texts))))
    name, *cells = escaped.split(_SEPARATOR)
    return f"<tr{attributes}><th>{name}</th><td>{'</td><td>'.join(cells)}</td></tr>"


def _last(row: str, css: str) -> str:
    before, _, after = row.rpartition("<td>")
    return f'{before}<td class="{css}">{after}'
