"""Cuts of two pipelines: behind common passes, behind passes of one side alone, and alike for swapped sides."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from bot.core.pass_cuts import Cut, Step, cuts_of

pipelines = some.lists(
    some.sampled_from([("func.func", name) for name in "abcd"]), max_size=9
)


def steps(names: str) -> list[Step]:
    return [("func.func", name) for name in names]


@given(pipelines, pipelines)
def test_swapped_sides_have_the_same_cuts(base: list[Step], head: list[Step]) -> None:
    cuts = cuts_of(base, head)
    assert cuts_of(head, base) == tuple(cut.swapped for cut in cuts)
    assert cuts[0] == Cut(0, 0)
    assert cuts[-1] == Cut(len(base), len(head))
    for before, behind in pairwise(cuts):
        assert before != behind
        assert before.base <= behind.base
        assert before.head <= behind.head


def test_equal_pipelines_are_cut_behind_each_pass() -> None:
    assert cuts_of(steps("abc"), steps("abc")) == tuple(
        Cut(count, count) for count in range(4)
    )


def test_a_pass_of_one_side_alone_has_a_cut_of_its_own() -> None:
    assert cuts_of(steps("ab"), steps("axb")) == (
        Cut(0, 0),
        Cut(1, 1),
        Cut(1, 2),
        Cut(2, 3),
    )


def test_different_passes_of_both_sides_stay_together() -> None:
    """Nobody can say in which order they would follow each other."""
    assert cuts_of(steps("ayb"), steps("axzb")) == (Cut(0, 0), Cut(1, 1), Cut(3, 4))
    assert cuts_of(steps("ay"), steps("ax")) == (Cut(0, 0), Cut(1, 1), Cut(2, 2))


def test_a_pass_on_another_operation_is_another_pass() -> None:
    assert cuts_of([("func.func", "cse")], [("builtin.module", "cse")]) == (
        Cut(0, 0),
        Cut(1, 1),
    )
