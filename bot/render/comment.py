"""The comment of a pull request: always within GitHub's limit, by leaving out, in steps, what is not urgent."""

from __future__ import annotations

import re
from pathlib import Path

from markupsafe import Markup

from bot.core.report import Report
from bot.errors import InputError, TemplateError
from bot.render.environment import draw, load
from bot.render.facts import build_facts
from bot.render.selection import Limits
from bot.render.view import build_view

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in a comment; counted here as UTF-16 units, never fewer than characters."""

_WIDTH = 128
_TIERS = (
    Limits(40, _WIDTH, 8, 6, 8, 12, 200, 450, 60, 40),
    Limits(40, _WIDTH, 8, 6, 8, 8, 100, 240, 40, 20),
    Limits(30, _WIDTH, 6, 6, 8, 5, 60, 120, 24, 8),
    Limits(20, _WIDTH, 4, 5, 8, 3, 30, 50, 12, 5),
    Limits(12, _WIDTH, 2, 4, 6, 2, 12, 12, 6, 2),
    Limits(6, _WIDTH, 1, 2, 3, 1, 4, 4, 3, 1),
)
_REPORT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_WHERE = "the job summary, report.html and report.json"
TEMPLATE = "comment.md.j2"


def marker(report_id: str) -> str:
    """The hidden text by which the comment is found again; raises InputError for an id that could break out of it."""
    if not _REPORT_ID.fullmatch(report_id) or "--" in report_id:
        raise InputError(
            f"{report_id!r} is no report id", where="report_id", mend="use letters, digits, dots and single dashes"
        )
    return f"<!-- code-size-bot:{report_id} -->"


def length(text: str) -> int:
    """Length of a text as GitHub's limit is taken here: UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def render_comment(report: Report, templates_dir: Path | None = None) -> str:
    """The Markdown of the comment, at most `COMMENT_LIMIT` long.

    Args:
        templates_dir: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work, or leaves out the marker.
    """
    facts, template, mark = build_facts(report), load(TEMPLATE, templates_dir), marker(report.report_id)
    size = 0
    for limits in _TIERS:
        text = draw(template, view=build_view(report, limits, facts), marker=Markup(mark), where=_WHERE)
        _require_marker(text, mark, str(template.filename))
        size = length(text)
        if size <= COMMENT_LIMIT:
            return text
    if templates_dir is None:
        raise AssertionError(f"the smallest comment has {size} characters")
    return render_comment(report, None)  # better than none: it fits, and the verdict is the same


def _require_marker(text: str, mark: str, where: str) -> None:
    if mark not in text:
        mend = "print {{ marker }} in it, or the comment cannot be found again"
        raise TemplateError("the comment lacks its hidden marker", where=where, mend=mend)
