"""The report on a terminal: verdict, grid, failures, the biggest movers; colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.core.values.whole_report import Report
from bot.render.text.escape import clean, clean_block
from bot.render.text.filters import change, plural, sides
from bot.render.text.phrase import Phrase
from bot.render.text.selection import Limits
from bot.render.view.failures import FailureGroup
from bot.render.view.grid import Block, Grid, GridCell
from bot.render.view.movers import Movers
from bot.render.view.rows import MetricRow
from bot.render.view.view import ReportView, build_view

_STYLES = {"text": "", "code": "cyan", "strong": "bold"}
_LEVELS = {"fail": "bold red", "warn": "yellow", "": ""}
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
    yield _text(view.headline, _VERDICTS[view.status])
    if view.roots.items:
        yield Text(f"Root causes{f' ({view.held})' if view.held else ''}", "bold")
    for number, root in enumerate(view.roots, 1):
        yield Text.assemble(f"{number}. ", _text(root.said))
        yield Padding(_text(root.detail), (0, 0, 0, 3), style="dim")
    for line in view.causes:
        yield Text.assemble("- ", _text(line.said))
        if line.detail:
            yield Padding(_text(line.detail), (0, 0, 0, 2), style="dim")
    yield _text(view.counts)
    yield _text(view.compared.versions)
    yield from (Text(f"note: {clean(note)}", "yellow") for note in view.notes)
    yield from _grid(view.grid)
    for group in view.undrawn:
        yield Text.assemble("not measured: ", _text(group.cells), f": {clean(group.reason)}", style="dim")
    yield from _failures("Newly broken", view.broken_newly.items)
    yield from _findings(view)
    yield from _movers("Largest regressions", view.regressions)
    yield from _movers("Largest improvements", view.improvements)
    yield from _failures("Broken on both sides", view.broken.items)


def _text(phrase: Phrase, strong: str = "bold") -> Text:
    styles = {**_STYLES, "strong": strong}
    return Text.assemble(*((_clean_span(span.text), styles[span.kind]) for span in phrase))


def _clean_span(text: str) -> str:
    left, right = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{left and ' '}{clean(text)}{right and ' '}" if text.strip() else text and " "


def _table(title: str) -> Table:
    heading = Text(f"\n{title}", "bold") if title else None
    return Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _grid(grid: Grid) -> Iterator[Text | Table]:
    if grid.settled:
        return
    for block in grid.blocks:
        yield _block(block)
    yield Text(" · ".join(f"{symbol} {meaning}" for symbol, meaning in grid.legend), "dim")
    if grid.models.more:
        yield Text(f"…and {plural(grid.models.more, 'model')} more with less to see", "dim")


def _block(block: Block) -> Table:
    table = _table("")
    table.add_column("model", no_wrap=True)
    for header in block.headers:
        table.add_column(Text(clean(header)), justify="right", no_wrap=True)
    for row in block.rows:
        table.add_row(Text(clean(row.model), "cyan"), *(_cell(cell) for cell in row.cells))
    return table


def _cell(cell: GridCell) -> Text:
    return Text(cell.text, _LEVELS[cell.level] or _STATES.get(cell.state, ""))


def _failures(title: str, groups: tuple[FailureGroup, ...]) -> Iterator[Text | Padding]:
    for index, group in enumerate(groups):
        if not index:
            yield Text(f"\n{title}", "bold")
        alike = f" ({plural(group.count, 'cell')} alike)" if group.count > 1 else ""
        yield Text.assemble(_text(group.what), alike, ": ", _text(group.cells))
        if group.diagnostics:
            yield Padding(Text(clean_block(group.diagnostics), "dim"), (0, 0, 0, 4))


def _findings(view: ReportView) -> Iterator[Table | Text]:
    if view.exceeded:
        table = _table("Over a limit, or lost")
        for name in ("model", "target", "metric", "actual", "allowed"):
            table.add_column(name)
        for row in view.exceeded:
            table.add_row(*_names(row), Text(clean(row.actual), _LEVELS[row.level]), Text(clean(row.limit)))
        yield table


def _names(row: MetricRow) -> tuple[Text, Text, Text]:
    return Text(clean(row.model), "cyan"), Text(clean(row.target), "cyan"), Text(row.metric or "state")


def _movers(title: str, movers: Movers) -> Iterator[Table | Text]:
    if not movers.top:
        return
    table = _table(title)
    for name in ("model", "target"):
        table.add_column(name, overflow="fold")
    for name in ("base → head", "change"):
        table.add_column(name, justify="right")
    metric = ""
    for row in movers.top:
        if row.metric != metric:
            table.add_row(Text(row.metric, "bold"))
            metric = row.metric
        values = sides(row.base, row.head, row.unit), change(row.base, row.head, row.unit)
        table.add_row(*_names(row)[:2], values[0], Text(values[1], _LEVELS[row.level]))
    yield table
    if movers.top.more:
        yield Text(f"{len(movers.top.items)} of {plural(movers.top.total, movers.top.noun)}", "dim")
