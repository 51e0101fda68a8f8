"""The job summary: what the comment says, with more room."""

from __future__ import annotations

from pathlib import Path

from bot.core.report import Report
from bot.render.environment import draw, load
from bot.render.facts import build_facts
from bot.render.selection import Limits
from bot.render.view import build_view

SUMMARY_LIMIT_BYTES = 1024 * 1024
"""What GitHub takes as the summary of one step, in UTF-8."""

_WIDTH = 165
_TIERS = (
    Limits(400, _WIDTH, 40, 20, 20, 50, 2_000, 4_000, 1_000, 400),
    Limits(100, _WIDTH, 20, 12, 20, 20, 500, 1_500, 300, 100),
    Limits(40, _WIDTH, 8, 8, 10, 8, 100, 300, 60, 20),
    Limits(6, _WIDTH, 1, 2, 3, 1, 4, 4, 3, 1),
)
_WHERE = "report.html and report.json"
TEMPLATE = "summary.md.j2"


def render_summary(report: Report, templates_dir: Path | None = None) -> str:
    """The Markdown of the summary, at most `SUMMARY_LIMIT_BYTES` in UTF-8.

    Args:
        templates_dir: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    facts, template = build_facts(report), load(TEMPLATE, templates_dir)
    for limits in _TIERS:
        text = draw(template, view=build_view(report, limits, facts), where=_WHERE)
        if len(text.encode()) <= SUMMARY_LIMIT_BYTES:
            return text
    if templates_dir is None:
        raise AssertionError("the smallest summary is too large")
    return render_summary(report, None)
