"""Everyday pull requests as two measured sides each, recorded from real compiles by `tools/everyday_cases.py`.

A recorded side is the text of its snapshot under xz. A line that is also one of
COMMON's stands there as `@` and its number: most cells of an everyday pull request are
those of its base, and so of the other cases.
"""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from places import FIXTURES
from replacing import replace

from bot.config.configuration import load_config
from bot.core.planned import SIDES
from bot.core.report import Baseline, Report
from bot.core.snapshot import CellKey, Snapshot
from bot.core.snapshot_json import from_json
from bot.study.comparison import reported

HERE = FIXTURES / "everyday"
COMMON = HERE / "nothing_changed" / "base.json.xz"
CASES = (
    "nothing_changed",
    "one_flag",
    "model_edit",
    "newly_broken",
    "improvement",
    "everything_broke",
    "patch_release",
    "two_releases",
)


@lru_cache
def sides(case: str) -> tuple[Snapshot, Snapshot]:
    """Base and head of a case."""
    base, head = (_load(HERE / case / f"{side}.json.xz") for side in SIDES)
    return base, head


@lru_cache
def measured() -> Snapshot:
    """The quick suite as 3.13.0 gave it, without the cells that gave nothing: all that real cells have."""
    side, _ = sides("nothing_changed")
    return replace(side, cells=tuple(cell for cell in side.cells if cell.measured))


@lru_cache
def report(case: str) -> Report:
    """The report of a case, as `report` makes it with the packaged default configuration."""
    base, head = sides(case)
    return reported(
        load_config(models=False),
        base,
        head,
        Baseline("snapshot base.json", base.source.sha),
    )


def _load(path: Path) -> Snapshot:
    text = lzma.decompress(path.read_bytes()).splitlines(keepends=True)
    return from_json(
        b"".join(
            common_lines()[int(line[1:])] if line.startswith(b"@") else line
            for line in text
        ),
        path.name,
    )


@lru_cache
def common_lines() -> Sequence[bytes]:
    """The lines that other sides point to."""
    return lzma.decompress(COMMON.read_bytes()).splitlines(keepends=True)


def _repeated(snapshot: Snapshot, keys: dict[CellKey, list[CellKey]]) -> Snapshot:
    cells = [
        replace(cell, model=key.model, target=key.target)
        for cell in snapshot.cells
        for key in keys.get(cell.key, ())
    ]
    cells.sort(key=lambda cell: cell.key)
    models = {key.model: "0" * 64 for copies in keys.values() for key in copies}
    return replace(snapshot, cells=tuple(cells), models=models)


@lru_cache
def repeated_report(cells: int) -> Report:
    """The comparison of two releases, repeated under other names of models until it has so many cells.

    Without traces: a run has time for those of a few cells, not of all of its copies.
    """
    pair = sides("two_releases")
    base, head = (
        replace(side, cells=tuple(replace(cell, traces={}) for cell in side.cells))
        for side in pair
    )
    keys_of_both = sorted(
        {
            cell.key
            for side in (base, head)
            for cell in side.cells
            if cell.status != "unsupported"
        }
    )
    keys: dict[CellKey, list[CellKey]] = {}
    for number in range(cells):
        key = keys_of_both[number % len(keys_of_both)]
        keys.setdefault(key, []).append(
            replace(key, model=f"{key.model}_{number // len(keys_of_both)}")
        )
    base_side, head_side = (_repeated(side, keys) for side in (base, head))
    return reported(
        load_config(models=False), base_side, head_side, Baseline("snapshot base.json")
    )
