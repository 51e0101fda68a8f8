"""The page: everything there is to say, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bot.core.delta import STATES
from bot.core.metrics import METRICS
from bot.core.report import Report
from bot.render.reasons.why_lines import leading
from bot.render.text.environment import drawn, load
from bot.render.text.escape import clip
from bot.render.text.filters import percent
from bot.render.text.selection import Limits
from bot.render.view.facts import NAME_LIMIT, Facts, build_facts
from bot.render.view.view import views
from bot.show.cells import STATE_WORDS, cards
from bot.show.change_map import change_map, map_json, map_table, map_words
from bot.show.skeleton import data_element, skeleton
from bot.show.table_rows import addressed_rows, metric_rows, plain_rows, tree_rows

_LIMITS = Limits(2_000, 1_000_000, 200, 40, 40, 2_000, 1, 500, 200, 200, 0, 0, 0, 600, every=True)
_LEADING = 4
TEMPLATE = "report.html.j2"
STYLE, SCRIPTS = "report/report.css", ("page/treemap.js", "report/cells.js", "report/pictures.js")
_ROWS = {one.__name__: one for one in (plain_rows, addressed_rows, tree_rows, metric_rows)}
_EMPTY = "(empty)"
_LEVELS = (("fail", "over the limit"), ("warn", "warning"))


def render_html(report: Report, templates_dir: Path | None = None) -> str:
    """Do what `html_pieces` does, as one text."""
    return "".join(html_pieces(report, templates_dir))


def html_pieces(report: Report, templates_dir: Path | None = None) -> Iterator[str]:
    """A self-contained HTML page, piece by piece: that of a large report need not be held.

    Args:
        templates_dir: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    facts, template = build_facts(report), load(TEMPLATE, templates_dir)
    view, first = views(facts)(_LIMITS), min(_LEADING, leading(facts))
    tree = change_map(facts)
    yield from drawn(
        template,
        view=view,
        cards=cards(facts, len(view.roots.items)),
        choices=_choices(facts),
        leading=first,
        map=tree,
        map_words=map_words(facts, tree),
        map_table=map_table(tree),
        map_data=data_element("page:change", map_json(tree)) if tree.inside else "",
        rest=_share([root.share for root in report.root_causes[first:]]),
        metrics=METRICS,
        **_ROWS,
        skeleton=skeleton(templates_dir, styles=(STYLE,), scripts=SCRIPTS, charts=True),
    )


def _share(shares: Sequence[float | None]) -> str:
    """Their sum in percent; empty where one is not known."""
    known = [share for share in shares if share is not None]
    return percent(sum(known)).removeprefix("+") if known and len(known) == len(shares) else ""


def _choices(facts: Facts) -> Mapping[str, Iterable[tuple[str, str]] | int]:
    """What cells can be filtered by: value and words of each."""
    models = dict.fromkeys(clip(delta.key.model, NAME_LIMIT) for delta in facts.report.deltas)
    targets = sorted({facts.short[delta.key.target] for delta in facts.report.deltas})
    return {
        "models": [(name or _EMPTY, name or _EMPTY) for name in models],
        "targets": [(name, name) for name in targets],
        "states": [(state, STATE_WORDS.get(state, state)) for state in STATES if facts.count(state)],
        "levels": _LEVELS,
        "cells": len(facts.report.deltas),
    }
