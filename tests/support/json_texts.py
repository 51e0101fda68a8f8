"""The files of a run as texts, for the tests that compare or store them."""

from __future__ import annotations

from bot.core.report import Report
from bot.core.report_json import report_lines
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import snapshot_lines


def to_json(snapshot: Snapshot) -> str:
    """The text of `snapshot.json`."""
    return b"".join(snapshot_lines(snapshot)).decode()


def report_to_json(report: Report) -> str:
    """The text of `report.json`."""
    return b"".join(report_lines(report)).decode()
