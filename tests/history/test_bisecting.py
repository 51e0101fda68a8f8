"""The search: the right place, in as few looks as there can be; what is skipped; what is bad."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from report_factory import MODELS, TARGETS, cell, failed, with_metrics

from bot.core.bisecting import Bound, Bracket, Candidate, Judged, bracket, half_way, other_moves, values_of
from bot.core.snapshot import CellKey, Outcome

KEY = CellKey(MODELS[0], "vmvx")
CELL = cell(KEY, TARGETS["vmvx"])


class Row:
    """Candidates whose judgement is known; counts the looks."""

    def __init__(self, told: list[Judged]) -> None:
        self.told, self.looks = told, list[int]()

    def judge(self, place: int) -> Judged:
        self.looks.append(place)
        return self.told[place]


@given(st.integers(1, 300), st.data())
def test_the_step_is_found_in_the_logarithm_of_looks(between: int, data: st.DataObject) -> None:
    count = between + 2
    first_bad = data.draw(st.integers(1, count - 1))
    row = Row([*["good"] * first_bad, *["bad"] * (count - first_bad)])  # type: ignore[list-item]
    assert bracket(count, row.judge) == Bracket(first_bad - 1, first_bad)
    assert len(row.looks) <= ceil(log2(between + 1)) and len(row.looks) + 2 <= ceil(log2(count)) + 2
    assert set(row.looks) <= set(range(1, count - 1)), "the ends are known"


@given(st.lists(st.sampled_from(["good", "bad", "skipped"]), max_size=60))
def test_whatever_the_row_is_a_good_one_is_left_before_a_bad_one_and_only_skipped_ones_between(
    middle: list[Judged],
) -> None:
    row = Row(["good", *middle, "bad"])
    found = bracket(len(row.told), row.judge)
    assert row.told[found.good] == "good" and row.told[found.bad] == "bad" and found.good < found.bad
    assert {row.told[place] for place in range(found.good + 1, found.bad)} <= {"skipped"}
    assert len(row.looks) == len(set(row.looks)), "nobody is asked twice"
    skipped = sum(row.told[place] == "skipped" for place in row.looks)
    assert len(row.looks) <= ceil(log2(len(middle) + 1)) + skipped


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_half_way_the_ends_are_what_they_are_called_and_what_is_nearer_to_bad_is_bad(good: int, grown: int) -> None:
    bad = good + grown
    bound = Bound(half_way(good, bad))
    assert (bound.judged([good]), bound.judged([bad])) == ("good", "bad")
    nearer = bound.limit + 1
    assert bad - nearer < nearer - good and bad - bound.limit >= bound.limit - good


def test_values_that_disagree_are_skipped_and_a_band_widens_each() -> None:
    assert [Bound(100).judged(values) for values in ([100], [101], [99, 100], [101, 150], [99, 101])] == [
        *("good", "bad", "good", "bad", "skipped")
    ]
    tenth = Bound(100, Fraction(1, 10))
    assert [tenth.judged([value]) for value in (90, 91, 100, 110, 111)] == ["good", *["skipped"] * 3, "bad"]


def test_a_cell_has_all_values_that_its_command_gave() -> None:
    other = Outcome("ok", {**CELL.metrics, "artifact_bytes": 7}, "d" * 64)
    size = CELL.value("artifact_bytes")
    assert values_of(replace(CELL, others=(other,)), CELL, "artifact_bytes") == ((7, size), "")
    same = replace(other, metrics=CELL.metrics)
    assert values_of(replace(CELL, others=(same,)), CELL, "artifact_bytes") == ((size,), "")


def test_what_has_no_value_says_why() -> None:
    assert values_of(None, CELL, "executables") == ((), "has no such cell")
    assert values_of(failed(CELL, "error: no\nmore"), CELL, "executables") == ((), "failed: error: no")
    unknown = replace(with_metrics(CELL, executables=None), reasons={"executables": "no IR"})
    assert values_of(unknown, CELL, "executables") == ((), "no IR")
    flaky = replace(CELL, others=(Outcome("failed"),))
    assert values_of(flaky, CELL, "executables") == ((), "not deterministic: not every compile of it has a value")


def test_what_another_assembler_made_is_not_held_against_it() -> None:
    good, other = (replace(with_metrics(CELL, sass_bytes=9), assembler=name) for name in ("ptxas 1", "ptxas 2"))
    assert values_of(good, good, "sass_bytes") == ((9,), "")
    values, reason = values_of(other, good, "sass_bytes")
    assert values == () and reason.startswith("not compared: ")


def test_what_moves_beside_the_step_is_told() -> None:
    looks = [
        Candidate("a", "good", (5,)),
        Candidate("b", "good", (3,)),
        Candidate("c", "skipped", (), "gone"),
        Candidate("d", "bad", (9,)),
        Candidate("e", "bad", (9,)),
        Candidate("f", "bad", (8,)),
    ]
    moved = other_moves(looks, ("b", "d"))
    assert [(one.name, other.name) for one, other in moved] == [("a", "b"), ("e", "f")]
