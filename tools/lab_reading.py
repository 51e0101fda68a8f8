"""A `lab.json` as the value that it was written of, as far as its tables go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from bot.core.fold import Price, Run
from bot.core.lab import Experiment, Lab
from bot.core.snapshot import (
    Cell,
    CellKey,
    CompileOutcome,
    CompilerInfo,
    Failure,
    Snapshot,
    SourceInfo,
)
from bot.core.study import Assumption, Study, Variant
from bot.core.times import CompileTimes

_RUN = ("equal", "equal_note", "price_note")


def read_lab(path: Path) -> Lab:
    """What the file says."""
    plain = json.loads(path.read_bytes())
    rows: list[dict[str, Any]] = plain["cells"]
    variants = []
    for one in plain["variants"]:
        own = (_cell(row) for row in rows if row["variant"] == one["name"])
        side = Snapshot(
            msgspec.convert(one["compiler"], CompilerInfo), SourceInfo(), tuple(own)
        )
        names = ("name", "targets", "reason", "models", "layers")
        named = {name: one[name] for name in names if name in one}
        assume = _assumption(one["assume"]) if "assume" in one else None
        variants.append(
            Variant(**named, flags=tuple(one["flags"]), snapshot=side, assume=assume)
        )
    columns = tuple(plain["columns"])
    asked = Experiment(
        plain["experiment"], plain["question"], columns, (), run=plain["run"]
    )
    runs = {
        (row["variant"], CellKey(row["model"], row["target"])): _run(row)
        for row in rows
    }
    rest = plain["machine"], tuple(plain["flags"]), tuple(plain["notes"])
    times = {
        (row["variant"], CellKey(row["model"], row["target"])): _times(row)
        for row in rows
        if _is_timed(row)
    }
    return Lab(asked, Study(tuple(variants)), runs, *rest, times)


def _assumption(plain: dict[str, int]) -> Assumption:
    return Assumption(
        smallest=plain["min"], largest=plain.get("max"), divisor=plain["divisor"]
    )


def _is_timed(row: dict[str, Any]) -> bool:
    return "phases" in row or "times_note" in row


def _times(row: dict[str, Any]) -> CompileTimes:
    phases, passes = (
        {one["name"]: one["wall_us"] for one in row.get(key, ())}
        for key in ("phases", "passes")
    )
    return CompileTimes(phases, passes, row.get("times_note", ""))


def _cell(row: dict[str, Any]) -> Cell:
    seen: dict[str, list[int]] = row.get("seen", {})
    largest = {**row["metrics"], **{name: max(values) for name, values in seen.items()}}
    return Cell(
        CellKey(row["model"], row["target"]),
        row["status"],
        row["metrics"],
        failure=Failure("", row["failure"]) if "failure" in row else None,
        command=row.get("command", ""),
        artifact_digest=row.get("artifact_digest"),
        others=(
            (CompileOutcome(row["status"], largest, "the largest"),)
            if row.get("varies")
            else ()
        ),
    )


def _run(row: dict[str, Any]) -> Run:
    return Run(
        **{name: row[name] for name in _RUN if name in row},
        price=msgspec.convert(row.get("price"), Price | None),
    )
