"""Ladders in snapshots: read as they were written, refused where they cannot be, and shown for their own base alone."""

from __future__ import annotations

import json

import pytest
import report_factory as make
from replacing import replace

from bot.core.delta import diff
from bot.core.ladder import Climb, Ladder, Rung
from bot.core.snapshot import Cell, CellKey, Dispatch, Snapshot
from bot.core.snapshot_json import from_json, snapshot_lines
from bot.errors import InputError
from bot.explain.explanations import explanations

HEAD_CODE = "A" * 16
BASE_CODE = "B" * 16
NAME = "main_dispatch_0_matmul"
PARTS = {"source": 0, "configuration": 10, "mlir": 20, "back_end": 10}


def row(code_bytes: int, code: str) -> Dispatch:
    return Dispatch(
        "main_dispatch_0", NAME, code_bytes=code_bytes, code=code, strategy="S"
    )


def side(version: str, dispatch: Dispatch, ladders: dict[str, Ladder]) -> Snapshot:
    def of(_key: CellKey, cell: Cell) -> Cell:
        return replace(
            cell, dispatches=(dispatch,), ladders=ladders, artifact_digest=version * 64
        )

    return make.snapshot(version, of, ("bert",), {"cuda": "cuda"})


BASE = side("1", row(60, BASE_CODE), {})
LADDER = Ladder(
    head_code=HEAD_CODE,
    base_code=BASE_CODE,
    base_compiler=BASE.compiler.digest,
    head=Rung(100),
    base=Rung(60),
    climb=Climb(Rung(100), Rung(90), Rung(70)),
)


def head(ladder: Ladder = LADDER, name: str = NAME) -> Snapshot:
    return side("2", row(100, HEAD_CODE), {name: ladder})


def text_of(snapshot: Snapshot) -> bytes:
    return b"".join(snapshot_lines(snapshot))


def shown(base: Snapshot, ladder: Ladder) -> object:
    with_ladder = head(ladder)
    (explanation,) = explanations(base, with_ladder, diff(base, with_ladder)).values()
    (delta,) = explanation.dispatches
    return delta.attribution


def test_a_snapshot_with_ladders_is_read_as_it_was_written() -> None:
    assert from_json(text_of(head())) == head()
    assert b"ladders" not in text_of(BASE)


@pytest.mark.parametrize(
    ("ladder", "name", "message"),
    [
        (LADDER, "other", "has a ladder of 'other', which is no dispatch of it"),
        (replace(LADDER, head_code=BASE_CODE), NAME, "is of other code"),
        (replace(LADDER, head=Rung(101)), NAME, "ends at 101 B, not at its code_bytes"),
    ],
)
def test_an_impossible_ladder_is_refused(
    ladder: Ladder, name: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        from_json(text_of(head(ladder, name)))


@pytest.mark.parametrize(
    "rung",
    [{}, {"code_bytes": 5, "why": "both"}, {"code_bytes": -1}, {"why": "x" * 2_001}],
)
def test_an_impossible_rung_is_refused(rung: dict[str, object]) -> None:
    written = json.loads(text_of(head()))
    written["cells"][0]["ladders"][NAME]["climb"]["source"] = rung
    with pytest.raises(InputError):
        from_json(json.dumps(written))


def test_a_ladder_is_shown_for_its_own_base_alone() -> None:
    assert shown(BASE, LADDER) == PARTS
    other_code = side("1", row(60, "C" * 16), {})
    assert shown(other_code, LADDER) is None
    other_compiler = replace(BASE, compiler=replace(BASE.compiler, digest="f" * 64))
    assert shown(other_compiler, LADDER) is None
    assert shown(BASE, replace(LADDER, base=Rung(61))) is None
