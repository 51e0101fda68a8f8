"""A history as Markdown: the whole of `history.md`."""

from __future__ import annotations

from pathlib import Path

from bot.core.history.history_values import History
from bot.render.history.history_view import HistoryRoom, history_view
from bot.render.text.fitting import first_fitting, within_bytes

HISTORY_LIMIT_BYTES = 512 * 1024
"""Half of what GitHub takes as the summary of one step, in UTF-8."""
TEMPLATE = "history.md.j2"
_TIERS = (HistoryRoom(12, 400, 40, 100, 3), HistoryRoom(8, 120, 20, 40, 2), HistoryRoom(6, 20, 10, 10, 1))


def render_history(history: History, templates_dir: Path | None = None) -> str:
    """The Markdown, at most `HISTORY_LIMIT_BYTES` in UTF-8; raises TemplateError where a template does not work.

    Args:
        templates_dir: the user's templates, searched before the default ones.
    """
    fits = within_bytes(HISTORY_LIMIT_BYTES)
    return first_fitting(TEMPLATE, _TIERS, lambda room: {"view": history_view(history, room)}, fits, templates_dir)
