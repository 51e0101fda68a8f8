"""Stored baselines as a site: the newest against the one before, the history of all, and a page that leads there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.config.configuration import Config
from bot.core.report import Baseline, report_lines
from bot.core.snapshot import Snapshot
from bot.core.study import named_apart, of_commit
from bot.show.history import write_history
from bot.show.page import html_pieces
from bot.show.site_page import site_page
from bot.study.comparison import reported
from bot.study.history import explained_history
from bot.system.files import write_atomically

_SHOWN_DIGITS = 10
Side = tuple[str, Snapshot]
"""A commit, and its baseline."""


def write_site(sides: Sequence[Side], config: Config, out: Path) -> list[Path]:
    """`index.html`, `report.html` with `report.json`, and the files of the history.

    Args:
        sides: at least one, the oldest first.
    """
    (old, base), (_, head) = sides[-2:] if len(sides) > 1 else (sides[0], sides[0])
    report = reported(config, base, head, Baseline(f"baseline of {old[:_SHOWN_DIGITS]}", old))
    write_atomically(out / "report.html", (piece.encode() for piece in html_pieces(report, config.templates)))
    write_atomically(out / "report.json", report_lines(report))
    study = named_apart([of_commit(sha, side) for sha, side in sides])
    histories = write_history(explained_history(study, config), config.templates, out)
    files = [out / "report.html", out / "report.json", *histories]
    write_atomically(
        out / "index.html", site_page(report, [name for name, _ in sides], files, config.templates).encode()
    )
    return [out / "index.html", *files]
