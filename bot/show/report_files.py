"""Write the files of a report: snapshots, JSON, comment, summary and page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from bot.core.report import Report
from bot.core.report_json import report_lines
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import snapshot_lines
from bot.show.comment import render_comment, render_summary
from bot.show.page import html_pieces
from bot.system.files import write_atomically


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the contract's `snapshot.json`."""
    write_atomically(path, snapshot_lines(snapshot))


def _content(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(1 << 20), b"")


def write_report(
    report: Report,
    templates: Path | None,
    out: Path,
    whole: Mapping[str, Path] | None = None,
) -> list[Path]:
    """Write the six files of the contract.

    `whole`: name of a snapshot's file → the file that it was read from, to be copied.
    """
    writers: dict[str, Callable[[], bytes | Iterable[bytes]]] = {
        "base.json": lambda: snapshot_lines(report.base),
        "head.json": lambda: snapshot_lines(report.head),
        "report.json": lambda: report_lines(report),
        "comment.md": lambda: render_comment(report, templates).encode(),
        "summary.md": lambda: render_summary(report, templates).encode(),
        "report.html": lambda: (
            piece.encode() for piece in html_pieces(report, templates)
        ),
    }
    for name, path in (whole or {}).items():
        writers[name] = partial(_content, path)
    for name, write in writers.items():
        write_atomically(out / name, write())
    return [out / name for name in writers]
