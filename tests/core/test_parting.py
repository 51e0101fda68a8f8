"""Where two compilers part over one dispatch: known answers, and what must not be named."""

from __future__ import annotations

import pytest
from trace_factory import Counts, trace

from bot.core.parting import parting
from bot.core.trace import LLVM, MACHINE, DispatchTrace


def named(base: DispatchTrace | None, head: DispatchTrace | None) -> tuple[str, Counts]:
    told = parting(base, head)
    return (told.row.name, dict(told.operations)) if told.row else (told.why, {})


def test_the_pass_is_the_first_after_which_they_never_meet_again() -> None:
    base = trace(("a", {"x": 10}), ("b", {"x": 10, "y": 5}), ("c", {"z": 20}))
    head = trace(("a", {"x": 10}), ("b", {"x": 10, "y": 9}), ("c", {"z": 28}))
    assert named(base, head) == ("b", {"y": 4})


def test_sides_that_meet_again_have_not_parted() -> None:
    base = trace(("a", {"x": 10}), ("b", {"x": 12}), ("c", {"x": 20}), ("d", {"x": 30}))
    head = trace(("a", {"x": 10}), ("b", {"x": 15}), ("c", {"x": 20}), ("d", {"x": 40}))
    assert named(base, head) == ("d", {"x": 10})


def test_a_pass_that_moved_is_not_where_they_part() -> None:
    base = trace(("tile", {"x": 4}), ("bufferize", {"x": 4, "m": 2}), ("lower", {"l": 30}))
    head = trace(("bufferize", {"x": 2, "m": 2}), ("tile", {"x": 4, "m": 2}), ("lower", {"l": 60}))
    assert named(base, head) == ("lower", {"l": 30})


@pytest.mark.parametrize(
    ("old", "new"), [("iree-codegen-lower-affine", "iree-lower-affine"), ("virtregrewriter", "virt-reg-rewriter")]
)
def test_a_renamed_pass_is_one_pass(old: str, new: str) -> None:
    told = parting(trace((old, {"x": 1}), ("end", {"y": 1})), trace((new, {"x": 1}), ("end", {"y": 3})))
    assert [row.name for row in told.rows] == [new, "end"]
    assert told.row is not None
    assert told.row.name == "end"


def test_a_handful_that_differs_before_is_not_what_makes_the_difference() -> None:
    base = trace(("peel", {"apply": 301, "max": 0}), ("vector", {"apply": 301, "index": 4_000}), ("low", {"l": 9_000}))
    head = trace(
        ("peel", {"apply": 300, "max": 1}), ("vector", {"apply": 300, "max": 1, "index": 2_560}), ("low", {"l": 4_000})
    )
    assert named(base, head) == ("vector", {"index": -1440})


def test_no_pass_of_llvm_is_named_that_one_side_alone_prints() -> None:
    """As a matmul on rocm: a loop's full unrolling is not printed, and is seen after the next pass of that side."""
    mlir, same, machine = ("a", {"x": 9}), ("GVNPass", {"load": 500}, LLVM), ("isel", {"ADD": 600}, MACHINE)
    base = trace(mlir, same, machine, ("greedy", {"ADD": 610}, MACHINE))
    unrolled = ("VectorCombinePass", {"load": 900}, LLVM)
    head = trace(mlir, same, unrolled, ("isel", {"ADD": 1000}, MACHINE), ("greedy", {"ADD": 1020}, MACHINE))
    assert named(base, head) == ("traced: no single pass that can be seen takes them apart by most of it", {})


def test_what_only_lowers_an_earlier_difference_is_no_cause() -> None:
    """As a layer norm on riscv64: three reads fewer, which become 15 address computations fewer of 3,064 operations."""
    base, head = (
        trace(
            ("peel", {"x": 300}), ("slices", {"x": 300, "read": n}), ("cse", {"x": 9000, "read": n}), ("llvm", lowered)
        )
        for n, lowered in ((9, {"y": 9900, "gep": 60}), (0, {"y": 9900, "gep": 30}))
    )
    assert named(base, head) == ("traced: no single pass that can be seen takes them apart by most of it", {})


def in_llvm(gep: int, spills: int, *, is_detailed: bool) -> DispatchTrace:
    """Of one more look at LLVM's own IR, or of milestones alone."""
    looks = [("GVNPass", {"load": 500}, LLVM)] if is_detailed else []
    machine = [("isel", {"ADD": 600}, MACHINE), ("greedy", {"ADD": 600, "SPILL": spills}, MACHINE)]
    return trace(("a", {"gep": gep, "x": 500}), *looks, *machine)


def test_a_pass_that_adds_a_little_to_much_is_not_where_they_part() -> None:
    """As VectorCombinePass, then twoaddressinstruction, of a convolution on riscv64: shuffles, then a few copies."""
    sides = [
        trace(
            ("EarlyCSEPass", {"x": 2000}, LLVM),
            ("VectorCombinePass", {"x": 2000, "shuffle": 62 * head}, LLVM),
            ("select", {"x": 3000, "shuffle": 62 * head}, MACHINE),
            ("address", {"x": 3000, "copy": 4000 + 10 * head, "shuffle": 150 * head}, MACHINE),
            ("spill", {"x": 3000, "copy": 4000 + 10 * head, "shuffle": 150 * head, "store": 1200 * head}, MACHINE),
        )
        for head in (0, 1)
    ]
    selected, address, end = (row.share for row in parting(*sides).rows[2:])
    assert selected < end / 8 < address
    assert named(*sides) == ("VectorCombinePass", {"shuffle": 62})


def test_a_pass_of_the_code_generator_over_ir_is_not_named_as_others_beside_it_are_not_printed() -> None:
    """As `consthoist` of a matmul on riscv64: loop strength reduction had parted them, which prints nothing."""
    sides = [trace(("GVNPass", {"x": 90}, LLVM), ("consthoist", {"x": 90, "add": 76 * head}, LLVM)) for head in (0, 1)]
    assert named(*sides) == ("traced: no single pass that can be seen takes them apart by most of it", {})


def test_a_difference_that_llvm_folds_away_is_none() -> None:
    base, head = (in_llvm(gep, spills, is_detailed=True) for gep, spills in ((120, 208), (0, 656)))
    assert named(base, head) == ("greedy", {"SPILL": 448})


def test_no_pass_of_llvm_is_named_by_milestones_alone() -> None:
    for detailed in ((False, False), (True, False), (False, True)):
        base, head = (in_llvm(0, 208 + 448 * at, is_detailed=one) for at, one in enumerate(detailed))
        why = "traced: they part in LLVM, up to greedy, and not each pass there could be looked at"
        assert named(base, head) == (why, {})


def test_equal_counts_of_other_shapes_are_apart() -> None:
    base = trace(("begin", {"fill": 2}), ("tile", {"fill tensor<1x1": 2}), ("end", {"x": 5}))
    head = trace(("begin", {"fill": 2}), ("tile", {"fill tensor<8x8": 2}), ("end", {"x": 50}))
    assert named(base, head) == ("tile", {"fill tensor<1x1": -2, "fill tensor<8x8": 2})


def test_a_pass_that_one_side_alone_runs_is_named() -> None:
    base = trace(("a", {"x": 10}), ("expand", {"x": 40}), ("end", {"y": 40}))
    head = trace(("a", {"x": 10}), ("end", {"y": 10}))
    told = parting(base, head)
    assert told.row is not None
    assert (told.row.name, told.row.head, told.operations) == ("expand", None, {"x": -30})


def test_what_differs_from_the_beginning_is_no_pass_s_doing() -> None:
    base, head = (trace(("assign", {"x": count}), ("end", {"y": count})) for count in (10, 14))
    assert named(base, head) == ("traced: apart before the first of its passes", {})


def test_what_has_the_same_operations_to_the_end_has_no_such_pass() -> None:
    one = trace(("a", {"x": 10}), ("b", {"y": 10}))
    assert parting(one, one).at is None
    assert "same operations after each pass" in parting(one, one).why


@pytest.mark.parametrize(
    ("base", "why"),
    [
        (None, "not traced"),
        (DispatchTrace((), "no time was left to trace it"), "no time was left to trace it"),
        (DispatchTrace((), "ended by SIGSEGV"), "base: ended by SIGSEGV"),
        (DispatchTrace(trace(("a", {"x": 1})).steps, same_code=False), "no pass is named, as its code is another one"),
        (DispatchTrace(trace(("a", {"x": 1})).steps, "not finished after 9 s"), "not finished after 9 s"),
    ],
)
def test_no_pass_is_named_of_what_was_not_traced_whole(base: DispatchTrace | None, why: str) -> None:
    told = parting(base, trace(("a", {"x": 2})))
    assert told.row is None
    assert why in told.why


def test_the_sides_swapped_part_at_the_same_pass_by_as_much() -> None:
    base = trace(("a", {"x": 10}), ("b", {"y": 5, "x": 1}), ("c", {"z": 20}))
    head = trace(("a", {"x": 10}), ("b", {"y": 9, "x": 1}), ("c", {"z": 28}))
    name, operations = named(base, head)
    assert named(head, base) == (name, {key: -count for key, count in operations.items()})
