"""Show a comparison: one screen for all that matters, and folds below it.

The screen has the verdict, the changes, their sizes and causes, and what to do now.

The comment, the job summary, the check, the page and the terminal show these blocks.
Each has another limit of size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from rich.console import Console

from bot.core.delta import value_of
from bot.core.metrics import METRIC_BY_ID, METRICS, own_metrics
from bot.core.report import Report
from bot.show.alarms import alarms
from bot.show.blocks import (
    Block,
    Blocks,
    Fold,
    List,
    Part,
    Rank,
    Row,
    Sentence,
    Table,
    bounded,
    fair_in_order,
    listed,
    listing,
    part,
    phrase,
    section,
)
from bot.show.changed_builds import changed_builds
from bot.show.compared import compared, reproduce
from bot.show.deduplication_table import deduplication_table
from bot.show.facts import (
    Facts,
    build_facts,
    notes,
)
from bot.show.failures import failed_builds, unmeasured
from bot.show.filters import amount, plural
from bot.show.findings import findings
from bot.show.first_screen import (
    causes_block,
    changes_block,
    failing_blocks,
    first_screen,
    measures_block,
    remark_blocks,
    verdict_block,
    warning_blocks,
)
from bot.show.fit import left_out
from bot.show.folded_line import folded_line
from bot.show.grid import grid_blocks
from bot.show.next_step import next_block
from bot.show.renderers import print_blocks
from bot.show.views import View, as_asked, terminal_view

# What the first report has of every build
_SIZED = (
    "artifact_bytes",
    "executables",
    "stack_max_bytes",
)


def report_blocks(facts: Facts, view: View) -> Blocks:
    """Return the whole report, in the order in which it is read."""
    models = {
        delta.key.model
        for delta in facts.report.deltas
        if delta.key.target in facts.measured_targets
    }
    targets = plural(len(facts.measured_targets), "target")
    builds = Fold(
        phrase(f"Every build: {plural(len(models), 'model')} × {targets}"),
        (_grid(facts, view), _unmeasured(facts, view)),
        name="grid",
    )
    if facts.report.adoption:
        builds = _measured_first(facts, view)
    if view.details:
        inside = (*builds.blocks, deduplication_table(facts, view))
        builds = replace(builds, blocks=inside)
    return (
        *first_screen(facts, view),
        builds,
        changed_builds(facts, view),
        findings(facts, view),
        compared(facts, view),
    )


def _grid(facts: Facts, view: View) -> Part:
    tables = partial(grid_blocks, facts, view.grid_width)
    return part(tables, view.grid_models, Rank.LINE)


def with_left_out(blocks: Blocks, where: str) -> Blocks:
    """Return a report whose last sentence names what its folds leave out.

    The warnings do not count: the fold of all findings has them, too.

    `where`: the place that has everything.
    """
    *others, last = blocks
    folds = [
        block
        for block in blocks
        if isinstance(block, Fold) and not block.is_open and block.name != "warnings"
    ]
    missing = left_out(folds)
    if not missing or not isinstance(last, Fold):
        return blocks
    words = f"Shortened to fit. Left out here: {missing}; {where} have everything."
    sentence = Sentence(words, small=True, name="left-out")
    return (*others, replace(last, blocks=(*last.blocks, sentence)))


def page_blocks(facts: Facts, view: View) -> Mapping[str, Blocks]:
    """Return the blocks of a page beside pictures, grid and builds, by their place."""
    compilers = (
        side.compiler.metrics for side in (facts.report.base, facts.report.head)
    )
    metrics = (*METRICS, *own_metrics(*compilers).values())
    meanings = List(
        listed(phrase(f"{metric.label}: {metric.about}") for metric in metrics)
    )
    below = replace(compared(facts, view), is_open=True)
    groups = alarms(facts, view)
    return {
        "header": (verdict_block(facts), changes_block(facts)),
        "alarms": (
            *failing_blocks(facts, groups, view),
            *warning_blocks(facts, groups, view),
        ),
        "totals": (measures_block(facts, view), folded_line(facts, view)),
        "why": (causes_block(facts, view),),
        "next": (
            *remark_blocks(facts, view),
            next_block(facts, groups, view),
            reproduce(facts, view),
        ),
        "unmeasured": (_unmeasured(facts, view),),
        "sections": (
            findings(facts, view),
            deduplication_table(facts, view),
            below,
            Fold("What the metrics mean", (meanings,), name="metrics"),
        ),
    }


def print_report(report: Report, console: Console, *, quiet: bool = False) -> None:
    """Print the report on a terminal; its files have what the screen leaves out.

    `quiet`: print only the verdict.
    """
    view = as_asked(terminal_view(console.width))
    facts = build_facts(report)
    if quiet:
        print_blocks((verdict_block(facts),), console)
        return
    grid: Blocks = (_grid(facts, view),)
    drawn_states = {
        delta.state
        for delta in facts.report.deltas
        if delta.key.target in facts.measured_targets
    }
    if drawn_states <= {"same"}:
        grid = ()
    blocks = (
        *first_screen(facts, view),
        section("", *grid, _unmeasured(facts, view), name="grid"),
        failed_builds(facts, "newly-broken", view),
        failed_builds(facts, "broken", view),
        section(
            "Notes",
            List(listed(notes(facts.report)[: view.failures])),
            name="notes",
        ),
    )
    print_blocks(blocks, console)


def _unmeasured(facts: Facts, view: View) -> Fold:
    reasons = List(listed(unmeasured(facts, view.names), "reason"))
    reason_part = bounded(reasons, Rank.LINE, view.findings)
    return section("Not measured", reason_part, name="unmeasured")


def _measured_first(facts: Facts, view: View) -> Fold:
    """Return the fold with the size of every build."""
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    headers = ("model", "target", "code size", "executables", "largest stack frame")

    def table(count: int) -> Iterator[Block]:
        rows = list[Row]()
        for cell in fair_in_order(cells, lambda cell: cell.key.model, count):
            values = (
                amount(value_of(cell, id_), METRIC_BY_ID[id_].unit) for id_ in _SIZED
            )
            rows.append((*facts.names(cell.key), *values))
        yield Table(headers, listing(rows, len(cells), "build"), numbers_from=2)

    sizes = part(table, view.findings, Rank.LINE)
    return Fold("Every build: code size, executables and stack", (sizes,), name="cells")
