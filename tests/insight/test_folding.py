"""bot.explain.whole_models: what deduplication left behind, counted."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.program import Family
from bot.core.snapshot import Cell, CellKey, Dispatch, FoldCounts
from bot.explain.whole_models import executable_bytes, fold_counts

CELL = Cell(
    CellKey("m", "vmvx"),
    "ok",
    metrics={"dispatch_regions": 40, "executables": 10},
    dispatches=(
        Dispatch("a", "a0", code_bytes=100),
        Dispatch("a", "a1", code_bytes=20),
        Dispatch("b", "b0", code_bytes=130),
        Dispatch("c", "c0", code_bytes=50),
        Dispatch("x", "x0", code_bytes=7),
        Dispatch("y", "y0", code_bytes=7),
        Dispatch("z", "z0"),
    ),
    families=(Family("constants", ("a", "b", "c")), Family("static-shapes", ("x", "y"))),
)


def test_the_surplus_is_all_but_the_largest_member_of_each_family() -> None:
    counts = fold_counts(CELL)
    assert counts == FoldCounts(40, 10, 2, 3, 120 + 50 + 7)
    assert counts is not None and counts.folded == 0.75


def test_a_member_whose_bytes_are_not_known_leaves_the_sum_unknown() -> None:
    for family in (Family("constants", ("a", "z")), Family("constants", ("a", "absent"))):
        assert fold_counts(replace(CELL, families=(*CELL.families, family))) == FoldCounts(40, 10, 3, 4, None)
    half = replace(CELL, dispatches=(*CELL.dispatches, Dispatch("a", "a2"), Dispatch("a", "a3", code_bytes=1)))
    assert fold_counts(half) == FoldCounts(40, 10, 2, 3, None)


def test_a_cell_without_families_left_nothing_and_an_unmeasured_one_says_nothing() -> None:
    assert fold_counts(replace(CELL, families=(), metrics={})) == FoldCounts(None, None, 0, 0, 0)
    unread = replace(CELL, families=(), reasons={"families": "there are no bindings"})
    assert fold_counts(unread) == FoldCounts(40, 10, None, None, None)
    assert fold_counts(replace(CELL, status="failed")) is None
    assert fold_counts(replace(CELL, status="over-stack-limit")) == fold_counts(CELL)


def alone(row: Dispatch) -> Dispatch:
    """The same on vulkan: with 400 bytes of tables around its code."""
    return replace(row, executable_bytes=None if row.code_bytes is None else row.code_bytes + 400)


def test_whole_executables_count_where_each_entry_point_has_one_of_its_own() -> None:
    """Two entry points are two executables in the artifact, and each is saved."""
    vulkan = replace(CELL, dispatches=tuple(map(alone, CELL.dispatches)))
    assert executable_bytes(vulkan.dispatches) == {"a": 920, "b": 530, "c": 450, "x": 407, "y": 407, "z": None}
    assert fold_counts(vulkan) == FoldCounts(40, 10, 2, 3, 530 + 450 + 407)


def test_an_executable_that_is_whole_but_for_one_entry_point_counts_its_code() -> None:
    first, *rest = CELL.dispatches
    assert executable_bytes([alone(first), *rest])["a"] == 120
    assert executable_bytes([Dispatch("e", "e0", executable_bytes=500)]) == {"e": 500}, "code that was not read"
    assert executable_bytes([Dispatch("e", "e0", code_bytes=9, executable_bytes=0)]) == {"e": 0}


rows = st.builds(
    Dispatch,
    st.sampled_from("abcd"),
    st.text("xyz", max_size=2),
    code_bytes=st.none() | st.integers(0, 99),
    executable_bytes=st.none() | st.integers(0, 999),
)


@given(st.lists(rows, max_size=12), st.randoms())
def test_the_executables_bytes_sum_to_the_rows_in_any_order(found: list[Dispatch], random: Random) -> None:
    sizes = executable_bytes(found)
    assert sizes.keys() == {row.executable for row in found}
    for name, size in sizes.items():
        mine = [row for row in found if row.executable == name]
        whole, code = ([getattr(row, field) for row in mine] for field in ("executable_bytes", "code_bytes"))
        assert size == (sum(whole) if None not in whole else None if None in code else sum(code))
    random.shuffle(found)
    assert executable_bytes(found) == sizes


@given(st.lists(st.integers(0, 999), min_size=2, max_size=9), st.permutations(range(9)))
def test_surplus_and_representative_sum_to_the_family_in_any_order(sizes: list[int], order: list[int]) -> None:
    names = [f"e{i}" for i in range(len(sizes))]
    found = tuple(Dispatch(name, name, code_bytes=size) for name, size in zip(names, sizes, strict=True))
    members = tuple(f"e{i}" for i in order if i < len(sizes))
    counts = fold_counts(replace(CELL, dispatches=found, families=(Family("offsets", members),)))
    assert counts is not None and counts.surplus_bytes is not None
    assert counts.surplus_bytes + max(sizes) == sum(sizes)
    assert counts.surplus_executables == len(sizes) - 1
