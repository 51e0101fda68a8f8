"""Draw a report as the comment and as the job summary, within GitHub's limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bot.core.report import Report
from bot.errors import BotError, InputError, TemplateError
from bot.show.escape import clean, clip
from bot.show.facts import build_facts
from bot.show.renderers import draw, fitting_text, length, load, utf8_bytes
from bot.show.report import report_blocks, with_left_out
from bot.show.views import COMMENT, SUMMARY, View, as_asked

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in a comment.

They are counted here as UTF-16 units, which are never fewer than characters.
"""
SUMMARY_LIMIT_BYTES = 1024 * 1024
"""The limit of GitHub for the summary of one step, in UTF-8."""

_REPORT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_BROKE_CHARS = 1_000
_STATE_LINE = re.compile(r"<!-- code-size-bot-state:[A-Za-z0-9+/=:]+ -->")
_FILES = "report.html and report.json"
_WHERE = "the job summary, report.html and report.json"
Links = Sequence[tuple[str, str]]  # Label and URL


def render_comment(report: Report, templates_dir: Path | None = None) -> str:
    """Return the Markdown of the comment, at most `COMMENT_LIMIT` long.

    It begins with the marker, then the state line if there is one.

    `templates_dir`: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work, or does not begin with the marker.
    """
    head = _head(report.report_id, report.state_line)
    text = report_text(
        "comment.md.j2",
        report=report,
        view=COMMENT,
        limit=COMMENT_LIMIT,
        templates_dir=templates_dir,
        marker=head,
    )
    if not text.startswith(head):
        raise TemplateError(
            "the comment does not begin with its hidden marker",
            where=str(load("comment.md.j2", templates_dir).filename),
            hint="print {{ marker }} first, or the comment cannot be found again",
        )
    return text


def render_summary(report: Report, templates_dir: Path | None = None) -> str:
    """Return the job summary: the comment with more room, in UTF-8.

    Raises:
        TemplateError: as for the comment.
    """
    return report_text(
        "summary.md.j2",
        report=report,
        view=SUMMARY,
        limit=SUMMARY_LIMIT_BYTES,
        templates_dir=templates_dir,
        where=_FILES,
        size=utf8_bytes,
    )


def report_text(
    template: str,
    report: Report,
    view: View,
    limit: int,
    templates_dir: Path | None,
    where: str = _WHERE,
    size: Callable[[str], int] = length,
    **values: Any,
) -> str:
    """Return the text of the report, shortened until it fits.

    If no form fits with a user's template, the default template is used.
    """
    return fitting_text(
        template,
        report_blocks(build_facts(report), as_asked(view)),
        values=lambda blocks: {
            "answer": "report",
            "blocks": with_left_out(blocks, where),
            "page": report.page,
            **values,
        },
        limit=limit,
        size=size,
        templates_dir=templates_dir,
    )


def marker(report_id: str) -> str:
    """Return the hidden text by which the comment is found again.

    Raises:
        InputError: the id could break out of the HTML comment.
    """
    if not _REPORT_ID.fullmatch(report_id) or "--" in report_id:
        raise InputError(
            f"{report_id!r} is not a report id",
            where="report_id",
            hint="use letters, digits, dots and single dashes",
        )
    return f"<!-- code-size-bot:{report_id} -->"


def _head(report_id: str, state_line: str) -> Markup:
    """Return the hidden lines.

    A state line is left out unless it is one HTML comment without an end inside.
    """
    lines = [marker(report_id)]
    if _STATE_LINE.fullmatch(state_line):
        lines.append(state_line)
    # Both lines are matched against what may be in an HTML comment.
    return Markup("\n".join(lines))  # noqa: S704


def render_broken(
    report_id: str, error: BotError, links: Links, state_line: str = ""
) -> str:
    """Return the comment of an analysis that broke before there was a report.

    `error`: what broke; `links`: label and URL; only https is drawn as a link;
    `state_line`: the state in the comment before.
    """
    return broken_text(error, links, _head(report_id, state_line))


def broken_text(error: BotError, links: Links, marker: str = "") -> str:
    """Return the Markdown of an analysis that broke: the error and the links."""
    reason = clip(clean(error.line), _BROKE_CHARS) or "no reason is known"
    return draw(load("broken.md.j2", None), what=reason, links=links, marker=marker)
