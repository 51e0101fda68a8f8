"""A page as one text, and without what all pages carry: goldens and words are of what it says."""

from __future__ import annotations

import re
from pathlib import Path

from bot.core.report import Report
from bot.show.page import html_pieces

_CARRIED = re.compile(r"<(style|script|nav)\b.*?</\1>\n?", re.DOTALL)


def content(html: str) -> str:
    """The body without scripts and the list of its sections."""
    return _CARRIED.sub("", html.partition("<body>")[2].partition("</body>")[0])


def render_html(report: Report, templates_dir: Path | None = None) -> str:
    """The page of a report."""
    return "".join(html_pieces(report, templates_dir))
