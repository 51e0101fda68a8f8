"""bot.fold.search: what is kept of the groups of a program, with a compiler that is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.planned import Model, PlannedCell, Target
from bot.core.runs import Price
from bot.core.snapshot import Cell, Dispatch, Failure
from bot.fold.attempts import Attempt
from bot.fold.audit import FOLD_KINDS, BeforeAfter, FoldCell
from bot.fold.auditing import Audited, model_of
from bot.fold.rewriting import FoldedGroup, Group, Groups, LeftGroup
from bot.fold.search import Searched, affordable, kind_of, permitted, search

PLANNED = PlannedCell(
    Model(name="m", path="", shown="", digest="", size_bytes=0), Target("t", "llvm-cpu")
)
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
        requested = tuple(sorted(groups))
        self.asked.append(requested)
        fitting = [group for group in requested if group not in self.unfit]
        left_groups = tuple(
            LeftGroup(group, "tensor.pad of varying shape")
            for group in requested
            if group in self.unfit
        )
        folded = tuple(FoldedGroup(group, ("i32",)) for group in fitting)
        return Attempt(
            groups=requested,
            cell=self._cell(fitting),
            program=Path(),
            planned=PLANNED,
            folded=folded,
            left=left_groups,
        )

    def _cell(self, groups: Sequence[Group]) -> Cell:
        if message := self.fails(groups):
            return Cell("m", "t", "failed", failure=Failure("compile", message))
        sizes = dict(self.code)
        for group in groups:
            whole = sum(sizes.pop(name) for name in group)
            sizes[group[0]] = self.folded.get(group, whole // 2)
        sites = sum(SITE_BYTES * len(group) for group in groups)
        rows = tuple(
            Dispatch(
                executable=name,
                name=f"{name}_f",
                kind="k",
                sites=1,
                code_bytes=size if self.tells_code else None,
            )
            for name, size in sorted(sizes.items())
        )
        return Cell(
            "m",
            "t",
            "ok",
            {"artifact_bytes": HOST_BYTES + sites + sum(sizes.values())},
            rows,
        )

    @property
    def plain_bytes(self) -> int:
        """Of the artifact with nothing folded."""
        return HOST_BYTES + sum(self.code.values())


def found_of(executables: Sequence[str], **levels: Sequence[Group]) -> Groups:
    """Groups as the worker gives them: each level has what the stricter ones have, unless it says otherwise."""
    by_kind: dict[str, tuple[Group, ...]] = {}
    before: tuple[Group, ...] = ()
    for kind in FOLD_KINDS:
        before = by_kind[kind] = tuple(levels.get(kind.replace("-", "_"), before))
    return Groups({name: f"{name}_f" for name in executables}, {}, by_kind)


def world(
    code: Mapping[str, int],
    folded: Mapping[Group, int] | None = None,
    *,
    fails: Any = None,
    unfit: Sequence[Group] = (),
    tells_code: bool = True,
    elements: Mapping[str, int] | None = None,
    **levels: Sequence[Group],
) -> World:
    candidates = replace(found_of(list(code), **levels), elements=dict(elements or {}))
    return World(
        code=code,
        found=candidates,
        folded=folded or {},
        fails=fails or (lambda _groups: ""),
        unfit=frozenset(unfit),
        tells_code=tells_code,
    )


def told(result: Searched) -> dict[Group, tuple[str, str]]:
    assert len({left_group.members for left_group in result.left}) == len(result.left)
    return {
        left_group.members: (left_group.kind, left_group.why)
        for left_group in result.left
    }


AB = ("a", "b")
CD = ("c", "d")
BC = ("b", "c")
WHOLE = ("a", "b", "c", "d")
FOUR = {"a": 4_000, "b": 4_000, "c": 3_000, "d": 3_000}
EQUAL = dict.fromkeys(WHOLE, 1_000)
SMALL = ("a", "c")
LARGE = ("b", "d")
HALVES: dict[Group, int] = {WHOLE: 4_000, SMALL: 1_000, LARGE: 1_950}
FAILS = "<stdin>:12:3: error: failed to legalize operation 'arith.extsi'\nmore"
REASON = "failed to legalize operation 'arith.extsi'"
NO_CODE = "folding this group saves no code"
NO_SMALLER = "this group does not make the artifact smaller"


def failing(*bad: Group) -> Callable[[Sequence[Group]], str]:
    """Programs fail that have one of these groups."""
    return lambda groups: FAILS if any(group in groups for group in bad) else ""


def more_than(count: int) -> Callable[[Sequence[Group]], str]:
    """Programs fail that have more groups."""
    return lambda groups: FAILS if len(groups) > count else ""


Case = tuple[World, tuple[Group, ...], dict[Group, tuple[str, str]]]
CASES: dict[str, Case] = {
    "what saves is kept and nothing is left": (
        world(FOUR, constants=[AB, CD]),
        (AB, CD),
        {},
    ),
    "a program without a group": (world(FOUR), (), {}),
    "where all fails all is left once, with the reason and without its place": (
        world(FOUR, fails=more_than(0), constants=[AB, CD]),
        (),
        {AB: ("constants", REASON), CD: ("constants", REASON)},
    ),
    "one group that fails": (
        world(FOUR, fails=failing(CD), constants=[AB, CD]),
        (AB,),
        {CD: ("constants", REASON)},
    ),
    "two groups that compile apart only": (
        world(FOUR, fails=more_than(1), constants=[AB, CD]),
        (AB,),
        {CD: ("constants", f"together with the other groups: {REASON}")},
    ),
    "a group of four that fails is halved": (
        world(FOUR, fails=failing(WHOLE), constants=[WHOLE]),
        (AB, CD),
        {},
    ),
    "its halves have its kind": (
        world(FOUR, fails=failing(WHOLE, CD), constants=[WHOLE]),
        (AB,),
        {CD: ("constants", REASON)},
    ),
    "a half that saves nothing": (
        world(FOUR, {CD: 7_000}, fails=failing(WHOLE), constants=[WHOLE]),
        (AB,),
        {CD: ("constants", NO_CODE)},
    ),
    "a group that cannot be rewritten is left with that reason alone": (
        world(FOUR, unfit=[WHOLE], constants=[AB], static_shapes=[WHOLE]),
        (AB,),
        {WHOLE: ("static-shapes", "tensor.pad of varying shape")},
    ),
    "what saves no code, and what makes the artifact no smaller": (
        world(FOUR, {AB: 8_000, CD: 6_000 - 2 * SITE_BYTES}, constants=[AB, CD]),
        (),
        {AB: ("constants", NO_CODE), CD: ("constants", NO_SMALLER)},
    ),
    "what makes the artifact larger does not hide behind what makes it smaller": (
        world(
            {"a": 4_000, "b": 4_000, "c": 3_000, "d": 3_000},
            {AB: 7_960},
            constants=[AB, CD],
        ),
        (CD,),
        {AB: ("constants", NO_SMALLER)},
    ),
    "nor where it has little code": (
        world({"a": 40, "b": 40, "c": 3_000, "d": 3_000}, {AB: 40}, constants=[AB, CD]),
        (CD,),
        {AB: ("constants", NO_SMALLER)},
    ),
    "where code costs more at its sites than folding saves only what gains alone is kept": (
        world(
            {"a": 50, "b": 50, "c": 60, "d": 60}, {AB: 40, CD: 30}, constants=[AB, CD]
        ),
        (CD,),
        {AB: ("constants", NO_SMALLER)},
    ),
    "or nothing": (
        world({"a": 50, "b": 50}, {AB: 40}, constants=[AB]),
        (),
        {AB: ("constants", NO_SMALLER)},
    ),
    "of two ways the one with the smaller artifact": (
        world(
            FOUR,
            {AB: 4_500, CD: 3_500, WHOLE: 6_000},
            constants=[AB, CD],
            static_shapes=[WHOLE],
        ),
        (WHOLE,),
        {},
    ),
    "which may be the stricter": (
        world(
            FOUR,
            {AB: 4_500, CD: 3_500, WHOLE: 12_000},
            constants=[AB, CD],
            static_shapes=[WHOLE],
        ),
        (AB, CD),
        {},
    ),
    "of a group that gains nothing the half of one size that does": (
        world(
            EQUAL,
            HALVES,
            elements={"a": 1, "c": 1, "b": 100, "d": 100},
            constants=[WHOLE],
        ),
        (SMALL,),
        {},
    ),
    "whichever half that is": (
        world(
            EQUAL,
            HALVES,
            elements={"a": 100, "c": 100, "b": 1, "d": 1},
            constants=[WHOLE],
        ),
        (SMALL,),
        {},
    ),
    "or both": (
        world(
            EQUAL,
            {**HALVES, LARGE: 1_000},
            elements={"a": 1, "c": 1, "b": 9, "d": 9},
            constants=[WHOLE],
        ),
        (SMALL, LARGE),
        {},
    ),
    "where the code is not told the artifact decides": (
        world(FOUR, {AB: 3_000, CD: 6_000}, tells_code=False, constants=[AB, CD]),
        (AB,),
        {CD: ("constants", NO_SMALLER)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_kept_and_what_is_left(case: str) -> None:
    fake_world, groups, expected_left = CASES[case]
    result = search(fake_world.found, fake_world.attempt)
    assert result.attempt.groups == groups and told(result) == expected_left
    sites = sum(SITE_BYTES * len(group) for group in groups)
    code = sum(
        fake_world.folded.get(group, sum(fake_world.code[name] for name in group) // 2)
        for group in groups
    )
    unfolded_bytes = sum(
        size
        for name, size in fake_world.code.items()
        if not any(name in group for group in groups)
    )
    assert result.attempt.artifact_bytes == HOST_BYTES + sites + code + unfolded_bytes


def test_a_part_of_a_group_has_its_kind_and_a_program_without_one_is_compiled_once() -> (
    None
):
    fake_world = world(FOUR, constants=[WHOLE])
    assert (
        kind_of(fake_world.found, CD) == "constants"
        and kind_of(fake_world.found, ("a", "x")) is None
    )
    fake_world = world(FOUR)
    search(fake_world.found, fake_world.attempt)
    assert set(fake_world.asked) == {()}


def test_a_half_across_stricter_groups_does_not_hide_them_and_the_artifact_counts_more_than_code() -> (
    None
):
    """The halves of the wide group cut the strict one in two; only the strict one saves."""
    fake_world = world(
        FOUR,
        {AB: 9_000, CD: 9_000, BC: 3_000},
        fails=failing(WHOLE),
        constants=[BC],
        static_shapes=[WHOLE],
    )
    assert search(fake_world.found, fake_world.attempt).attempt.groups == (BC,)
    fake_world = world(
        dict.fromkeys(WHOLE, 100),
        {BC: 100, WHOLE: 260, AB: 200, CD: 200},
        constants=[BC],
        static_shapes=[WHOLE],
    )
    result = search(fake_world.found, fake_world.attempt)
    assert (
        result.attempt.groups == (BC,)
        and result.attempt.artifact_bytes == fake_world.plain_bytes - 20
    )


def test_what_is_banned_is_not_folded_in_a_wider_group_either() -> None:
    fake_world = world(FOUR, constants=[AB, CD], static_shapes=[WHOLE])
    result = search(fake_world.found, fake_world.attempt, {AB})
    assert result.attempt.groups == (CD,) and result.left == ()
    assert not any(
        "a" in group for requested in fake_world.asked for group in requested
    )
    assert search(fake_world.found, fake_world.attempt, {WHOLE}).attempt.groups == (
        AB,
        CD,
    )
    assert (
        permitted([WHOLE], {BC}) == [("a", "d")]
        and permitted([WHOLE, AB], {AB, CD}) == []
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Up to nine executables, levels one inside of the other, and a compiler with moods."""
    names = [f"d_{number}" for number in range(draw(st.integers(1, 9)))]
    keys = {name: tuple(draw(st.integers(0, 1)) for _ in FOLD_KINDS) for name in names}
    levels: dict[str, list[Group]] = {}
    for depth, kind in enumerate(FOLD_KINDS):
        ends = {name: keys[name][depth:] for name in names}
        ordered = sorted(names, key=ends.__getitem__)
        parts = [tuple(sorted(part)) for _, part in groupby(ordered, ends.__getitem__)]
        levels[kind.replace("-", "_")] = sorted(part for part in parts if len(part) > 1)
    all_groups = sorted({group for groups in levels.values() for group in groups})
    code = {name: draw(st.integers(1, 5_000)) for name in names}
    folded = {
        group: draw(st.integers(1, 9_000))
        for group in all_groups
        if draw(st.booleans())
    }
    poison = frozenset(draw(st.sets(st.sampled_from(names), max_size=2)))
    largest_count = draw(st.integers(1, 9))
    says = draw(st.sampled_from([FAILS, "error: no room", f"error: in {names[0]}_f"]))

    def fails(groups: Sequence[Group]) -> str:
        return (
            says
            if len(groups) > largest_count
            or any(poison <= set(group) for group in groups if poison)
            else ""
        )

    unfit = (
        frozenset(draw(st.sets(st.sampled_from(all_groups))))
        if all_groups
        else frozenset[Group]()
    )
    return World(
        code=code,
        found=found_of(names, **levels),
        folded=folded,
        fails=fails,
        unfit=unfit,
        tells_code=draw(st.booleans()),
    )


@given(worlds(), st.data())
def test_whatever_the_compiler_does_the_artifact_gets_no_larger_and_each_group_is_accounted_for(
    drawn_world: World, data: st.DataObject
) -> None:
    all_groups = sorted(
        {group for groups in drawn_world.found.groups.values() for group in groups}
    )
    banned = (
        data.draw(st.sets(st.sampled_from(all_groups))) if all_groups else set[Group]()
    )
    result = search(drawn_world.found, drawn_world.attempt, banned)
    size = result.attempt.artifact_bytes
    assert size is not None and size <= drawn_world.plain_bytes
    assert {folded_group.members for folded_group in result.attempt.folded} == set(
        result.attempt.groups
    )
    assert not any(
        set(banned_group) <= set(group)
        for banned_group in banned
        for group in result.attempt.groups
    )
    folded = {name for group in result.attempt.groups for name in group}
    left_kinds = told(result)
    assert not any(folded.issuperset(members) for members in left_kinds)
    spoken = folded.union(*left_kinds, *banned)
    assert all(not spoken.isdisjoint(group) for group in all_groups), (
        "a group of which nothing is said"
    )
    assert all(
        kind in FOLD_KINDS and reason and "\n" not in reason
        for kind, reason in left_kinds.values()
    )
    assert search(drawn_world.found, drawn_world.attempt, banned) == result


COSTS: dict[Group, float] = {("a", "b"): 0.004, ("c", "d"): 0.006, ("e", "f"): 0.009}


@pytest.mark.parametrize(
    ("max_slowdown", "remaining"),
    [
        (0.03, [("a", "b"), ("c", "d"), ("e", "f")]),
        (0.01, [("a", "b"), ("c", "d")]),
        (0.005, [("a", "b")]),
        (0.001, []),
    ],
)
def test_the_dearest_groups_are_dropped_until_the_others_are_worth_their_price(
    max_slowdown: float, remaining: list[Group]
) -> None:
    code = dict.fromkeys("abcdef", 1_000)
    world = World(code, found_of(list(code)))

    def price(attempt: Attempt) -> Price:
        ratio = 1 + sum((COSTS[group] for group in attempt.groups), 0.0)
        return Price(
            before_us=100,
            after_us=round(100 * ratio),
            pairs=12,
            ratio=ratio,
            low=ratio,
            high=ratio,
        )

    attempt, dropped, outcome = affordable(
        world.attempt(tuple(COSTS)), world.attempt, price, max_slowdown
    )
    assert list(attempt.groups) == remaining and sorted(
        [*remaining, *dropped]
    ) == sorted(COSTS)
    assert isinstance(outcome, str) is (not remaining)
    for group, reason in dropped.items():
        is_dear = COSTS[group] > max_slowdown
        assert reason.startswith(
            "it is slower by more than "
            if is_dear
            else "alone it is worth its slowdown"
        )
    assert affordable(world.attempt([AB]), world.attempt, lambda _: "too long", 0) == (
        world.attempt([AB]),
        {},
        "too long",
    )


BYTES = BeforeAfter(9_000, 5_000)


def cell(
    target: str, after: int | None, equal: bool | None, model: str = "m"
) -> FoldCell:
    return FoldCell(
        model=model,
        target=target,
        state="folded",
        executables=BeforeAfter(30, after),
        artifact_bytes=BYTES,
        equal=equal,
        folded=(),
        left=(),
    )


@pytest.mark.parametrize(
    ("cells", "folded"),
    [
        ([cell("a", 12, True), cell("b", 9, None)], 9),
        ([cell("a", 12, True), cell("b", 9, False)], 12),
        ([cell("a", 9, False)], None),
        ([cell("a", None, None), cell("b", 20, True), cell("c", 1, True, "other")], 20),
        ([], None),
    ],
)
def test_the_fewest_executables_of_cells_whose_outputs_do_not_differ(
    cells: list[FoldCell], folded: int | None
) -> None:
    planned = PlannedCell(
        Model(name="m", path="", shown="", digest="", size_bytes=0), Target("a", "vmvx")
    )
    measured = Cell("m", "a", "ok", {"dispatch_regions": 64, "executables": 30})
    model = model_of([Audited(measured, planned, failure="no bindings")], cells)
    assert (model.model, model.regions, model.today, model.folded) == (
        "m",
        64,
        30,
        folded,
    )
