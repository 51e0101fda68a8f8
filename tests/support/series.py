"""Series of snapshots of one suite in which chosen figures move, as files and as stored baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from replacing import replace
from report_factory import failed, snapshot, with_metrics

from bot.core.snapshot import Cell, CellKey, CompileOutcome, Snapshot
from bot.core.snapshot_json import snapshot_lines

MODELS = ("bert_l4_f32_s128", "mobilenet_v1_f32_224")
TARGETS = {"llvm-cpu-x86_64": "llvm-cpu", "vmvx": "vmvx"}
KEY = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")
CELL = ("--model", KEY.model, "--target", KEY.target)
_LEAST_WITH_CODE = 20_000
Value = int | None | tuple[int, ...]
"""Of the cell: a figure, None where it does not compile, several where the compiler does not repeat itself."""


def figures(metric: str, value: int) -> dict[str, int]:
    """The metric, and for the size of an artifact the parts that sum to it."""
    if metric != "artifact_bytes":
        return {metric: value}
    return {
        metric: value,
        "executable_bytes": value,
        "vm_bytes": 0,
        "rodata_bytes": 0,
        "unattributed_bytes": 0,
    }


def side(version: str, value: Value, metric: str = "artifact_bytes") -> Snapshot:
    """A snapshot in which the figure of KEY is this one, and all others are always the same."""

    def edit(key: CellKey, cell: Cell) -> Cell:
        if key != KEY:
            return cell
        if value is None:
            return failed(cell, f"error: {version} refuses it")
        first, *later_values = value if isinstance(value, tuple) else (value,)
        changed = with_metrics(cell, **figures(metric, first))
        outcomes = (
            CompileOutcome(
                "ok",
                with_metrics(cell, **figures(metric, later)).metrics,
                f"{later:064x}",
            )
            for later in later_values
        )
        # no room for the code of a dispatch
        is_small = metric == "artifact_bytes" and first < _LEAST_WITH_CODE
        return replace(
            changed,
            others=tuple(outcomes),
            dispatches=() if is_small else changed.dispatches,
        )

    return snapshot(version, edit, MODELS, TARGETS)


def write(path: Path, written_snapshot: Snapshot) -> Path:
    """One `snapshot.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(snapshot_lines(written_snapshot)))
    return path


def write_series(
    folder: Path, values: Mapping[str, Value], metric: str = "artifact_bytes"
) -> Sequence[Path]:
    """`VERSION.json` for each version."""
    return [
        write(folder / f"{version}.json", side(version, value, metric))
        for version, value in values.items()
    ]
