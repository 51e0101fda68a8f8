"""Draw the page: the whole report in one file that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bot.core.delta import STATES, CellDelta
from bot.core.report import Report
from bot.show.addresses import (
    cell_address,
)
from bot.show.blocks import (
    Table,
)
from bot.show.cards import PageRoom, cards
from bot.show.change_map import (
    EMPTY,
    change_map,
    least_shown,
    map_json,
    map_table,
    map_words,
)
from bot.show.escape import clip
from bot.show.facts import (
    NAME_LIMIT,
    Facts,
    build_facts,
)
from bot.show.fit import drawable, every_block
from bot.show.grid import build_grid
from bot.show.renderers import data_element, drawn, load, skeleton
from bot.show.report import page_blocks
from bot.show.views import PAGE, as_asked

# Of a page: what does not fit is counted, and named with the file that has it
LARGEST_BYTES = 5_000_000
_FRAME_BYTES = 400_000
_LINE_BYTES = 260
"""Bytes of a page: without builds but with its scripts, and of a grid cell or a row."""
TEMPLATE = "report.html.j2"
STYLE = "report/report.css"
SCRIPTS = (
    "page/treemap.js",
    "report/cells.js",
    "report/pictures.js",
)
# The most builds that a page shows one by one; it counts the others
CARDS = 1_500


def html_pieces(report: Report, templates_dir: Path | None = None) -> Iterator[str]:
    """Yield a self-contained HTML page, piece by piece.

    So a large report's page is never in memory as a whole. `templates_dir`: the user's
    templates, searched before the default ones.

    Raises:
        TemplateError: A template does not work.
    """
    facts = build_facts(report)
    template = load(TEMPLATE, templates_dir)
    grid = build_grid(facts, PAGE.grid_width, PAGE.grid_models)
    parts = {
        name: drawable(blocks)
        for name, blocks in page_blocks(facts, as_asked(PAGE)).items()
    }
    chosen = chosen_builds(facts)
    least_bytes = least_shown(facts)
    tree = change_map(facts, least_bytes)
    data = ""
    if tree.inside:
        data = data_element("change-data", map_json(tree, least_bytes))
    table = map_table(tree)
    lines = sum(len(rows) * len(headers) for headers, rows in grid.blocks)
    lines += len(table.rows.items)
    for block in every_block(parts["sections"]):
        if isinstance(block, Table):
            lines += len(block.rows.items)
    room = PageRoom(LARGEST_BYTES - _FRAME_BYTES - len(data) - _LINE_BYTES * lines)
    yield from drawn(
        template,
        answer="report",
        status=report.verdict.status,
        parts=parts,
        grid=grid,
        cards=cards(facts, chosen=chosen, room=room),
        room=room,
        shown={cell_address(delta.key) for delta in chosen},
        unlisted=_unlisted(facts, chosen),
        choices=_choices(facts, chosen),
        map=tree,
        map_words=map_words(facts, tree),
        map_table=table,
        map_data=data,
        skeleton=skeleton(templates_dir, styles=(STYLE,), scripts=SCRIPTS, charts=True),
    )


def _unlisted(facts: Facts, chosen: Sequence[CellDelta]) -> str:
    """Return a sentence about the builds that the page leaves out.

    It is empty if the page leaves out none.
    """
    count = len(facts.report.deltas)
    hidden = count - len(chosen)
    if not hidden:
        return ""
    return (
        f"Of {count:,} builds this page shows the {len(chosen):,} most important ones."
        f" The other {hidden:,} are in report.json; the sums and pictures above include"
        " them."
    )


def _choices(
    facts: Facts, chosen: Sequence[CellDelta]
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the filters of builds: the value and the words of each choice."""
    models = dict.fromkeys(clip(delta.key.model, NAME_LIMIT) for delta in chosen)
    targets = sorted({facts.short[delta.key.target] for delta in facts.report.deltas})
    return {
        "models": [(name or EMPTY, name or EMPTY) for name in models],
        "targets": [(name, name) for name in targets],
        "states": [
            (state, facts.state_words[state]) for state in STATES if facts.count(state)
        ],
        "levels": [("fail", "fails the check"), ("warn", "warning")],
    }


def chosen_builds(facts: Facts) -> list[CellDelta]:
    """Return the builds that a page shows one by one: the worst, and causes' examples.

    Builds with failing findings come first, then those with warnings, then the others
    by state and changed bytes. Builds without a change come last.
    """

    def rank(delta: CellDelta) -> tuple[bool, int, int, int]:
        level = ("fail", "warn", "").index(facts.level(delta.key))
        is_idle = delta.state in ("unmeasured", "same") and level == 2
        moved = 0
        if delta.metrics:
            moved = abs(delta.metrics["artifact_bytes"].change or 0)
        return is_idle, level, STATES.index(delta.state), -moved

    deltas = sorted(facts.report.deltas, key=rank)
    chosen = deltas[:CARDS]
    if len(deltas) > CARDS:
        examples = {root.example.key for root in facts.roots}
        chosen += [delta for delta in deltas[CARDS:] if delta.key in examples]
    return chosen
