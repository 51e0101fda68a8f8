"""The program that measures proofs: its sums over a small comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matched_cells import KEY, Row, made
from proof_shares import Compared, Shares, percent, shares_of
from replacing import replace
from strategies import plain_snapshot

from bot.config.configuration import load_config
from bot.core.ladder import CONFIGURATION, Climb, Ladder, Rung
from bot.core.proof import PROVED, KnobProof
from bot.core.report import Baseline, Report
from bot.core.snapshot import Snapshot
from bot.study.comparison import reported

COMPILER = "0" * 64
SIZES = {"p": (2193, 14419), "q": (1000, 1500)}
"""Dispatch → its code bytes on base and on head; only the first one has a ladder."""


def side(place: int, tile: int) -> Snapshot:
    letter = "bh"[place]
    rows = [
        Row(
            name,
            code=f"{letter}{name}",
            code_bytes=sizes[place],
            strategy=f"Expert | tile = [{tile}]",
        )
        for name, sizes in SIZES.items()
    ]
    cell = made(*rows, artifact=letter)
    snapshot = plain_snapshot(
        cells=(cell,), models={KEY.model: "m"}, targets={KEY.target: "llvm-cpu"}
    )
    return replace(snapshot, compiler=replace(snapshot.compiler, digest=COMPILER))


def compared() -> Report:
    base = side(0, 8)
    head = side(1, 16)
    rungs = [Rung(size) for size in (14419, 2228, 2228, 2228, 2193)]
    climb = Climb(rungs[0], rungs[1], rungs[2], rungs[3], rungs[4])
    (base_cell,), (head_cell,) = base.cells, head.cells
    base_row = base_cell.dispatches[0]
    head_row = head_cell.dispatches[0]
    knobs = KnobProof(
        PROVED,
        moved_bytes=12226,
        bytes_after=2228,
        restored_bytes=12191,
        knobs=("tile",),
    )
    ladder = Ladder(
        head_code=head_row.code or "",
        base_code=base_row.code or "",
        base_compiler=COMPILER,
        head=Rung(14419),
        base=Rung(2193),
        climb=climb,
        knobs=knobs,
    )
    head_cell = replace(head_cell, ladders={head_row.name: ladder})
    head = replace(head, cells=(head_cell,))
    return reported(load_config(None), base, head, Baseline("", ""))


def test_a_dispatch_without_a_ladder_counts_through_its_root_cause() -> None:
    (shares,) = shares_of(compared()).values()
    assert (shares.moved, shares.formed, shares.paired) == (12726, 0, 12726)
    assert (shares.own_ladder, shares.cause_ladder) == (12226, 12226 + 500)
    assert shares.by_status == {"proved": 12226, "not-tried": 500}
    assert shares.in_phases[CONFIGURATION] == shares.named[CONFIGURATION] == 12191


def test_a_share_of_nothing_is_not_a_number() -> None:
    assert percent(0, Shares().moved) == "n/a"
    assert percent(1, 3) == "33 %"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ("laddering tracing compiling_alone", "ladders"),
        ("tracing compiling_alone", "traces"),
        ("tracing program_experiments program_side", "programs"),
        ("run", ""),
    ],
)
def test_cpu_time_belongs_to_its_experiment(
    tmp_path: Path, files: str, kind: str
) -> None:
    (tmp_path / "cpu.json").write_text(json.dumps({files: 20}), encoding="utf-8")
    assert Compared("a → b", tmp_path).experiment_ms() == {kind: 20}
