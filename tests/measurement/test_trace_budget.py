"""Tracing keeps to its budget, which counts work: the same comparison traces the same dispatches on any machine."""

from __future__ import annotations

import report_factory as make
from replacing import replace

from bot.core.explanation import DispatchDelta
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.work import compile_work, ladder_work, trace_work
from bot.study.laddering import BOTH_ORDERS, no_ladder, within_work
from bot.study.trace_budget import LITTLE_WORK, Moved, TraceBudget, work_for

KEY = CellKey("bert", "cuda")
ROWS = [make.dispatch(number, 1024 * (400 - number)) for number in range(200)]
MOVED: list[Moved] = [(KEY, DispatchDelta(row, row, "same-source", "codegen")) for row in ROWS]
FORMED: list[Moved] = [(KEY, DispatchDelta(None, row, "", "fusion")) for row in ROWS]
COMPILED = {"executables": 74, "dispatch_sites": 0, "executable_bytes": 0}
COMPILE_WORK = 4_000
WRITTEN_WORK = 2 * COMPILE_WORK // 4  # of both sides, the sources of all executables


def side(cpu_ms: int = 4_000, models: tuple[str, ...] = ("bert",)) -> Snapshot:
    def of(_key: CellKey, cell: Cell) -> Cell:
        metrics = {**cell.metrics, **COMPILED, "compile_cpu_ms": cpu_ms}
        return replace(cell, dispatches=tuple(ROWS), metrics=metrics)

    return make.snapshot("1", of, models, {"cuda": "cuda"})


def budget(work: int | None) -> TraceBudget:
    return TraceBudget({"base": side(), "head": side()}, ("base", "head"), {KEY: KEY}, work)


def cost(moved: list[Moved]) -> int:
    return sum(trace_work(row) for _, delta in moved for row in (delta.base, delta.head) if row)


def test_it_takes_what_it_may_and_no_more() -> None:
    limited = budget(900_000)
    chosen = limited.take(MOVED)
    assert cost(chosen) + WRITTEN_WORK <= 900_000 < cost(chosen) + WRITTEN_WORK + cost(MOVED[-1:])
    assert limited.take(MOVED) == [] and budget(900_000).take(MOVED) == chosen
    assert budget(None).take(MOVED) == MOVED and budget(1_000).take(MOVED) == []


def test_a_program_is_printed_once_for_all_its_dispatches_and_their_own_passes_cost_more() -> None:
    limited = budget(4_000)
    assert limited.take(FORMED) == FORMED, "half of a compile for each side's program"
    assert limited.take(FORMED, codes=True) == []
    assert budget(3_999).take(FORMED) == []


def test_the_largest_is_taken_first_where_that_explains_more() -> None:
    rows = [make.dispatch(number, size) for number, size in enumerate((2_048, 3_072, 1_024_000))]
    small, *_, large = moved = [(KEY, DispatchDelta(None, row, "", "codegen")) for row in rows]
    enough = trace_work(rows[2]) + COMPILE_WORK // 4
    assert budget(enough).take(moved) == [large], "with the small ones first it would not fit"
    assert budget(enough - 1_000).take(moved) == moved[:2]
    assert budget(enough + 1_000).take(moved) == [large, small]


def test_a_budget_grows_with_what_was_compiled_and_never_with_measured_time() -> None:
    models = tuple(f"m{number}" for number in range(40))
    fast, slow = side(1_000, models), side(3_000, models)
    assert work_for({"base": fast, "head": fast}) == work_for({"base": slow, "head": slow})
    assert work_for({"base": fast, "head": fast}) == 2 * len(models) * COMPILE_WORK // 4 > LITTLE_WORK
    assert work_for({"base": side()}) == LITTLE_WORK, "a small comparison is traced, too"
    failed = replace(side().cells[0], status="failed")
    assert compile_work(failed) == 0, "what made no artifact adds nothing"


def test_ladders_are_measured_largest_first_and_within_their_work() -> None:
    pairs = [(KEY, replace(delta, cause="strategy")) for _, delta in MOVED]
    sides = {"base": side(), "head": side()}
    assert within_work(sides, pairs, None) == pairs
    written = WRITTEN_WORK
    first = ladder_work(ROWS[0], ROWS[0], both_orders=True)
    assert within_work(sides, pairs, written + first - 1)[:1] != pairs[:1], "it does not fit"
    assert within_work(sides, pairs, written + first) == pairs[:1]
    assert within_work(sides, pairs, 0) == []
    one_order = ladder_work(ROWS[0], ROWS[0], both_orders=False)
    assert one_order < first < 2 * one_order
    many = within_work(sides, pairs, 2_000_000)
    assert many == pairs[: len(many)]
    assert BOTH_ORDERS < len(many) < len(pairs)


def test_a_ladder_needs_a_pair_whose_code_is_known() -> None:
    row = replace(ROWS[0], code="A" * 16)
    pair = DispatchDelta(row, replace(row, code="B" * 16), "same-source", "codegen")
    assert no_ladder(pair, ("base", "head")) == ""
    assert no_ladder(pair, ("head",)) == "the compiler of base is not here"
    assert no_ladder(replace(pair, head=None), ("base", "head")) == "one side alone has it"
    unknown = replace(pair, head=replace(row, code=None))
    assert no_ladder(unknown, ("base", "head")) == "the digest of its code is not known"
