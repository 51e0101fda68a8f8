"""The page: everything there is to say, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bot.core.delta import STATES
from bot.core.report import Report
from bot.show.blocks import Limits, Table
from bot.show.cells import STATE_WORDS, PageRoom, Selection, cards, selection
from bot.show.change_map import change_map, map_json, map_table, map_words
from bot.show.environment import draw, drawn, load
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT, Facts, build_facts
from bot.show.filters import plural
from bot.show.grid import build_grid
from bot.show.headline import everything
from bot.show.renderers import data_element, skeleton
from bot.show.report import every_block, page_blocks

_LIMITS = Limits(400, 1_000_000, 200, 40, 40, 1_000, 1, 200, 60, 200, 0, 0, 0, 400, every=True)
LARGEST_BYTES = 5_000_000  # Of a page: what does not fit is counted, and named with the file that has it
_FRAME_BYTES, _LINE_BYTES = 400_000, 260
"""What a page without cells takes, with its scripts; and each cell of the grid, each finding and each row of tables."""
TEMPLATE = "report.html.j2"
STYLE, SCRIPTS = "report/report.css", ("page/treemap.js", "report/cells.js", "report/pictures.js")
_EMPTY = "(empty)"
_LEVELS = (("fail", "over the limit"), ("warn", "warning"))


def render_html(report: Report, templates_dir: Path | None = None) -> str:
    """Do what `html_pieces` does, as one text."""
    return "".join(html_pieces(report, templates_dir))


def html_pieces(report: Report, templates_dir: Path | None = None) -> Iterator[str]:
    """A self-contained HTML page, piece by piece: that of a large report need not be held.

    `templates_dir`: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    facts, template = build_facts(report), load(TEMPLATE, templates_dir)
    grid, parts, tree, chosen = (
        build_grid(facts, _LIMITS),
        page_blocks(facts, _LIMITS),
        change_map(facts),
        selection(facts),
    )
    data, table = data_element("change-data", map_json(tree)) if tree.inside else "", map_table(tree)
    lines = sum(len(rows) * len(headers) for headers, rows in grid.blocks) + len(table.rows.items)
    lines += sum(len(one.rows.items) for one in every_block(parts["sections"]) if isinstance(one, Table))
    room = PageRoom(LARGEST_BYTES - _FRAME_BYTES - len(data) - _LINE_BYTES * lines)
    yield from drawn(
        template,
        answer="report",
        status=report.verdict.status,
        parts=parts,
        grid=grid,
        cards=cards(facts, chosen, _LIMITS.causes, room),
        room=room,
        shown=chosen.addresses,
        unlisted=_unlisted(chosen),
        choices=_choices(facts, chosen),
        map=tree,
        map_words=map_words(facts, tree),
        map_table=table,
        map_data=data,
        skeleton=skeleton(templates_dir, styles=(STYLE,), scripts=SCRIPTS, charts=True),
    )


def _unlisted(chosen: Selection) -> str:
    """What of the cells is not told one by one, in a sentence; empty where all are."""
    counts = [f"{count:,} {STATE_WORDS.get(state, state)}" for state, count in chosen.left_out.items()]
    if not counts:
        return ""
    missing, shown = sum(chosen.left_out.values()), len(chosen.shown)
    return (
        f"Of {shown + missing:,} builds this page tells the {shown:,} that matter most. The other {missing:,} are in "
        f"report.json: {', '.join(counts)}. The sums and pictures above have all of them."
    )


def _choices(facts: Facts, chosen: Selection) -> Mapping[str, Iterable[tuple[str, str]] | int]:
    """What cells can be filtered by: value and words of each."""
    models = dict.fromkeys(clip(delta.key.model, NAME_LIMIT) for delta in chosen.shown)
    targets = sorted({facts.short[delta.key.target] for delta in facts.report.deltas})
    return {
        "models": [(name or _EMPTY, name or _EMPTY) for name in models],
        "targets": [(name, name) for name in targets],
        "states": [(state, STATE_WORDS.get(state, state)) for state in STATES if facts.count(state)],
        "levels": _LEVELS,
    }


SITE_TEMPLATE = "site.html.j2"
_SHOWN_DIGITS = 10
_ABOUT = {
    "report.html": "The newest baseline against the one before",
    "report.json": "The same as JSON",
    "history.html": "All baselines: when each number moved, and why",
    "history.json": "The same as JSON",
    "history.md": "The same as text",
}


def site_page(made: Report, commits: Sequence[str], files: Sequence[Path], templates_dir: Path | None = None) -> str:
    """The page.

    `made`: of the newest baseline and the one before; `commits`: that have a baseline, the oldest first; `files`: of
    the site, beside the page.

    Raises:
        TemplateError: a template does not work.
    """
    total = everything(build_facts(made))
    return draw(
        load(SITE_TEMPLATE, templates_dir),
        skeleton=skeleton(templates_dir),
        commit=commits[-1][:_SHOWN_DIGITS],
        compiler=made.head.compiler.version,
        said=f"{plural(len(commits), 'baseline')}, {plural(len(made.head.cells), 'build')} in the newest",
        total=total,
        links=[(file.name, _ABOUT[file.name]) for file in files],
    )
