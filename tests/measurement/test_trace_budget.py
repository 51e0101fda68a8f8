"""Tracing keeps to its budget, which counts work: the same comparison traces the same dispatches on any machine."""

from __future__ import annotations

import report_factory as make
from replacing import replace

from bot.core.delta import diff
from bot.core.explanation import DispatchDelta, Explanation
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.work import compile_work, ladder_work, trace_work
from bot.explain.root_causes import root_causes
from bot.study.changed_dispatches import Moved
from bot.study.ladder_choice import (
    BOTH_ORDERS,
    LadderCosts,
    Wanted,
    no_ladder,
    within_work,
    worth_laddering,
)
from bot.study.trace_budget import (
    COMPILES_PER_EXPERIMENT,
    LITTLE_WORK,
    TraceBudget,
    programs_within,
    work_for,
)

BACKEND = "cuda"
KEY = CellKey("bert", "cuda")
COSTS = LadderCosts({"cuda": BACKEND})
ROWS = [make.dispatch(number, 1024 * (400 - number)) for number in range(200)]
MOVED: list[Moved] = [
    (KEY, DispatchDelta(row, row, "same-source", "codegen")) for row in ROWS
]
FORMED: list[Moved] = [(KEY, DispatchDelta(None, row, "", "fusion")) for row in ROWS]
COMPILED = {"executables": 74, "dispatch_sites": 0, "executable_bytes": 0}
COMPILE_WORK = 4_000


def side(cpu_ms: int = 4_000, models: tuple[str, ...] = ("bert",)) -> Snapshot:
    def of(_key: CellKey, cell: Cell) -> Cell:
        metrics = {**cell.metrics, **COMPILED, "compile_cpu_ms": cpu_ms}
        return replace(cell, dispatches=tuple(ROWS), metrics=metrics)

    return make.snapshot("1", of, models, {"cuda": "cuda"})


def budget(work: int | None) -> TraceBudget:
    return TraceBudget(
        {"base": side(), "head": side()}, ("base", "head"), {KEY: KEY}, work
    )


def cost(moved: list[Moved]) -> int:
    return sum(
        trace_work(row) for _, delta in moved for row in (delta.base, delta.head) if row
    )


def test_it_takes_what_it_may_and_no_more() -> None:
    limited = budget(900_000)
    chosen = limited.take(MOVED)
    assert cost(chosen) <= 900_000 < cost(chosen) + cost(MOVED[-1:])
    assert limited.take(MOVED) == [] and budget(900_000).take(MOVED) == chosen
    assert budget(None).take(MOVED) == MOVED and budget(1_000).take(MOVED) == []


def test_a_program_is_printed_once_for_all_its_dispatches_and_their_own_passes_cost_more() -> (
    None
):
    limited = budget(4_000)
    assert limited.take(FORMED) == FORMED, "half of a compile for each side's program"
    assert limited.take(FORMED, codes=True) == []
    assert budget(3_999).take(FORMED) == []


def test_the_largest_is_taken_first_where_that_explains_more() -> None:
    rows = [
        make.dispatch(number, size)
        for number, size in enumerate((2_048, 3_072, 1_024_000))
    ]
    small, *_, large = moved = [
        (KEY, DispatchDelta(None, row, "", "codegen")) for row in rows
    ]
    enough = trace_work(rows[2])
    assert budget(enough).take(moved) == [large], (
        "with the small ones first it would not fit"
    )
    assert budget(enough - 1_000).take(moved) == moved[:2]
    assert budget(enough + 1_000).take(moved) == [large, small]


def test_a_budget_grows_with_what_was_compiled_and_never_with_measured_time() -> None:
    models = tuple(f"m{number}" for number in range(40))
    fast = side(1_000, models)
    slow = side(3_000, models)
    assert work_for({"base": fast, "head": fast}) == work_for(
        {"base": slow, "head": slow}
    )
    assert (
        work_for({"base": fast, "head": fast})
        == 2 * len(models) * COMPILE_WORK // 4
        > LITTLE_WORK
    )
    assert work_for({"base": side()}) == LITTLE_WORK, (
        "a small comparison is traced, too"
    )
    failed = replace(side().cells[0], status="failed")
    assert compile_work(failed) == 0, "what made no artifact adds nothing"


def test_ladders_are_measured_largest_first_and_the_other_order_with_what_is_left() -> (
    None
):
    def ladders(work: int | None) -> list[Wanted]:
        return within_work(MOVED, COSTS, work)

    everything = ladders(None)
    assert [
        (wanted_ladder.key, wanted_ladder.delta) for wanted_ladder in everything
    ] == MOVED
    assert [wanted_ladder.both_orders for wanted_ladder in everything[:11]] == [
        *[True] * BOTH_ORDERS,
        False,
    ]
    first, last = (
        ladder_work(row, row, BACKEND, both_orders=False) for row in (ROWS[0], ROWS[-1])
    )
    assert ladders(last - 1) == []
    assert [ladder.delta for ladder in ladders(last)] == [MOVED[-1][1]]
    assert ladders(first)[0] == Wanted(*MOVED[0], both_orders=False, with_proof=False)
    many = ladders(1_000_000)
    assert [
        (wanted_ladder.key, wanted_ladder.delta) for wanted_ladder in many[:15]
    ] == MOVED[:15]
    assert many == ladders(1_000_000)


def test_an_example_of_each_root_cause_comes_first() -> None:
    small, large = (replace(row, code="A" * 16) for row in (ROWS[-1], ROWS[0]))
    deltas = [
        DispatchDelta(
            replace(row, code="B" * 16, code_bytes=(row.code_bytes or 0) + added_bytes),
            row,
            "same-source",
            "codegen",
        )
        for row, added_bytes in ((large, 16), (small, 8))
    ]
    explanations = {KEY: Explanation("codegen", "code", "", dispatches=tuple(deltas))}
    assert [delta for _, delta in worth_laddering(explanations, COSTS)] == deltas
    (root,) = root_causes(
        diff(side(), side()),
        {KEY: Explanation("codegen", "", "", dispatches=(deltas[1],))},
    )
    assert worth_laddering(explanations, COSTS, [root])[0] == (KEY, deltas[1])
    (other_root,) = root_causes(
        diff(side(), side()),
        {KEY: Explanation("codegen", "", "", dispatches=(deltas[0],))},
    )
    two_roots = [root, replace(other_root, cells=())]
    assert worth_laddering(explanations, COSTS, two_roots)[0] == (KEY, deltas[0])
    assert worth_laddering(explanations, COSTS, two_roots, failing=[KEY])[0] == (
        KEY,
        deltas[1],
    ), "what fails comes first"


def test_a_proof_costs_a_compile_for_each_value_and_is_left_out_where_it_does_not_fit() -> (
    None
):
    base, head = (
        replace(ROWS[0], strategy=f"Tiling | tile = [{tile}], vector = [{tile}]")
        for tile in (4, 8)
    )
    delta = DispatchDelta(base, head, "same-source", "strategy")
    work_without_proof = ladder_work(base, head, BACKEND, both_orders=False)
    proof = ladder_work(base, head, BACKEND, both_orders=False) * 4 // 10
    for work, has_proof in (
        (work_without_proof + proof - 1, False),
        (work_without_proof + proof, True),
    ):
        (wanted_ladder,) = within_work([(KEY, delta)], COSTS, work)
        assert wanted_ladder.with_proof is has_proof
    (same,) = within_work([(KEY, replace(delta, base=head))], COSTS, None)
    assert not same.with_proof


def test_a_ladder_needs_a_pair_whose_code_is_known() -> None:
    row = replace(ROWS[0], code="A" * 16)
    pair = DispatchDelta(row, replace(row, code="B" * 16), "same-source", "codegen")
    assert no_ladder(pair, ("base", "head")) == ""
    assert no_ladder(pair, ("head",)) == "the compiler of base is not here"
    assert (
        no_ladder(replace(pair, head=None), ("base", "head")) == "one side alone has it"
    )
    unknown = replace(pair, head=replace(row, code=None))
    assert no_ladder(unknown, ("base", "head")) == "the digest of its code is not known"


def test_each_program_that_differs_is_an_experiment_of_its_own() -> None:
    """Targets whose programs are the same share one experiment."""
    targets = {"cuda": "cuda", "vmvx": "vmvx"}
    sides = {
        label: make.snapshot(version, models=("bert",), targets=targets)
        for label, version in (("base", "3.12.0"), ("head", "3.13.0"))
    }
    cuda, vmvx = CellKey("bert", "cuda"), CellKey("bert", "vmvx")
    small, large = ROWS[-1], ROWS[0]
    moved = [
        (cuda, DispatchDelta(None, small, "", "fusion")),
        (vmvx, DispatchDelta(None, large, "", "fusion")),
    ]
    cells = [cell for side in sides.values() for cell in side.cells]
    one_experiment = COMPILES_PER_EXPERIMENT * min(map(compile_work, cells))

    def allowed(same: dict[CellKey, CellKey], work: int | None) -> set[CellKey]:
        return programs_within(sides, moved, same, work)

    apart = {cuda: cuda, vmvx: vmvx}
    assert allowed(apart, None) == allowed(apart, 2 * one_experiment) == {cuda, vmvx}
    assert allowed(apart, 2 * one_experiment - 1) == {vmvx}, "the largest comes first"
    assert allowed(apart, one_experiment - 1) == set()
    assert allowed({cuda: cuda, vmvx: cuda}, one_experiment) == {cuda}
