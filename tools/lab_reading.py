"""Read a `lab.json` as the value that it was written from, as far as its tables go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from bot.core.lab import Experiment, Lab
from bot.core.runs import Price, Run
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
    """Return what the file says."""
    plain = json.loads(path.read_bytes())
    rows: list[dict[str, Any]] = plain["cells"]
    variants = []
    for row_of_variant in plain["variants"]:
        cells_of_variant = (
            _cell(row) for row in rows if row["variant"] == row_of_variant["name"]
        )
        side = Snapshot(
            msgspec.convert(row_of_variant["compiler"], CompilerInfo),
            SourceInfo(),
            tuple(cells_of_variant),
        )
        names = ("name", "targets", "reason", "models", "layers")
        named = {name: row_of_variant[name] for name in names if name in row_of_variant}
        assume = (
            _assumption(row_of_variant["assume"])
            if "assume" in row_of_variant
            else None
        )
        variants.append(
            Variant(
                **named,
                flags=tuple(row_of_variant["flags"]),
                snapshot=side,
                assume=assume,
            )
        )
    columns = tuple(plain["columns"])
    experiment = Experiment(
        plain["experiment"], plain["question"], columns, (), run=plain["run"]
    )
    runs = {
        (row["variant"], CellKey(row["model"], row["target"])): _run(row)
        for row in rows
    }
    conditions = plain["machine"], tuple(plain["flags"]), tuple(plain["notes"])
    times = {
        (row["variant"], CellKey(row["model"], row["target"])): _times(row)
        for row in rows
        if _is_timed(row)
    }
    return Lab(experiment, Study(tuple(variants)), runs, *conditions, times)


def _assumption(plain: dict[str, int]) -> Assumption:
    return Assumption(
        smallest=plain["min"], largest=plain.get("max"), divisor=plain["divisor"]
    )


def _is_timed(row: dict[str, Any]) -> bool:
    return "phases" in row or "times_note" in row


def _times(row: dict[str, Any]) -> CompileTimes:
    phases, passes = (
        {timed["name"]: timed["wall_us"] for timed in row.get(key, ())}
        for key in ("phases", "passes")
    )
    return CompileTimes(phases, passes, row.get("times_note", ""))


def _cell(row: dict[str, Any]) -> Cell:
    values_seen: dict[str, list[int]] = row.get("seen", {})
    largest = {
        **row["metrics"],
        **{name: max(values) for name, values in values_seen.items()},
    }
    return Cell(
        row["model"],
        row["target"],
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
