"""bot.study.folding: what is kept of the groups of a program, with a compiler that is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.compiler.rewriting import Classes, FoldedGroup, Group, Groups, LeftGroup
from bot.core.fold import FOLD_KINDS, Price
from bot.core.planned import Model, PlannedCell, Target
from bot.core.snapshot import Cell, CellKey, Dispatch, Failure
from bot.study.folding import Attempt, Searched, kind_of, permitted, search, together

PLANNED = PlannedCell(Model("m", "", "", "", 0), Target("t", "llvm-cpu"))
HOST_BYTES = 5_000
SITE_BYTES = 40
"""What each member of a folded group adds to the host's program."""


@dataclass
class World:
    """A program, and what its compiler makes of it.

    Attributes:
        code: executable → bytes of its code; None where that is not told.
        folded: group → bytes of the code of what it becomes; half of all where it is not here.
        fails: the compiler's message for these groups; empty where they compile.
        unfit: groups that cannot be rewritten.
    """

    code: Mapping[str, int]
    found: Groups
    folded: Mapping[Group, int] = field(default_factory=dict)
    fails: Callable[[Sequence[Group]], str] = lambda _groups: ""
    unfit: frozenset[Group] = frozenset()
    tells_code: bool = True
    asked: list[tuple[Group, ...]] = field(default_factory=list)

    def attempt(self, groups: Sequence[Group]) -> Attempt:
        """As `Attempts.at`."""
        names = [name for group in groups for name in group]
        assert len(set(names)) == len(names), "an executable in two groups"
        asked = tuple(sorted(groups))
        self.asked.append(asked)
        made = [group for group in asked if group not in self.unfit]
        left = tuple(LeftGroup(group, "tensor.pad of varying shape") for group in asked if group in self.unfit)
        folded = tuple(FoldedGroup(group, ("i32",)) for group in made)
        return Attempt(asked, self._cell(made), Path(), PLANNED, folded, left)

    def _cell(self, groups: Sequence[Group]) -> Cell:
        if message := self.fails(groups):
            return Cell(CellKey("m", "t"), "failed", failure=Failure("compile", message))
        sizes = dict(self.code)
        for group in groups:
            whole = sum(sizes.pop(name) for name in group)
            sizes[group[0]] = self.folded.get(group, whole // 2)
        sites = sum(SITE_BYTES * len(group) for group in groups)
        rows = tuple(
            Dispatch(name, f"{name}_f", "k", 1, size if self.tells_code else None)
            for name, size in sorted(sizes.items())
        )
        return Cell(CellKey("m", "t"), "ok", {"artifact_bytes": HOST_BYTES + sites + sum(sizes.values())}, rows)

    @property
    def plain_bytes(self) -> int:
        """Of the artifact with nothing folded."""
        return HOST_BYTES + sum(self.code.values())


def found_of(executables: Sequence[str], **levels: Sequence[Group]) -> Groups:
    """Groups as the worker gives them: each level has what the stricter ones have, unless it says otherwise."""
    known: dict[str, tuple[Group, ...]] = {}
    before: tuple[Group, ...] = ()
    for kind in FOLD_KINDS:
        before = known[kind] = tuple(levels.get(kind.replace("-", "_"), before))
    return Groups({name: f"{name}_f" for name in executables}, {}, known, Classes(1, 1, 1))


def world(code: Mapping[str, int], folded: Mapping[Group, int] | None = None, **levels: Sequence[Group]) -> World:
    return World(code, found_of(list(code), **levels), folded or {})


def told(kept: Searched) -> dict[Group, tuple[str, str]]:
    assert len({one.members for one in kept.left}) == len(kept.left)
    return {one.members: (one.kind, one.why) for one in kept.left}


AB, CD = ("a", "b"), ("c", "d")
FOUR = {"a": 4_000, "b": 4_000, "c": 3_000, "d": 3_000}
FAILS = "<stdin>:12:3: error: failed to legalize operation 'arith.extsi'\nmore"
REASON = "failed to legalize operation 'arith.extsi'"


def failing(*bad: Group, message: str = FAILS) -> Callable[[Sequence[Group]], str]:
    """Programs fail that have one of these groups."""
    return lambda groups: message if any(group in groups for group in bad) else ""


def test_what_saves_is_kept_and_nothing_is_left() -> None:
    made = world(FOUR, constants=[AB, CD])
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB, CD) and kept.left == ()
    assert kept.attempt.artifact_bytes == HOST_BYTES + 4_000 + 3_000 + 4 * SITE_BYTES


def test_a_program_without_a_group_is_compiled_once() -> None:
    made = world(FOUR)
    kept = search(made.found, made.attempt)
    assert (kept.attempt.groups, kept.left, set(made.asked)) == ((), (), {()})


def test_where_all_fails_all_is_left_once_with_the_reason_and_without_its_place() -> None:
    made = world(FOUR, constants=[AB, CD])
    made.fails = lambda groups: FAILS if groups else ""
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == ()
    assert told(kept) == {AB: ("constants", REASON), CD: ("constants", REASON)}


@pytest.mark.parametrize("message", [FAILS, f"{FAILS}: see c_f", f"{FAILS}: see a_f and c_f", "<stdin>:1:1: error: c_"])
def test_one_group_that_fails_is_left_named_or_not(message: str) -> None:
    made = world(FOUR, constants=[AB, CD])
    made.fails = failing(CD, message=message)
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB,) and set(told(kept)) == {CD}


def test_a_name_that_begins_like_another_costs_no_group() -> None:
    one, twelve = ("d_1", "d_2"), ("d_12", "d_13")
    code = {"d_1": 4_000, "d_2": 4_000, "d_12": 3_000, "d_13": 3_000}
    for bad in (one, twelve):
        made = world(code, constants=[one, twelve])
        made.fails = failing(bad, message=f"<stdin>:1:1: error: in {bad[0]}_f")
        kept = search(made.found, made.attempt)
        assert kept.attempt.groups == tuple({one, twelve} - {bad}) and set(told(kept)) == {bad}
        assert len(set(made.asked)) == 4, "the name in the message says at once which it is"


def test_two_groups_that_compile_apart_only() -> None:
    made = world(FOUR, constants=[AB, CD])
    made.fails = lambda groups: FAILS if len(groups) == 2 else ""
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB,)
    assert told(kept) == {CD: ("constants", f"beside the other groups: {REASON}")}


def test_a_group_of_four_that_fails_is_halved_and_its_halves_have_its_kind() -> None:
    whole = ("a", "b", "c", "d")
    made = world(FOUR, constants=[whole])
    made.fails = failing(whole)
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB, CD) and kept.left == ()
    made.fails = failing(whole, CD)
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB,) and told(kept) == {CD: ("constants", REASON)}
    assert kind_of(made.found, CD) == "constants" and kind_of(made.found, ("a", "x")) is None


def test_a_half_that_saves_nothing_is_left_with_the_kind_of_the_whole() -> None:
    whole = ("a", "b", "c", "d")
    made = world(FOUR, {CD: 7_000}, constants=[whole])
    made.fails = failing(whole)
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB,) and told(kept) == {CD: ("constants", "folding it saves no code")}


def test_a_half_across_stricter_groups_does_not_hide_them() -> None:
    """The halves of the wide group cut the strict one in two; only the strict one saves."""
    whole, strict = ("a", "b", "c", "d"), ("b", "c")
    made = world(FOUR, {AB: 9_000, CD: 9_000, strict: 3_000}, constants=[strict], static_shapes=[whole])
    made.fails = failing(whole)
    assert search(made.found, made.attempt).attempt.groups == (strict,)


def test_a_group_that_cannot_be_rewritten_is_left_with_that_reason_alone() -> None:
    whole = ("a", "b", "c", "d")
    made = world(FOUR, constants=[AB], static_shapes=[whole])
    made.unfit = frozenset({whole})
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB,) and [one.members for one in kept.attempt.folded] == [AB]
    assert told(kept) == {whole: ("static-shapes", "tensor.pad of varying shape")}


def test_what_saves_no_code_is_left_and_what_makes_the_artifact_no_smaller_too() -> None:
    made = world(FOUR, {AB: 8_000, CD: 6_000 - 2 * SITE_BYTES}, constants=[AB, CD])
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == () and told(kept) == {
        AB: ("constants", "folding it saves no code"),
        CD: ("constants", "the artifact gets no smaller with it"),
    }


@pytest.mark.parametrize(("code", "left_bytes"), [(4_000, 7_960), (40, 40)])
def test_what_makes_the_artifact_larger_does_not_hide_behind_what_makes_it_smaller(code: int, left_bytes: int) -> None:
    made = world({"a": code, "b": code, "c": 3_000, "d": 3_000}, {AB: left_bytes}, constants=[AB, CD])
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (CD,) and told(kept) == {AB: ("constants", "the artifact gets no smaller with it")}


def test_where_little_code_costs_more_at_its_sites_than_folding_saves_only_what_gains_alone_is_kept() -> None:
    made = world({"a": 50, "b": 50, "c": 60, "d": 60}, {AB: 40, CD: 30}, constants=[AB, CD])
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (CD,) and told(kept) == {AB: ("constants", "the artifact gets no smaller with it")}
    made = world({"a": 50, "b": 50}, {AB: 40}, constants=[AB])
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == () and told(kept) == {AB: ("constants", "the artifact gets no smaller with it")}


def test_of_two_ways_the_one_with_the_smaller_artifact_is_kept() -> None:
    whole = ("a", "b", "c", "d")
    for size, groups in ((6_000, (whole,)), (12_000, (AB, CD))):
        made = world(FOUR, {AB: 4_500, CD: 3_500, whole: size}, constants=[AB, CD], static_shapes=[whole])
        kept = search(made.found, made.attempt)
        assert kept.attempt.groups == groups and kept.left == ()


def test_of_two_ways_it_is_the_artifact_that_counts_and_not_the_code() -> None:
    whole, inner = ("a", "b", "c", "d"), ("b", "c")
    made = world(dict.fromkeys(whole, 100), {inner: 100, whole: 260, AB: 200, CD: 200},
                 constants=[inner], static_shapes=[whole])  # fmt: skip
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (inner,) and kept.attempt.artifact_bytes == made.plain_bytes - 20


def test_of_a_group_that_gains_nothing_the_half_of_one_size_that_does_is_kept_and_the_other_left_as_it_is() -> None:
    whole, small, large = ("a", "b", "c", "d"), ("a", "c"), ("b", "d")
    made = world(dict.fromkeys(whole, 1_000), {whole: 4_000, small: 1_000, large: 1_950}, constants=[whole])
    made.found = replace(made.found, elements={"a": 1, "c": 1, "b": 100, "d": 100})
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (small,) and kept.attempt.artifact_bytes == made.plain_bytes - 1_000 + 2 * SITE_BYTES
    made.found = replace(made.found, elements={"a": 100, "c": 100, "b": 1, "d": 1})
    assert search(made.found, made.attempt).attempt.groups == (small,)
    made.folded = {whole: 4_000, small: 1_000, large: 1_000}
    assert search(made.found, made.attempt).attempt.groups == (small, large)


def test_where_the_code_is_not_told_the_artifact_decides() -> None:
    made = world(FOUR, {AB: 3_000, CD: 6_000}, constants=[AB, CD])
    made.tells_code = False
    kept = search(made.found, made.attempt)
    assert kept.attempt.groups == (AB,)
    assert told(kept) == {CD: ("constants", "the artifact gets no smaller with it")}


def test_what_is_banned_is_not_folded_in_a_wider_group_either() -> None:
    whole = ("a", "b", "c", "d")
    made = world(FOUR, constants=[AB, CD], static_shapes=[whole])
    kept = search(made.found, made.attempt, {AB})
    assert kept.attempt.groups == (CD,) and kept.left == ()
    assert not any("a" in group for asked in made.asked for group in asked)
    assert search(made.found, made.attempt, {whole}).attempt.groups == (AB, CD)
    assert permitted([whole], {("b", "c")}) == [("a", "d")] and permitted([whole, AB], {AB, CD}) == []


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Up to nine executables, levels one inside of the other, and a compiler with moods."""
    names = [f"d_{number}" for number in range(draw(st.integers(1, 9)))]
    keys = {name: tuple(draw(st.integers(0, 1)) for _ in FOLD_KINDS) for name in names}
    levels: dict[str, list[Group]] = {}
    for depth, kind in enumerate(FOLD_KINDS):
        ordered = sorted(names, key=lambda name, cut=depth: keys[name][cut:])  # type: ignore[misc]
        parts = [tuple(sorted(part)) for _, part in groupby(ordered, lambda name, cut=depth: keys[name][cut:])]  # type: ignore[misc]
        levels[kind.replace("-", "_")] = sorted(part for part in parts if len(part) > 1)
    every = sorted({group for groups in levels.values() for group in groups})
    code = {name: draw(st.integers(1, 5_000)) for name in names}
    folded = {group: draw(st.integers(1, 9_000)) for group in every if draw(st.booleans())}
    poison, most = frozenset(draw(st.sets(st.sampled_from(names), max_size=2))), draw(st.integers(1, 9))
    says = draw(st.sampled_from([FAILS, "error: no room", f"error: in {names[0]}_f"]))

    def fails(groups: Sequence[Group]) -> str:
        return says if len(groups) > most or any(poison <= set(group) for group in groups if poison) else ""

    unfit = frozenset(draw(st.sets(st.sampled_from(every)))) if every else frozenset[Group]()
    return World(code, found_of(names, **levels), folded, fails, unfit, draw(st.booleans()))


@given(worlds(), st.data())
def test_whatever_the_compiler_does_the_artifact_gets_no_larger_and_each_group_is_accounted_for(
    made: World, data: st.DataObject
) -> None:
    every = sorted({group for groups in made.found.groups.values() for group in groups})
    banned = data.draw(st.sets(st.sampled_from(every))) if every else set[Group]()
    kept = search(made.found, made.attempt, banned)
    size = kept.attempt.artifact_bytes
    assert size is not None and size <= made.plain_bytes
    assert {one.members for one in kept.attempt.folded} == set(kept.attempt.groups)
    assert not any(set(one) <= set(group) for one in banned for group in kept.attempt.groups)
    folded, left = {name for group in kept.attempt.groups for name in group}, told(kept)
    assert not any(folded.issuperset(members) for members in left)
    spoken = folded.union(*left, *banned)
    assert all(not spoken.isdisjoint(group) for group in every), "a group of which nothing is said"
    assert all(kind in FOLD_KINDS and why and "\n" not in why for kind, why in left.values())
    assert search(made.found, made.attempt, banned) == kept


COSTS: dict[Group, float] = {("a", "b"): 0.004, ("c", "d"): 0.006, ("e", "f"): 0.009}


@pytest.mark.parametrize(
    ("max_slowdown", "kept"),
    [
        (0.03, [("a", "b"), ("c", "d"), ("e", "f")]),
        (0.01, [("a", "b"), ("c", "d")]),
        (0.005, [("a", "b")]),
        (0.001, []),
    ],
)
def test_groups_that_are_cheap_alone_are_dropped_until_they_are_cheap_together(
    max_slowdown: float, kept: list[Group]
) -> None:
    code = dict.fromkeys("abcdef", 1_000)
    world = World(code, found_of(list(code)))

    def price(attempt: Attempt) -> Price:
        ratio = 1 + sum((COSTS[group] for group in attempt.groups), 0.0)
        return Price(100, round(100 * ratio), 12, ratio, ratio, ratio)

    cheap = [(1 + cost, group) for group, cost in COSTS.items()]
    attempt, dropped, told = together(cheap, world.attempt, price, max_slowdown)
    assert list(attempt.groups) == kept and sorted([*kept, *dropped]) == sorted(COSTS)
    assert isinstance(told, str) is (not kept)
