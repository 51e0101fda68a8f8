"""A history on a terminal: totals, steps and the artifacts of each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from bot.core.history.history_values import TRACKED, History
from bot.render.history.history_view import HistoryRoom, HistoryView, history_view
from bot.render.terminal.drawing import table_of, text_of
from bot.render.text.filters import plural
from bot.render.text.phrase import Phrase, phrase, plain, strong
from bot.render.text.selection import Listing
from bot.render.text.text_tables import Row, Table

_ROOM = HistoryRoom(releases=8, cells=40, reasons=8, steps=12, causes=1, metrics=TRACKED[:1])
_COLUMN, _OF_TOTALS, _OF_CELLS = 11, 60, 74
"""Characters of a release's column, and of all others of the tables of totals and of cells."""
_WIDE = 150
"""From so many characters on there is room for where each number moved first beside where it moved most."""
_Parts = Iterator["Text | Drawn | Padding"]


def print_history(history: History, console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    for part in _parts(_view(history, console.width - _OF_TOTALS), _view(history, console.width - _OF_CELLS), console):
        console.print(part)


def _view(history: History, width: int) -> HistoryView:
    return history_view(history, replace(_ROOM, releases=max(2, min(_ROOM.releases, width // _COLUMN))))


def _parts(totals: HistoryView, view: HistoryView, console: Console) -> _Parts:
    yield from map(text_of, view.said)
    yield from map(_indented, view.notes)
    for table in (totals.totals, totals.sums):
        yield from _table(plain(table.caption), table, range(len(table.headers)))
    yield from _steps(view.steps)
    is_wide = console.width >= _WIDE
    for title, table in view.cells:
        last = len(table.headers) - 1
        yield from _table(title, table, [at for at in range(len(table.headers)) if is_wide or at != last - 1])
    yield from map(_indented, view.footnotes)
    yield from _more(view.footnotes)


def _steps(table: Table) -> _Parts:
    """A line for each, its root causes below: sentences are no column of a terminal."""
    if table:
        yield Text(f"\n{plain(table.caption)}", "bold")
    for name, causes, cells, artifacts, *counts in table.rows:
        words = zip(table.headers[4:], counts, strict=True)
        told = ", ".join(f"{plain(count)} {word}" for word, count in words if plain(count) != "0")
        said = phrase(strong(plain(name)), f": {plain(artifacts)} over {plural(int(plain(cells)), 'cell')}")
        yield text_of(phrase(said, f", {told}" if told else ""))
        yield _indented(causes)
    yield from _more(table.rows)


def _indented(words: Phrase) -> Padding:
    return Padding(text_of(words), (0, 0, 0, 2))


def _table(title: str, table: Table, columns: Sequence[int]) -> _Parts:
    """These columns of it; names and values are never broken into lines."""
    if not table:
        return
    headers = [table.headers[at] for at in columns]
    drawn = table_of(title, *headers, numbers_from=table.numbers_from)
    for column, header in zip(drawn.columns, headers, strict=True):
        column.no_wrap = not header.startswith("moved")
    for row in table.rows:
        drawn.add_row(*(text_of(row[at]) for at in columns))
    yield drawn
    yield from _more(table.rows)


def _more(listed: Listing[Row] | Listing[Phrase]) -> _Parts:
    if listed.more:
        yield Text(f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim")
