"""Matching: nothing is lost, nothing is paired twice, ordinals do not matter, and each pass finds what it is for."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matched_cells import Row, cells, made, match, ordinal, without_program
from replacing import replace

from bot.core.snapshot import Cell, Dispatch
from bot.explain.matching import ADDED, REMOVED, Match, describe, index_both


def _numbers(pairs: tuple[Match, ...]) -> list[tuple[str | None, str | None, str]]:
    return [(ordinal(m.base), ordinal(m.head), m.passed) for m in pairs]


@given(cells(), cells())
def test_every_entry_point_is_in_one_match_and_swapping_the_sides_swaps_the_pairs(
    base: Cell, head: Cell
) -> None:
    matches = match(base, head)
    assert Counter(m.base for m in matches if m.base) == Counter(base.dispatches)
    assert [m.head for m in matches if m.head] == list(head.dispatches)
    assert all(
        (m.passed == ADDED) == (m.base is None)
        and (m.passed == REMOVED) == (m.head is None)
        for m in matches
    )
    mirrored = {ADDED: REMOVED, REMOVED: ADDED}
    swapped = Counter(
        (m.head, m.base, mirrored.get(m.passed, m.passed)) for m in matches
    )
    assert swapped == Counter((m.base, m.head, m.passed) for m in match(head, base))


@given(cells(), st.integers(0, 90))
def test_a_shift_of_ordinals_never_shows(cell: Cell, shift: int) -> None:
    def renamed(name: str) -> str:
        ordinal = name.split("_")[2]
        return name.replace(
            f"dispatch_{ordinal}", f"dispatch_{int(ordinal) + shift}", 1
        )

    rows = tuple(
        replace(d, executable=renamed(d.executable), name=renamed(d.name))
        for d in cell.dispatches
    )
    program = cell.program and replace(
        cell.program,
        sources=tuple(
            replace(s, executable=renamed(s.executable)) for s in cell.program.sources
        ),
        sites=tuple(
            replace(s, entry_point=renamed(s.entry_point)) for s in cell.program.sites
        ),
    )
    matches = match(cell, replace(cell, dispatches=rows, program=program))
    assert [(m.base, m.head) for m in matches] == list(
        zip(cell.dispatches, rows, strict=True)
    )


_PLACES = ("e.0",)
ONE_EACH = [
    ("identical-binary", Row("s"), Row("s", places=("elsewhere",))),
    ("same-source", Row("s", code="c"), Row("s", code="d", places=("elsewhere",))),
    ("same-structure", Row("s", "t", places=_PLACES), Row("r", "t", places=("e.1",))),
    (
        "same-kind-and-component",
        Row("s", places=_PLACES, words="8"),
        Row("r", places=_PLACES, words="9"),
    ),
    ("same-description", Row("s", places=_PLACES), Row("r", places=("e.1",))),
]


@pytest.mark.parametrize(
    ("name", "base", "head"), ONE_EACH, ids=[name for name, _, _ in ONE_EACH]
)
def test_each_pass_finds_what_it_is_for(name: str, base: Row, head: Row) -> None:
    assert _numbers(match(made(base), made(head, first=7))) == [("0", "7", name)]


def test_among_equals_the_source_the_component_and_then_the_order_decide() -> None:
    s = Row("s", places=("e.0",))
    r = Row("r", places=("e.1",))
    assert _numbers(match(made(s, r), made(r, s))) == [
        ("1", "0", "identical-binary"),
        ("0", "1", "identical-binary"),
    ]
    base = made(Row("s", places=("e.1",)), Row("s", places=("e.2",)))
    head = made(
        Row("s", places=("e.0",)), Row("s", places=("e.1",)), Row("s", places=("e.2",))
    )
    same = "identical-binary"
    assert _numbers(match(base, head)) == [
        (None, "0", ADDED),
        ("0", "1", same),
        ("1", "2", same),
    ]
    nowhere = [replace(row, places=(None,)) for row in (Row("s"), Row("s"))]
    assert [
        m[:2] for m in _numbers(match(made(*nowhere), made(*nowhere, first=3)))
    ] == [("0", "3"), ("1", "4")]
    rows = [
        Row(f"b{i}", places=(f"encoder.{i}",), code=f"b{i}", words=f"{i}")
        for i in range(3)
    ]
    shuffled_rows = [
        Row(f"h{i}", places=(f"encoder.{i}",), code=f"h{i}", words="x")
        for i in (2, 0, 1)
    ]
    layers = _numbers(match(made(*rows), made(*shuffled_rows)))
    assert layers == [
        (base, head, "same-kind-and-component")
        for head, base in zip("012", "201", strict=True)
    ]


def test_without_one_sides_ir_equal_code_still_pairs_and_words_are_the_last_resort() -> (
    None
):
    rows = (Row("s", code="x"), Row("r", code="y", words="other"))
    later = made(
        *(
            replace(row, code="z", code_bytes=120) if row.code == "y" else row
            for row in reversed(rows)
        ),
        first=4,
    )
    for base, head in (
        (without_program(made(*rows)), later),
        (made(*rows), without_program(later)),
    ):
        assert _numbers(match(base, head)) == [
            ("1", "4", "same-description"),
            ("0", "5", "identical-binary"),
        ]


def test_facts_that_only_one_side_has_keep_nothing_apart() -> None:
    rows = (Row("s", code="x"), Row("r", code="y", words="other"))
    base = made(*rows)
    head = made(*reversed(rows), first=4)
    assert head.program is not None
    for fact in ("sources", "sites"):
        poorer = replace(head, program=replace(head.program, **{fact: ()}))
        for pair in ((base, poorer), (poorer, base)):
            indexed = index_both(*pair)
            known = "sources" if fact == "sources" else "components"
            assert [getattr(side, known) for side in indexed] == [{}, {}]
            assert {found.passed for found in match(*pair)} == {"identical-binary"}


def test_an_entry_point_is_where_most_of_its_sites_are_the_first_of_equals() -> None:
    cell = made(
        Row("s", places=("e.0", "e.1", "e.1")),
        Row("r", places=("b", "a", "b", "a")),
        Row("q", places=(None,)),
    )
    side, _ = index_both(cell, cell)
    assert [side.component(row) for row in cell.dispatches] == ["e.1", "b", None]


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("main_dispatch_7_matmul_8x16_f32", "matmul_8x16_f32"),
        ("_initializer_12_dispatch_0_transpose_4x4", "transpose_4x4"),
        ("main$async_dispatch_1_dispatch_2_slow", "slow"),
        ("plain", "plain"),
        ("main_dispatch_3_", "main_dispatch_3_"),
    ],
)
def test_descriptions_have_no_ordinals(name: str, description: str) -> None:
    assert describe(Dispatch("e", name)) == description
