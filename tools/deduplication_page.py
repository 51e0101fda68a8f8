"""Write the measured table of deduplication in docs/fold.md, from a snapshot.

`make dedup-table` makes it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from evidence_page import table, written
from places import ROOT

from bot.core.deduplication import EXECUTABLES, REGIONS, near_duplicates_of
from bot.core.delta import value_of
from bot.core.snapshot import Cell, Snapshot
from bot.core.snapshot_json import from_json
from bot.show.escape import md_code
from bot.show.filters import amount, plural
from bot.show.folded_shares import folded_words

PART = "deduplication"
PAGE = ROOT / "docs" / "fold.md"
HEADERS = (
    "model",
    "dispatch regions",
    "executables",
    "regions folded",
    "near-duplicates",
    "their code, at most",
)


def page_lines(snapshot: Snapshot) -> list[str]:
    """Return the compiler, the targets, and a row for each build."""
    targets = dict.fromkeys(cell.key.target for cell in snapshot.cells)
    names = ", ".join(md_code(target) for target in targets)
    builds = plural(len(snapshot.cells), "build")
    rows = [_row(cell) for cell in snapshot.cells]
    heading = f"IREE {snapshot.compiler.version}, {builds} on {names}:"
    return [heading, "", *table(HEADERS, rows)]


def _row(cell: Cell) -> list[str]:
    regions = value_of(cell, REGIONS)
    executables = value_of(cell, EXECUTABLES)
    near = near_duplicates_of(cell, varies=bool(cell.others))
    return [
        md_code(cell.key.model),
        amount(regions, "count"),
        amount(executables, "count"),
        folded_words(cell),
        amount(near.executables, "count"),
        amount(near.code_bytes),
    ]


def main(paths: Sequence[str]) -> None:
    """Write the part of the page again, of one snapshot."""
    (path,) = paths
    snapshot = from_json(Path(path).read_bytes(), path)
    page = PAGE.read_text(encoding="utf-8")
    text = written(page, PART, page_lines(snapshot), [PART])
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
