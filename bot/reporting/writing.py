"""A report as the six files of the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bot.core.codec.serial import lines, snapshot_to_plain
from bot.core.values.snapshot import Snapshot
from bot.core.values.whole_report import Report, report_to_plain
from bot.render.html.page import render_html
from bot.render.markdown.comment import render_comment
from bot.render.markdown.summary import render_summary
from bot.system.files import write_atomically


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the contract's `snapshot.json`."""
    write_atomically(path, lines(snapshot_to_plain(snapshot)))


def write_report(made: Report, templates: Path | None, out: Path) -> list[Path]:
    """The six files of the contract."""
    writers: dict[str, Callable[[], Iterable[str]]] = {
        "base.json": lambda: lines(snapshot_to_plain(made.base)),
        "head.json": lambda: lines(snapshot_to_plain(made.head)),
        "report.json": lambda: lines(report_to_plain(made)),
        "comment.md": lambda: [render_comment(made, templates)],
        "summary.md": lambda: [render_summary(made, templates)],
        "report.html": lambda: [render_html(made, templates)],
    }
    for name, write in writers.items():
        write_atomically(out / name, write())
    return [out / name for name in writers]
