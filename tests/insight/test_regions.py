"""Regions: merges and splits are found by their sums, near each other, never guessed."""

from __future__ import annotations

import pytest
from growth import LINEAR, cpu_growth
from hypothesis import given
from matched_cells import Row, cells, made

from bot.core.snapshot import Cell
from bot.explain.matching import index_both
from bot.explain.phases import MOST_PARTS, WINDOW_SITES, merges

MATMUL, RELU, ADD, NORM = 11, 2**53 - 3, 500, 7_000


def _row(structure: str, operations: int, kind: str = "elementwise", *places: str | None) -> Row:
    return Row(structure, kind=kind, operations=operations, places=places or ("e.0",))


def _merges(base: Cell, head: Cell) -> tuple[str, ...]:
    return merges(*index_both(base, head))


APART = made(_row("m", MATMUL, "matmul"), _row("r", RELU), order=(0, 1, 0, 1))
TOGETHER = made(_row("mr", (MATMUL + RELU) % 2**53, "matmul", "e.0", "e.0"))


def test_two_that_became_one_and_one_that_became_two() -> None:
    assert _merges(APART, TOGETHER) == ("2 × (matmul + elementwise) → matmul in e.0",)
    assert _merges(TOGETHER, APART) == ("2 × matmul → (matmul + elementwise) in e.0",)


@pytest.mark.parametrize("parts", range(2, MOST_PARTS + 2))
def test_up_to_four_parts(parts: int) -> None:
    rows = [_row(f"s{i}", 10**i, "reduction") for i in range(parts)]
    found = _merges(made(*rows), made(_row("all", sum(10**i for i in range(parts)), "reduction")))
    expected = (f"1 × ({' + '.join(['reduction'] * parts)}) → reduction in e.0",) if parts <= MOST_PARTS else ()
    assert found == expected


def test_places_are_named_only_where_there_is_one() -> None:
    base = made(_row("m", MATMUL, "matmul", "e.0"), _row("r", RELU, "elementwise", "e.1"))
    head = made(_row("mr", (MATMUL + RELU) % 2**53, "matmul"))
    assert _merges(base, head) == ("1 × (matmul + elementwise) → matmul",)


def test_what_is_on_both_sides_is_no_part_of_anything() -> None:
    kept = (_row("m", MATMUL, "matmul"), _row("r", RELU))
    assert _merges(made(*kept), made(*kept, _row("mr", (MATMUL + RELU) % 2**53, "matmul"))) == ()
    assert _merges(made(*kept), made(*kept)) == ()


def test_a_part_is_used_once_and_no_more_merge_than_there_are_wholes() -> None:
    one_relu = made(_row("m", MATMUL, "matmul"), _row("r", RELU), order=(0, 1, 0))
    assert _merges(one_relu, TOGETHER) == ("1 × (matmul + elementwise) → matmul in e.0",)
    one_whole = made(_row("mr", (MATMUL + RELU) % 2**53, "matmul"))
    assert _merges(APART, one_whole) == ("1 × (matmul + elementwise) → matmul in e.0",)


def test_parts_far_from_each_other_do_not_count() -> None:
    between = [_row(f"b{i}", 10**8 + i, "pack") for i in range(WINDOW_SITES)]
    head = made(_row("mr", (MATMUL + RELU) % 2**53, "matmul"))
    near = made(_row("m", MATMUL, "matmul"), *between[: WINDOW_SITES - 2], _row("r", RELU))
    far = made(_row("m", MATMUL, "matmul"), *between[: WINDOW_SITES - 1], _row("r", RELU))
    assert (len(_merges(near, head)), _merges(far, head)) == (1, ())


def test_wholes_of_other_shapes_but_the_same_operations_all_count() -> None:
    whole = (MATMUL + RELU) % 2**53
    head = made(_row("mr", whole, "matmul"), _row("mr wide", whole, "matmul"))
    assert _merges(APART, head) == ("2 × (matmul + elementwise) → matmul in e.0",)


def test_regions_that_compute_nothing_are_part_of_nothing() -> None:
    base = made(_row("t", 0, "transpose"), _row("u", 0, "transpose"), _row("m", MATMUL, "matmul"))
    assert _merges(base, made(_row("g", 0, "gather"))) == ()
    assert _merges(base, made(_row("n", MATMUL, "matmul"))) == ()


def test_merges_that_the_number_of_sites_does_not_bear_out_are_not_said() -> None:
    """As many sites as before: parts that became one would leave fewer."""
    other = tuple(_row(f"o{i}", 10**8 + i, "pack") for i in range(2))
    assert len(_merges(APART, TOGETHER)) == 1
    assert _merges(APART, made(_row("mr", (MATMUL + RELU) % 2**53, "matmul", "e.0", "e.0"), *other)) == ()
    assert _merges(made(_row("mr", (MATMUL + RELU) % 2**53, "matmul", "e.0", "e.0"), *other), APART) == ()


def test_most_frequent_first() -> None:
    base = made(_row("a", ADD), _row("n", NORM, "reduction"), _row("m", MATMUL, "matmul"), order=(0, 1, 0, 2, 0, 2))
    head = made(_row("an", ADD + NORM, "reduction"), _row("am", ADD + MATMUL, "matmul", "e.0", "e.0"))
    assert _merges(base, head) == (
        "2 × (elementwise + matmul) → matmul in e.0",
        "1 × (elementwise + reduction) → reduction in e.0",
    )


@given(cells(), cells())
def test_swapping_gives_as_many_lines_of_the_other_kind(base: Cell, head: Cell) -> None:
    left, right = index_both(base, head)
    assert sorted(len(line) for line in merges(left, right)) == sorted(len(line) for line in merges(right, left))


def test_the_search_grows_with_the_number_of_sites() -> None:
    def sides(number: int) -> tuple[Cell, Cell]:
        rows = [_row(f"s{i}", i * 2_654_435_761 % 2**53) for i in range(number)]
        return made(*rows), made(*(_row(f"w{i}", (rows[i].operations or 0) + 1) for i in range(number // 2)))

    assert len(_merges(*sides(10_000))) <= 2  # chance sums of 32 bits
    assert cpu_growth(sides, lambda both: _merges(*both), 2_000) < LINEAR
