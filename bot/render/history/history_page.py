"""A history as a page."""
from __future__ import annotations
from collections.abc import Iterator
from pathlib import Path
from bot.core.history.history_values import History
def history_pieces(history: History, templates_dir: Path | None = None) -> Iterator[str]:
    yield "<p>todo"
