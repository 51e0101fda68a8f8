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
WHOLE = (MATMUL + RELU) % 2**53


def _row(structure: str, operations: int, kind: str = "elementwise", *places: str | None) -> Row:
    return Row(structure, kind=kind, operations=operations, places=places or ("e.0",))


def _merges(base: Cell, head: Cell) -> tuple[str, ...]:
    return merges(*index_both(base, head))


M, R, MR = _row("m", MATMUL, "matmul"), _row("r", RELU), _row("mr", WHOLE, "matmul")
TWO = _row("mr", WHOLE, "matmul", "e.0", "e.0")
OTHER = tuple(_row(f"o{i}", 10**8 + i, "pack") for i in range(WINDOW_SITES))
PARTS = [_row(f"s{i}", 10**i, "reduction") for i in range(MOST_PARTS + 1)]
APART, TOGETHER = made(M, R, order=(0, 1, 0, 1)), made(TWO)
MERGED = "(matmul + elementwise) → matmul"


@pytest.mark.parametrize(
    ("base", "head", "lines"),
    [
        (APART, TOGETHER, (f"2 × {MERGED} in e.0",)),
        (TOGETHER, APART, ("2 × matmul → (matmul + elementwise) in e.0",)),
        *(
            (
                made(*PARTS[:count]),
                made(_row("all", sum(10**i for i in range(count)), "reduction")),
                (f"1 × ({' + '.join(['reduction'] * count)}) → reduction in e.0",) if count <= MOST_PARTS else (),
            )
            for count in range(2, MOST_PARTS + 2)
        ),
        # places are named only where there is one
        (made(M, _row("r", RELU, "elementwise", "e.1")), made(MR), (f"1 × {MERGED}",)),
        # what is on both sides is no part of anything
        (made(M, R), made(M, R, MR), ()),
        (made(M, R), made(M, R), ()),
        # a part is used once, and no more merge than there are wholes
        (made(M, R, order=(0, 1, 0)), TOGETHER, (f"1 × {MERGED} in e.0",)),
        (APART, made(MR), (f"1 × {MERGED} in e.0",)),
        # parts far from each other do not count
        (made(M, *OTHER[: WINDOW_SITES - 2], R), made(MR), (f"1 × {MERGED} in e.0",)),
        (made(M, *OTHER[: WINDOW_SITES - 1], R), made(MR), ()),
        # wholes of other shapes but the same operations all count
        (APART, made(MR, _row("mr wide", WHOLE, "matmul")), (f"2 × {MERGED} in e.0",)),
        # regions that compute nothing are part of nothing
        (made(_row("t", 0, "transpose"), _row("u", 0, "transpose"), M), made(_row("g", 0, "gather")), ()),
        (made(_row("t", 0, "transpose"), _row("u", 0, "transpose"), M), made(_row("n", MATMUL, "matmul")), ()),
        # as many sites as before: parts that became one would leave fewer
        (APART, made(TWO, *OTHER[:2]), ()),
        (made(TWO, *OTHER[:2]), APART, ()),
        # the most frequent first
        (
            made(_row("a", ADD), _row("n", NORM, "reduction"), M, order=(0, 1, 0, 2, 0, 2)),
            made(_row("an", ADD + NORM, "reduction"), _row("am", ADD + MATMUL, "matmul", "e.0", "e.0")),
            ("2 × (elementwise + matmul) → matmul in e.0", "1 × (elementwise + reduction) → reduction in e.0"),
        ),
    ],
)
def test_what_merged_and_what_split(base: Cell, head: Cell, lines: tuple[str, ...]) -> None:
    assert _merges(base, head) == lines


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
