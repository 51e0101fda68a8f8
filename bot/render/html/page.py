"""The page: everything there is to say, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bot.core.metrics import METRICS
from bot.core.values.whole_report import Report
from bot.render.html.cell_tables import model_tables
from bot.render.text.environment import drawn, load
from bot.render.text.selection import Limits
from bot.render.view.facts import build_facts
from bot.render.view.view import views

_LIMITS = Limits(2_000, 1_000_000, 200, 40, 40, 2_000, 1, 500, 200, 200, 0, 0, 0, 600, every=True)
TEMPLATE = "report.html.j2"


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
    view = views(facts)(_LIMITS)
    yield from drawn(template, view=view, models=model_tables(facts), metrics=METRICS)
