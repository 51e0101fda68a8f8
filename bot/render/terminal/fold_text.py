"""A fold audit on a terminal, in the order of its section; colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from bot.core.folds.fold_values import FoldAudit
from bot.render.folds.fold_section import FoldRoom, FoldView, fold_view
from bot.render.terminal.drawing import table_of, text_of
from bot.render.text.escape import clean
from bot.render.text.filters import plural
from bot.render.text.phrase import Phrase, plain
from bot.render.text.selection import Listing
from bot.render.text.text_tables import Row, Table

_ROOM = FoldRoom(cells=40, families=0, reasons=8, names=6, bound=False)
_MODEL_COLUMNS = (0, 1, 2, 3, 8, 9)
"""Today and then: a terminal is too narrow for the steps between."""
_Parts = Iterator["Text | Drawn | Padding"]


def print_folds(audit: FoldAudit, console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    for part in _parts(fold_view(audit, _ROOM)):
        console.print(part)


def _parts(view: FoldView) -> _Parts:
    yield from map(text_of, view.said)
    yield from _table("Executables of each model's dispatch regions, today and folded", view.models, _MODEL_COLUMNS)
    for table in view.cells:
        yield from _table(f"What folding saves: {plain(table.caption)}", table)
    yield from _more(view.cells)
    yield from _lines("", view.notes)
    yield from _lines("Cells without a row", view.others)
    yield from _lines("Resuming alone, with nothing folded, changes the artifact", view.resumed)
    yield from _lines("Families that were left, and why", view.left)


def _table(title: str, table: Table, columns: Sequence[int] | None = None) -> _Parts:
    """The table, or these columns of it."""
    if not table:
        return
    kept = range(len(table.headers)) if columns is None else columns
    drawn = table_of(clean(title), *(table.headers[index] for index in kept), numbers_from=table.numbers_from)
    drawn.columns[0].no_wrap = True
    for row in table.rows:
        drawn.add_row(*(text_of(row[index]) for index in kept))
    yield drawn
    yield from _more(table.rows)


def _lines(title: str, lines: Listing[Phrase]) -> _Parts:
    if lines and title:
        yield Text(f"\n{title}", "bold")
    for line in lines:
        yield Padding(text_of(line), (0, 0, 0, 2))
    yield from _more(lines)


def _more(listed: Listing[Row] | Listing[Phrase] | Listing[Table]) -> _Parts:
    if listed.more:
        yield Text(f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim")
