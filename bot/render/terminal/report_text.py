"""The report on a terminal: verdict, grid, failures, the biggest movers; colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.core.values.whole_report import Report
from bot.render.terminal.drawing import LEVELS, table_of, text_of
from bot.render.text.escape import clean, clean_block
from bot.render.text.filters import change, plural, sides
from bot.render.text.selection import Limits
from bot.render.view.failures import FailureGroup
from bot.render.view.grid import Block, Grid
from bot.render.view.movers import Movers
from bot.render.view.rows import MetricRow
from bot.render.view.view import ReportView, build_view

_STATES = {"newly-broken": "bold red", "broken": "magenta", "fixed": "green", "same": "dim", "unmeasured": "dim"}
_VERDICTS = {"fail": "bold red", "warn": "bold yellow", "pass": "bold green", "unknown": "bold magenta"}


def print_report(report: Report, console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    limits = Limits(40, max(console.width, 40) * 13 // 10, 4, 6, 10, 1, 10, 1, 12, 1, 6)
    for part in _parts(build_view(report, limits)):
        console.print(part)


def _parts(view: ReportView) -> Iterator[Text | Table | Padding]:
    if view.broke:
        yield Text(f"the analysis broke: {view.broke}", "bold red")
    yield text_of(view.headline, _VERDICTS[view.status])
    if view.roots.items:
        yield Text(f"Root causes{f' ({view.held})' if view.held else ''}", "bold")
    for number, root in enumerate(view.roots, 1):
        yield Text.assemble(f"{number}. ", text_of(root.said))
        yield Padding(text_of(root.detail), (0, 0, 0, 3), style="dim")
    for line in view.causes:
        yield Text.assemble("- ", text_of(line.said))
        if line.detail:
            yield Padding(text_of(line.detail), (0, 0, 0, 2), style="dim")
    yield text_of(view.counts)
    yield text_of(view.compared.versions)
    yield from (Text(f"note: {clean(note)}", "yellow") for note in view.notes)
    yield from _grid(view.grid)
    for group in view.undrawn:
        yield Text.assemble("not measured: ", text_of(group.cells), f": {clean(group.reason)}", style="dim")
    yield from _failures("Newly broken", view.broken_newly.items)
    yield from _findings(view)
    yield from _movers("Largest regressions", view.regressions)
    yield from _movers("Largest improvements", view.improvements)
    yield from _failures("Broken on both sides", view.broken.items)


def _grid(grid: Grid) -> Iterator[Text | Table]:
    if grid.settled:
        return
    for block in grid.blocks:
        yield _block(block)
    yield Text(" · ".join(f"{symbol} {meaning}" for symbol, meaning in grid.legend), "dim")
    if grid.models.more:
        yield Text(f"…and {plural(grid.models.more, 'more model')} with less to see", "dim")


def _block(block: Block) -> Table:
    table = table_of("")
    table.add_column("model", no_wrap=True)
    for header in block.headers:
        table.add_column(Text(clean(header)), justify="right", no_wrap=True)
    for row in block.rows:
        cells = (Text(cell.text, LEVELS.get(cell.level) or _STATES.get(cell.state, "")) for cell in row.cells)
        table.add_row(Text(clean(row.model), "cyan"), *cells)
    return table


def _failures(title: str, groups: tuple[FailureGroup, ...]) -> Iterator[Text | Padding]:
    for index, group in enumerate(groups):
        if not index:
            yield Text(f"\n{title}", "bold")
        alike = f" ({plural(group.count, 'cell')} alike)" if group.count > 1 else ""
        yield Text.assemble(text_of(group.what), alike, ": ", text_of(group.cells))
        if group.diagnostics:
            yield Padding(Text(clean_block(group.diagnostics), "dim"), (0, 0, 0, 4))


def _findings(view: ReportView) -> Iterator[Table | Text]:
    if view.exceeded:
        table = table_of("Over a limit, or lost", "model", "target", "metric", "actual", "allowed", numbers_from=5)
        for row in view.exceeded:
            actual = Text(clean(row.actual), LEVELS.get(row.level, ""))
            table.add_row(*_names(row), row.metric or "state", actual, Text(clean(row.limit)))
        yield table


def _names(row: MetricRow) -> tuple[Text, Text]:
    return Text(clean(row.model), "cyan"), Text(clean(row.target), "cyan")


def _movers(title: str, movers: Movers) -> Iterator[Table | Text]:
    if not movers.top:
        return
    table = table_of(title, "model", "target", "base → head", "change", numbers_from=2)
    metric = ""
    for row in movers.top:
        if row.metric != metric:
            table.add_row(Text(row.metric, "bold"))
            metric = row.metric
        values = sides(row.base, row.head, row.unit), change(row.base, row.head, row.unit)
        table.add_row(*_names(row), values[0], Text(values[1], LEVELS.get(row.level, "")))
    yield table
    if movers.top.more:
        yield Text(f"{len(movers.top.items)} of {plural(movers.top.total, movers.top.noun)}", "dim")
