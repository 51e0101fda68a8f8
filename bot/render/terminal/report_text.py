"""The report on a terminal, in the order of the comment; colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.core.report import Report
from bot.render.terminal.drawing import LEVELS, table_of, text_of
from bot.render.text.escape import clean, clean_block
from bot.render.text.filters import plural, relative, sides
from bot.render.text.selection import Limits
from bot.render.view.failures import FailureGroup
from bot.render.view.grid import Block, Grid
from bot.render.view.totals import Totals
from bot.render.view.view import ReportView, build_view

_STATES = {"newly-broken": "bold red", "broken": "magenta", "fixed": "green", "same": "dim", "unmeasured": "dim"}
_VERDICTS = {"fail": "bold red", "warn": "bold yellow", "pass": "bold green", "unknown": "bold magenta"}


def print_report(report: Report, console: Console) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest."""
    limits = Limits(40, max(console.width, 40) * 13 // 10, 4, 6, 10, 10, 1, 12, 1, 4)
    for part in _parts(build_view(report, limits)):
        console.print(part)


def _parts(view: ReportView) -> Iterator[Text | Table | Padding]:
    if view.broke:
        yield Text(f"the analysis broke: {view.broke}", "bold red")
    yield text_of(view.headline, _VERDICTS[view.status])
    yield from _changes(view)
    if view.pin:
        yield from _causes(view)
    yield from _totals(view.totals)
    if not view.pin:
        yield from _causes(view)
    yield from _alarms(view)
    yield from _grid(view.grid)
    for group in view.unmeasured:
        yield Text.assemble("not measured: ", text_of(group.cells), f": {clean(group.reason)}", style="dim")
    yield from _failures("Newly broken", view.broken_newly.items)
    for one in view.broken:
        yield Text.assemble("broken on both sides: ", text_of(one.cells), ": ", text_of(one.what), style="dim")
    yield from (Text(f"note: {clean(note)}", "yellow") for note in view.notes)


def _changes(view: ReportView) -> Iterator[Text]:
    words = [text_of(one) for one in view.changes] or [Text("nothing of what is measured")]
    yield Text.assemble(("What changed: ", "bold"), Text(" | ").join(words))
    if view.compared.commits:
        yield text_of(view.compared.commits)


def _totals(totals: Totals) -> Iterator[Table | Text]:
    table = table_of("", "target", "change", "all models, base → head", "larger / smaller", "worst", numbers_from=1)
    table.columns[-1].justify = "left"
    for row in totals.rows:
        change = relative(row.base, row.head) if row.cells else "n/a"
        name = Text(clean(row.target) or "all", "cyan" if row.target else "bold")
        worst = text_of(row.worst)
        worst.stylize(LEVELS.get(row.level, ""))
        table.add_row(name, change, sides(row.base, row.head), row.ways, worst)
    if totals.rows:
        yield table
    if not totals.everything.cells and not totals.still:
        yield Text("no artifact to compare: no cell was measured on both sides", "dim")
    if totals.still:
        yield Text(f"no change on {', '.join(map(clean, totals.still))}", "dim")


def _causes(view: ReportView) -> Iterator[Text | Padding]:
    if view.roots.items:
        yield Text(f"Root causes{f' ({view.held})' if view.held else ''}", "bold")
    for number, root in enumerate(view.roots, 1):
        yield Text.assemble(f"{number}. ", text_of(root.said))
        yield Padding(text_of(root.detail), (0, 0, 0, 3), style="dim")
        if root.below:
            yield Padding(text_of(root.below), (0, 0, 0, 3))
    yield from _steps(view)


def _steps(view: ReportView) -> Iterator[Text | Padding]:
    for number, step in enumerate(view.steps):
        if not number:
            yield Text("Releases between", "bold")
        yield Text.assemble("- ", text_of(step.said))
        yield Padding(text_of(step.detail), (0, 0, 0, 2), style="dim")


def _alarms(view: ReportView) -> Iterator[Text]:
    if view.alarms.lines:
        title = "Over the limit" if view.status == "fail" else "To look at"
        yield Text(f"\n{title} ({plural(view.alarms.cells, 'cell')})", "bold")
    for alarm in view.alarms.lines:
        yield Text.assemble(f"{alarm.mark} ", text_of(alarm.said, LEVELS.get(alarm.level, "bold")))
    for count, noun, how in ((view.alarms.more, "more cell", ""), (view.alarms.warned, "cell", " at a warning level")):
        if count:
            yield Text(f"…and {plural(count, noun)}{how}, in the files", "dim")
    for line in view.close:
        yield Text.assemble("close to a limit: ", text_of(line), style="yellow")


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
