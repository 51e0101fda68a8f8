"""A history on a terminal: totals, steps and the artifacts of each cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from bot.core.history.history_values import TRACKED, History
from bot.render.history.history_view import HistoryRoom, HistoryView, history_view
from bot.render.terminal.drawing import table_of, text_of
from bot.render.text.filters import plural
from bot.render.text.phrase import plain
from bot.render.text.text_tables import Table

_ROOM = HistoryRoom(releases=8, cells=40, reasons=8, steps=12, causes=1, metrics=TRACKED[:1])
_COLUMN, _OTHERS = 11, 70
"""Characters of a release's column, and of all others of the widest table."""
_Parts = Iterator["Text | Drawn | Padding"]


def print_history(history: History, console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    columns = max(2, min(_ROOM.releases, (console.width - _OTHERS) // _COLUMN))
    for part in _parts(history_view(history, replace(_ROOM, releases=columns))):
        console.print(part)


def _parts(view: HistoryView) -> _Parts:
    yield from map(text_of, view.said)
    yield from (Padding(text_of(note), (0, 0, 0, 2)) for note in view.notes)
    for table in (view.totals, view.sums, view.steps, *view.cells):
        yield from _table(table)
    yield from (Padding(text_of(note), (0, 0, 0, 2)) for note in view.footnotes)
    if view.footnotes.more:
        yield Text(f"…and {plural(view.footnotes.more, f'more {view.footnotes.noun}')}, in the files", "dim")


def _table(table: Table) -> _Parts:
    if not table:
        return
    drawn = table_of(plain(table.caption), *table.headers, numbers_from=table.numbers_from)
    for row in table.rows:
        drawn.add_row(*map(text_of, row))
    yield drawn
    if table.rows.more:
        yield Text(f"…and {plural(table.rows.more, f'more {table.rows.noun}')}, in the files", "dim")
