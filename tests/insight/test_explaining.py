"""The story of a cell: what is listed, in which order, with which note and diff; and that it is quick."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matched_cells import KEY, PHASES, Row, cells, made, whole, without_program
from replacing import replace

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED, DispatchDelta, Explanation
from bot.core.program import Family
from bot.core.snapshot import Cell
from bot.explain.causes import MOST_DIFFS, MOST_NOTES, explain

TEXTS = {whole(f"{letter}{number}"): f"func\n  op {letter}{number}\n" for letter in "pqsk" for number in range(9)}
FOLDED = Row("p1", "p", places=("e.0", "e.1", "e.2"), code="p1")
UNFOLDED = tuple(Row(f"p{i}", "p", places=(f"e.{i}",), code=f"p{i}") for i in range(3))
FAMILY = Family("constants", ("main_dispatch_0", "main_dispatch_1", "main_dispatch_2"), ("i32: 3, 5, 7",))


def _delta(base: Cell | None, head: Cell | None) -> CellDelta:
    return CellDelta(KEY, "changed", {}, base, head, False)


def _told(base: Cell, head: Cell, same_model: bool = True) -> Explanation:
    return explain(_delta(base, replace(head, artifact_digest="b")), same_model, True, TEXTS.get)


def _notes(found: Explanation) -> list[str]:
    return [one.note for one in found.dispatches]


def test_the_largest_change_comes_first_and_the_same_is_only_counted() -> None:
    rows = [Row(f"s{i}", code=f"s{i}") for i in range(4)]
    sizes = (100, 90, 150, 101)
    head = made(*(replace(r, code_bytes=b, code=r.code if b == 100 else "x") for r, b in zip(rows, sizes, strict=True)))
    found = _told(made(*rows), head)
    assert [one.name[14:15] for one in found.dispatches] == ["2", "1", "3"]
    assert (found.cause, found.phase, found.unchanged) == ("codegen", "code", 1)
    assert {(one.cause, one.matched, one.note) for one in found.dispatches} == {
        ("codegen", "same-source", "the same configuration, different code")
    }
    assert (found.components, found.tree) == ((), ())


def test_code_that_only_lies_elsewhere_is_counted_and_not_listed() -> None:
    def bound(cell: Cell, where: str) -> Cell:
        assert cell.program is not None
        sources = tuple(replace(source, bound=whole(where)) for source in cell.program.sources)
        return replace(cell, program=replace(cell.program, sources=sources))

    base, head = bound(made(Row("s", code="s")), "here"), bound(made(Row("s", code="S")), "there")
    found = _told(base, head)
    assert (found.dispatches, found.unchanged, found.rebased) == ((), 0, 1)
    larger = bound(made(Row("s", code="S", code_bytes=104)), "there")
    (listed,) = _told(base, larger).dispatches
    assert listed.note == "the same configuration, different code, and what the program binds there differs"
    assert _told(base, bound(made(Row("s", code="S")), "here")).rebased == 0


def test_a_strategy_shows_both_and_their_diff() -> None:
    found = _told(made(Row("s0")), made(Row("s0", code="d", strategy="Tiling | [4, 0]")))
    (one,) = found.dispatches
    assert (one.cause, one.note) == ("strategy", "Tiling | [8, 0] → Tiling | [4, 0]")
    assert one.diff[3:] == (" Tiling", "-[8, 0]", "+[4, 0]")


def test_other_constants_show_the_diff_of_their_ir() -> None:
    (one,) = _told(made(Row("p1", "p")), made(Row("p2", "p", code="d"))).dispatches
    assert (one.cause, one.matched) == ("fusion", "same-structure-and-place")
    assert one.note == "the same region with different constants, shapes or offsets"
    assert one.diff[3:] == (" func", "-  op p1", "+  op p2")


def test_dedup_lost_shows_two_of_head_that_were_one_on_base() -> None:
    found = _told(made(FOLDED), made(*UNFOLDED, families=[FAMILY]))
    added = [one for one in found.dispatches if one.matched == "added"]
    assert [one.diff[4:] for one in added] == [("-  op p1", "+  op p0"), ("-  op p1", "+  op p2")]
    assert {one.note for one in added} == {
        "one of 3 executables of the same region, which on base is main_dispatch_0_matmul_8x16_f32, "
        "kept apart by constants (i32: 3, 5, 7)"
    }
    kept = next(one for one in found.dispatches if one.matched != "added")
    assert (kept.cause, kept.note, kept.diff) == ("dedup-lost", "3 → 1 dispatch sites", ())


def test_dedup_won_is_the_mirror() -> None:
    found = _told(made(*UNFOLDED, families=[FAMILY]), made(FOLDED))
    removed = [one for one in found.dispatches if one.matched == "removed"]
    assert [one.diff[4:] for one in removed] == [("-  op p0", "+  op p1"), ("-  op p2", "+  op p1")]
    assert {one.cause for one in found.dispatches} == {"dedup-won"}
    folded = "one of 3 executables of the same region, which on head is main_dispatch_0_matmul_8x16_f32, "
    assert removed[0].note == f"{folded}kept apart by constants (i32: 3, 5, 7)"


def test_lone_regions_of_fusion_and_input() -> None:
    base, head = made(Row("s0", kind="conv"), Row("k0")), made(Row("s1"), Row("k0"))
    assert _notes(_told(base, head)) == ["the other side has no region of this IR"] * 2
    other = made(Row("s1"), Row("k0"), phases={**PHASES, "input": whole("j")})
    assert _notes(_told(base, other)) == ["the other side has no region of this IR"] * 2
    assert _notes(_told(base, other, same_model=False)) == ["the model itself changed"] * 2


def test_the_component_is_asked_of_the_side_that_has_it() -> None:
    delta = _delta(made(Row("s0", kind="conv")), replace(made(Row("s1")), artifact_digest="h"))
    conv, matmul = (f"main_dispatch_0_{kind}_8x16_f32" for kind in ("conv", "matmul"))
    found = explain(delta, True, True, components=({conv: "stem", matmul: "no"}, {matmul: "head", conv: "no"}))
    assert [one.component for one in found.dispatches] == ["head", "stem"]
    assert {one.component for one in explain(delta, True, True).dispatches} == {UNATTRIBUTED}


def test_what_has_no_cause_says_why() -> None:
    lost = without_program(made(Row("s0"), Row("k0", kind="conv")), "the worker ended")
    found = _told(lost, made(Row("s0", code="d"), Row("q0", kind="pack")))
    assert _notes(found) == ["the program's IR was not read on base: the worker ended"] * 3
    assert {one.cause for one in found.dispatches} == {None}
    unconfigured = _told(made(Row("s0", strategy=None)), made(Row("s0", code="d", strategy=None)))
    assert _notes(unconfigured) == ["the configuration was not read on base and head"]
    uncoded = _told(made(Row("s0", code=None)), made(Row("s0", stack_bytes=99)))
    assert _notes(uncoded) == ["its code could not be compared"]


def test_of_unknown_code_nothing_is_said_where_all_else_is_the_same() -> None:
    row = Row("s0", code=None)
    assert _told(made(row), made(row)).unchanged == 1
    assert len(_told(made(row), made(replace(row, strategy="other"))).dispatches) == 1


@pytest.mark.parametrize(
    ("base", "head", "why"),
    [
        (None, made(Row("s0")), "nothing was measured on base to compare with"),
        (made(Row("s0")), Cell(KEY, "failed"), "nothing was measured on head to compare with"),
        (None, None, "nothing was measured on base and head to compare with"),
    ],
)
def test_one_measured_side_has_no_cause(base: Cell | None, head: Cell | None, why: str) -> None:
    assert explain(_delta(base, head), True, True) == Explanation(None, None, why)


def test_only_the_largest_have_notes_and_diffs() -> None:
    rows = [Row(f"x{i}", code=f"x{i}") for i in range(MOST_NOTES + 20)]
    other = [replace(r, code="y", strategy="Tiling | [4, 0]", code_bytes=900 - i) for i, r in enumerate(rows)]
    found = _told(made(*rows), made(*other))
    assert [bool(one.note) for one in found.dispatches] == [True] * MOST_NOTES + [False] * 20
    assert [bool(one.diff) for one in found.dispatches] == [True] * MOST_DIFFS + [False] * (MOST_NOTES + 15)


def _change(one: DispatchDelta) -> int:
    return ((one.head and one.head.code_bytes) or 0) - ((one.base and one.base.code_bytes) or 0)


OFFSETS = "the same configuration, different code, for buffers that the program binds at different offsets"
ASSUMED = "the same configuration, different code, under different assumptions about what the program passes"
OTHERWISE = "the same configuration, different code, and what the program binds there differs"


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        (("o", "A", "R"), OFFSETS),
        (("O", "a", "R"), ASSUMED),
        (("o", "a", "R"), f"{OFFSETS}, and {ASSUMED.partition(', different code, ')[2]}"),
        (("O", "A", "r"), OTHERWISE),
        (("o", "A", "r"), OTHERWISE),
        (("O", "A", "R"), OTHERWISE),
        ((), OTHERWISE),
    ],
)
def test_offsets_are_said_only_where_nothing_else_around_the_buffers_differs(parts: tuple[str, ...], note: str) -> None:
    def bound(row: Row, where: str, said: tuple[str, ...]) -> Cell:
        cell = made(row)
        assert cell.program is not None
        digests = tuple(map(whole, said))
        sources = tuple(replace(s, bound=whole(where), bound_parts=digests) for s in cell.program.sources)
        return replace(cell, program=replace(cell.program, sources=sources))

    base = bound(Row("s", code="s"), "here", ("O", "A", "R"))
    found = _told(base, bound(Row("s", code="S", code_bytes=104), "there", parts))
    assert [one.note for one in found.dispatches] == [note]
    words = note.removeprefix("the same configuration, different code")
    assert found.why == f"1 of 1 dispatches have the same configuration and different code{words}"
    assert found.phase == "executable-source"


def test_a_longer_name_in_the_text_of_the_same_code_is_no_change_of_it() -> None:
    rows = [Row(f"s{i}", code=f"s{i}", places=(f"e.{i}",)) for i in range(3)]
    head = made(*(replace(row, code_bytes=104) for row in rows), first=9)
    found = _told(made(*rows, first=7), head)
    assert (found.dispatches, found.unchanged, found.renamed_bytes) == ((), 3, 12)
    assert found.cause == "packaging"
    back = _told(head, made(*rows, first=7))
    assert (back.dispatches, back.renamed_bytes) == ((), -12)
    sites = made(replace(rows[0], code_bytes=104, places=("e.0", "e.0")), *rows[1:])
    (listed,) = _told(made(*rows), sites).dispatches
    assert (_change(listed), _told(made(*rows), sites).renamed_bytes) == (4, 0)


def test_an_executable_more_of_a_region_with_more_sites_names_the_one_on_base() -> None:
    families = [Family("static-shapes", ("main_dispatch_0", "main_dispatch_1"), ("argument 0: 8x8, 4x4",))]
    base = made(Row("p1", "p", places=("e.0",), code="p1"))
    head = made(
        Row("p1", "p", places=("e.0",), code="p1"), Row("p2", "p", places=("e.1",), code="p2"), families=families
    )
    (added,) = _told(base, head).dispatches
    assert (added.cause, added.note) == (
        "fusion",
        "another executable of the region that on base is main_dispatch_0_matmul_8x16_f32, "
        "kept apart by static-shapes (argument 0: 8x8, 4x4)",
    )


@given(cells(), cells(), st.booleans())
def test_what_is_listed_sums_to_the_cell_and_swapping_negates(base: Cell, head: Cell, same_model: bool) -> None:
    there = explain(_delta(base, head), same_model, True, TEXTS.get)
    back = explain(_delta(head, base), same_model, True, TEXTS.get)
    total = sum(row.code_bytes or 0 for row in head.dispatches) - sum(row.code_bytes or 0 for row in base.dispatches)
    assert sum(map(_change, there.dispatches)) + there.renamed_bytes == total
    assert there.renamed_bytes == -back.renamed_bytes
    assert sorted(map(_change, there.dispatches)) == sorted(-_change(one) for one in back.dispatches)
    assert there.unchanged == back.unchanged
    left, right = ({(str(one.base), str(one.head)) for one in found.dispatches} for found in (there, back))
    assert left == {(base_row, head_row) for head_row, base_row in right}


@given(cells())
def test_a_cell_against_itself_lists_nothing(cell: Cell) -> None:
    found = explain(_delta(cell, cell), True, True)
    assert (found.cause, found.dispatches, found.unchanged) == (None, (), len(cell.dispatches))
