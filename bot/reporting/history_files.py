"""A history as its three files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bot.core.codec.history_json import history_lines
from bot.core.history.history_values import History
from bot.render.history.history_markdown import render_history
from bot.render.history.history_page import history_pieces
from bot.system.files import write_atomically


def write_history(history: History, templates: Path | None, out: Path) -> list[Path]:
    """`history.json`, `history.md` and `history.html`."""
    writers: dict[str, Callable[[], bytes | Iterable[bytes]]] = {
        "history.json": lambda: history_lines(history),
        "history.md": lambda: render_history(history, templates).encode(),
        "history.html": lambda: (piece.encode() for piece in history_pieces(history, templates)),
    }
    for name, write in writers.items():
        write_atomically(out / name, write())
    return [out / name for name in writers]
