"""An experiment's result on a terminal; colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from bot.core.lab.lab_values import Lab
from bot.render.lab.lab_view import LabRoom, LabView, lab_view
from bot.render.terminal.drawing import table_of, text_of
from bot.render.text.escape import clean
from bot.render.text.filters import plural
from bot.render.text.phrase import Phrase, plain
from bot.render.text.selection import Listing
from bot.render.text.text_tables import Row, Table

_ROOM = LabRoom(rows=60, answers=12, reasons=8, names=6)
_Parts = Iterator["Text | Drawn | Padding"]


def print_lab(lab: Lab, console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    for part in _parts(lab_view(lab, _ROOM), console.width):
        console.print(part)


def _parts(view: LabView, width: int) -> _Parts:
    yield text_of(view.title)
    for table in (*view.leading, view.fits):
        yield from _table(table, width)
    yield Text("\nWhat it says", "bold")
    yield from _lines("", view.answers)
    yield from (Padding(text_of(line), (0, 0, 0, 2)) for line in view.stack)
    yield from _lines("Not measured", view.unmeasured)
    yield from _lines("What to know", view.remarks)


def _table(table: Table, width: int) -> _Parts:
    """The table, or the columns of it that there is room for; the bars stay."""
    if not table:
        return
    kept = _columns(table, width)
    drawn = table_of(clean(plain(table.caption)), *(table.headers[at] for at in kept), numbers_from=table.numbers_from)
    for column in drawn.columns:
        column.no_wrap = True
    for row in table.rows:
        drawn.add_row(*(text_of(row[at]) for at in kept))
    yield drawn
    if left := [table.headers[at] for at in range(len(table.headers)) if at not in kept]:
        yield Text(f"no room for {', '.join(left)}: they are in the files", "dim")
    yield from _more(table.rows)


def _columns(table: Table, width: int) -> list[int]:
    """Which columns fit: names, the first number and what comes last before the others."""
    count, begin = len(table.headers), table.numbers_from
    needs = [max(len(table.headers[at]), *(len(plain(row[at])) for row in table.rows)) + 2 for at in range(count)]
    wanted = [*range(begin + 1), *range(count - 1, count - 2, -1), *range(begin + 1, count - 1)]
    kept: list[int] = []
    for at in dict.fromkeys(wanted):
        if at <= begin or sum(needs[one] for one in kept) + needs[at] <= width:
            kept.append(at)
    return sorted(kept)


def _lines(title: str, lines: Listing[Phrase]) -> _Parts:
    if lines and title:
        yield Text(f"\n{title}", "bold")
    for line in lines:
        yield Padding(text_of(line), (0, 0, 0, 2))
    yield from _more(lines)


def _more(listed: Listing[Row] | Listing[Phrase]) -> _Parts:
    if listed.more:
        yield Text(f"…and {plural(listed.more, f'more {listed.noun}')}, in the files", "dim")
