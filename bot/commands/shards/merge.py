"""`merge`: the snapshots of shards become the one of an unsharded run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.core.rules.merging import merge_snapshots
from bot.measurement.prepare import Show, load_snapshot
from bot.reporting.writing import write_snapshot


def merge(parts: Sequence[Path], out: Path, show: Show) -> None:
    """Join the snapshots of shards into the one of an unsharded run."""
    merged = merge_snapshots([(str(path), load_snapshot(path)) for path in parts])
    write_snapshot(out, merged)
    show.say(f"wrote {out}: {len(merged.cells)} cells")
