"""What `make bench` measures `report` on is what it says: dispatches that all differ, cells that all changed."""

from __future__ import annotations

from pathlib import Path

import report_bench
import report_factory

from bot.core.codec.snapshot_json import from_lines
from bot.core.rules.delta import diff


def test_every_cell_has_its_own_dispatches_and_a_story_on_both_sides(tmp_path: Path) -> None:
    paths = report_bench.write(report_factory.usual().head, tmp_path, 40)
    base, head = (from_lines(path.open("rb"), path.name) for path in paths)
    assert len(base.cells) == len(head.cells) == 40
    codes = [row.code for side in (base, head) for cell in side.cells for row in cell.dispatches]
    assert codes and len(set(codes)) == len(codes)
    planned = {cell.key for cell in base.cells}
    assert {delta.state for delta in diff(base, head) if delta.key in planned} == {"changed"}


def test_both_costs_are_of_a_process_of_its_own() -> None:
    report, json = report_bench.costs(report_factory.usual().head, 20)
    assert report.cpu_seconds > 0 and json.cpu_seconds > 0
    assert report.peak_mib > json.peak_mib > 1, "report imports more than json"
