"""Tracing keeps to its time on any machine: what traces took replaces what was expected of them."""

from __future__ import annotations

import pytest
import report_factory as make
from replacing import replace

from bot.core.explanation import DispatchDelta
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.study.tracing import Budget, Moved, expected_ms

KEY = CellKey("bert", "cuda")
ROWS = [make.dispatch(number, 1024 * (400 - number)) for number in range(200)]
MOVED: list[Moved] = [(KEY, DispatchDelta(row, row, "same-source", "codegen")) for row in ROWS]
SECONDS = 900.0


def side() -> Snapshot:
    def of(_key: CellKey, cell: Cell) -> Cell:
        return replace(cell, dispatches=tuple(ROWS), metrics={**cell.metrics, "compile_cpu_ms": 4_000})

    return make.snapshot("1", of, ("bert",), {"cuda": "cuda"})


@pytest.mark.parametrize("slowness", [0.5, 1, 2, 4])
def test_it_takes_what_it_may_and_no_more(slowness: float) -> None:
    budget, rest, spent_ms = Budget({"base": side(), "head": side()}, ("base", "head"), SECONDS), MOVED, 0
    while now := budget.take(rest):
        for key, delta in now:
            cost_ms = round(slowness * sum(expected_ms(row) for row in (delta.base, delta.head) if row))
            budget.settle(key, delta, cost_ms)
            spent_ms += cost_ms
        rest = [one for one in rest if one not in now]
    assert rest, "all of them would take longer"
    last_ms = slowness * 2 * expected_ms(ROWS[-1])
    assert SECONDS * 1000 - 2 * last_ms < spent_ms + 2_000 <= SECONDS * 1000 + 2_000
