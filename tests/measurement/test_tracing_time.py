"""Tracing keeps to its time, by what traces are expected to take: the same comparison traces the same dispatches."""

from __future__ import annotations

import report_factory as make
from replacing import replace

from bot.core.explanation import DispatchDelta
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.study.trace_budget import Moved, TraceBudget, expected_ms

KEY = CellKey("bert", "cuda")
ROWS = [make.dispatch(number, 1024 * (400 - number)) for number in range(200)]
MOVED: list[Moved] = [(KEY, DispatchDelta(row, row, "same-source", "codegen")) for row in ROWS]
FORMED: list[Moved] = [(KEY, DispatchDelta(None, row, "", "fusion")) for row in ROWS]
WRITTEN_MS = 2 * 4_000 // 4  # of both sides, the sources of all executables


def side() -> Snapshot:
    def of(_key: CellKey, cell: Cell) -> Cell:
        return replace(cell, dispatches=tuple(ROWS), metrics={**cell.metrics, "compile_cpu_ms": 4_000})

    return make.snapshot("1", of, ("bert",), {"cuda": "cuda"})


def budget(seconds: float | None) -> TraceBudget:
    return TraceBudget({"base": side(), "head": side()}, ("base", "head"), {KEY: KEY}, seconds)


def cost_ms(moved: list[Moved]) -> int:
    return sum(expected_ms(row) for _, delta in moved for row in (delta.base, delta.head) if row)


def test_it_takes_what_it_may_and_no_more() -> None:
    limited = budget(900)
    chosen = limited.take(MOVED)
    assert cost_ms(chosen) + WRITTEN_MS <= 900_000 < cost_ms(chosen) + WRITTEN_MS + cost_ms(MOVED[-1:])
    assert limited.take(MOVED) == [] and budget(900).take(MOVED) == chosen
    assert budget(None).take(MOVED) == MOVED and budget(1).take(MOVED) == []


def test_a_program_is_printed_once_for_all_its_dispatches_and_their_own_passes_cost_more() -> None:
    limited = budget(4)
    assert limited.take(FORMED) == FORMED, "two seconds for each side's program"
    assert limited.take(FORMED, codes=True) == []
    assert budget(3.9).take(FORMED) == []


def test_the_largest_is_taken_first_where_that_explains_more() -> None:
    rows = [make.dispatch(number, size) for number, size in enumerate((2_048, 3_072, 1_024_000))]
    small, *_, large = moved = [(KEY, DispatchDelta(None, row, "", "codegen")) for row in rows]
    enough = (expected_ms(rows[2]) + 4_000 // 4) / 1000
    assert budget(enough).take(moved) == [large], "with the small ones first it would not fit"
    assert budget(enough - 1).take(moved) == moved[:2]
    assert budget(enough + 1).take(moved) == [large, small]
