"""A report as the six files of the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bot.core.report import Report, report_lines
from bot.core.snapshot import Snapshot, lines, rows_of
from bot.show.comment import render_comment, render_summary
from bot.show.page import html_pieces
from bot.system.files import write_atomically


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the contract's `snapshot.json`."""
    write_atomically(path, lines(rows_of(snapshot)))


def write_report(report: Report, templates: Path | None, out: Path) -> list[Path]:
    """The six files of the contract."""
    writers: dict[str, Callable[[], bytes | Iterable[bytes]]] = {
        "base.json": lambda: lines(rows_of(report.base)),
        "head.json": lambda: lines(rows_of(report.head)),
        "report.json": lambda: report_lines(report),
        "comment.md": lambda: render_comment(report, templates).encode(),
        "summary.md": lambda: render_summary(report, templates).encode(),
        "report.html": lambda: (piece.encode() for piece in html_pieces(report, templates)),
    }
    for name, write in writers.items():
        write_atomically(out / name, write())
    return [out / name for name in writers]
