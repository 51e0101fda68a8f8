"""`measure`: one side, or a shard of it, into one snapshot file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.config.configuration import load_config
from bot.core.sharding import Matrix, known_costs, matrix, merge_snapshots
from bot.errors import NoVerdict, OutputError
from bot.reporting.writing import write_snapshot
from bot.study.prepare import (
    Request,
    Show,
    load_snapshot,
    measured,
    planned,
    prepare,
    repository_at,
    require_writable,
    say_failed,
)
from bot.system.processes import Cancel


def measure(request: Request, show: Show, cancel: Cancel) -> None:
    """Measure one side, or a shard of it, into one snapshot file.

    Raises NoVerdict, when the snapshot is written, where none of its cells was measured; but not for a shard, as what
    the others hold decides.
    """
    config = load_config(request.config)
    require_writable(request.out.parent)
    if request.out.is_dir():
        raise OutputError("is a directory", where=str(request.out), hint="--out names the snapshot file")
    repository = repository_at(request.config, cancel)
    plan = prepare("head", request.specs["head"], request, config, repository, show, cancel)
    snapshots = measured([plan], {}, request, config, show, cancel)
    write_snapshot(request.out, snapshots["head"])
    show.say(f"wrote {request.out}")
    say_failed(snapshots["head"], show)
    cells = snapshots["head"].cells
    if request.shard[1] == 1 and not any(cell.measured for cell in cells):
        what = f"none of {len(cells)} cells was measured" if len(cells) != 1 else f"{cells[0].key} was not measured"
        failures = [cell.failure.first_line for cell in cells if cell.failure and cell.failure.first_line]
        hint = failures[0][:200] if failures else ""
        raise NoVerdict(f"nothing compiled: {what}", where=str(request.out), hint=hint)


# `plan`: the matrix of several runners.


def plan_shards(request: Request, shards: int, costs: Path | None, cancel: Cancel) -> Matrix:
    """The matrix of `shards` runners, dealt out by the costs of an earlier snapshot where there is one."""
    cells = planned(request, load_config(request.config), repository_at(request.config, cancel)).cells
    return matrix(cells, shards, known_costs(load_snapshot(costs).cells) if costs else None)


# `merge`: the snapshots of shards become the one of an unsharded run.


def merge(parts: Sequence[Path], out: Path, show: Show) -> None:
    """Join the snapshots of shards into the one of an unsharded run."""
    merged = merge_snapshots([(str(path), load_snapshot(path)) for path in parts])
    write_snapshot(out, merged)
    show.say(f"wrote {out}: {len(merged.cells)} cells")
