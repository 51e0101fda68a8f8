"""The comment of a pull request: always within GitHub's limit, by leaving out, in steps, what is not urgent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from markupsafe import Markup

from bot.core.report import Report
from bot.errors import BotError, InputError, NotConfigured, TemplateError
from bot.render.text.environment import draw, load
from bot.render.text.escape import clean, clip
from bot.render.text.fitting import Document, fitting, length
from bot.render.text.selection import Limits

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in a comment; counted here as UTF-16 units, never fewer than characters."""

_WIDTH = 128
TIERS = (
    Limits(40, _WIDTH, 8, 6, 6, 200, 450, 60, 40, 4, 12, 8, 24, 24),
    Limits(40, _WIDTH, 8, 6, 6, 200, 450, 60, 40, 4, 4, 5, 12, 8),
    Limits(40, _WIDTH, 8, 6, 6, 100, 240, 40, 20, 4, 4, 4, 8, 6),
    Limits(30, _WIDTH, 6, 6, 6, 60, 120, 24, 8, 4, 2, 3),
    Limits(20, _WIDTH, 4, 5, 6, 30, 50, 12, 5, 4),
    Limits(12, _WIDTH, 2, 4, 6, 12, 12, 6, 2, 4),
    Limits(6, _WIDTH, 1, 2, 3, 4, 4, 3, 1, 2),
)
WIDE_TIERS = tuple(replace(tier, grid_models=min(tier.grid_models, 20), alarms=3, details=False) for tier in TIERS)
"""Where nearly everything changed: what all of it has in common stays on one screen; each cell is on the page."""
_MANY_CELLS = 40
_REPORT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
WHERE = "the job summary, report.html and report.json"
TEMPLATE = "comment.md.j2"
PIN_TEMPLATE = "pin.md.j2"
BROKEN_TEMPLATE = "broken.md.j2"
STARTER_TEMPLATE = "starter.md.j2"
_BROKE_CHARS = 1_000
_FOUND_LINES, _FOUND_CHARS = 24, 200
_STATE_LINE = re.compile(r"<!-- code-size-bot-state:[A-Za-z0-9+/=:]+ -->")
Links = Sequence[tuple[str, str]]
"""Label and URL."""


def marker(report_id: str) -> str:
    """The hidden text by which the comment is found again; raises InputError for an id that could break out of it."""
    if not _REPORT_ID.fullmatch(report_id) or "--" in report_id:
        raise InputError(
            f"{report_id!r} is no report id", where="report_id", hint="use letters, digits, dots and single dashes"
        )
    return f"<!-- code-size-bot:{report_id} -->"


def render_comment(report: Report, templates_dir: Path | None = None) -> str:
    """The Markdown of the comment, at most `COMMENT_LIMIT` long; first the marker, then the state line if there is one.

    Args:
        templates_dir: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work, or does not begin with the marker.
    """
    head = _head(report.report_id, report.state_line)
    values, check = {"marker": head, "links": report.links}, partial(_require_head, head)
    tiers = WIDE_TIERS if is_wide(report) else TIERS
    comment = Document(TEMPLATE, tiers, lambda text: length(text) <= COMMENT_LIMIT, WHERE, values, check)
    return fitting(report, comment, templates_dir)


def render_pin(report: Report, templates_dir: Path | None = None) -> str:
    """The short form of a comment about two releases, to be posted by a person: without marker and folds.

    Raises:
        TemplateError: a template does not work.
    """
    short = Document(PIN_TEMPLATE, TIERS, lambda text: length(text) <= COMMENT_LIMIT, WHERE)
    return fitting(report, short, templates_dir)


def is_wide(report: Report) -> bool:
    """True where more than half of many cells changed, as when a compiler moves to a new LLVM."""
    compared = [delta.state for delta in report.deltas if delta.state in ("same", "changed")]
    return len(compared) >= _MANY_CELLS and 2 * compared.count("changed") > len(compared)


def render_broken(report_id: str, error: BotError, links: Links, state_line: str = "") -> str:
    """The comment of an analysis that broke before there was a report.

    Args:
        error: what broke; of a missing configuration the starter is drawn.
        links: label and URL; only https is drawn as a link.
        state_line: what the comment remembers, from the comment before.
    """
    return draw_broken(error, links, _head(report_id, state_line))


def draw_broken(error: BotError, links: Links, marker: str = "") -> str:
    """The words of an analysis that broke, for the comment and the check run."""
    if isinstance(error, NotConfigured):
        found = [clip(clean(line), _FOUND_CHARS) for line in error.found[:_FOUND_LINES]]
        values = {"file": clip(clean(error.file), _FOUND_CHARS), "starter": error.starter, "found": found}
        return draw(load(STARTER_TEMPLATE, None), **values, links=links, marker=marker)
    told = clip(clean(error.line), _BROKE_CHARS) or "no reason is known"
    return draw(load(BROKEN_TEMPLATE, None), what=told, links=links, marker=marker)


def _head(report_id: str, state_line: str) -> Markup:
    """The hidden lines; a state line is one HTML comment without an end inside, or it is left out."""
    lines = [marker(report_id), *([state_line] if _STATE_LINE.fullmatch(state_line) else [])]
    return Markup("\n".join(lines))  # noqa: S704 - both are matched against what may stand in an HTML comment


def _require_head(head: str, text: str, where: str) -> None:
    if not text.startswith(head):
        hint = "print {{ marker }} first, or the comment cannot be found again"
        raise TemplateError("the comment does not begin with its hidden marker", where=where, hint=hint)
