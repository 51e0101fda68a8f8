"""The job summary: what the comment says, with more room."""

from __future__ import annotations

from pathlib import Path

from bot.core.report import Report
from bot.render.text.fitting import Document, fitting
from bot.render.text.selection import Limits

SUMMARY_LIMIT_BYTES = 1024 * 1024
"""What GitHub takes as the summary of one step, in UTF-8."""

_WIDTH = 165
_TIERS = (
    Limits(400, _WIDTH, 40, 20, 20, 2_000, 4_000, 1_000, 400, 12, 80, 20, 60, 200),
    Limits(100, _WIDTH, 20, 12, 20, 500, 1_500, 300, 100, 12, 20, 10, 20, 60),
    Limits(40, _WIDTH, 8, 8, 10, 100, 300, 60, 20),
    Limits(6, _WIDTH, 1, 2, 3, 4, 4, 3, 1, 2),
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
    return fitting(
        report,
        Document(TEMPLATE, _TIERS, lambda text: len(text.encode()) <= SUMMARY_LIMIT_BYTES, _WHERE),
        templates_dir,
    )
