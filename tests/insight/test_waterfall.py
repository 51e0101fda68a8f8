"""The waterfall of a cell sums to the change of its artifact, whatever is known, and its headline owns the most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.delta import CellDelta
from bot.core.explanation import CAUSES, MIXED, UNKNOWN, DispatchDelta, Explanation, moved_bytes
from bot.core.metrics import part_words
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.explain.explanations import headline, headlined, largest, rest_parts, signed_bytes, waterfall

KEY = CellKey("bert", "vulkan-spirv")
PARTS = ("vm", "constants", "tables", "executables/text", "executables/types", "executables/tables")
_METRICS = {"vm": "vm_bytes", "constants": "rodata_bytes", "tables": "unattributed_bytes"}
sizes = st.integers(0, 1 << 20)


def cell(parts: dict[str, int], *rows: Dispatch) -> Cell:
    """A measured cell whose artifact consists of these parts."""
    metrics = {metric: parts.get(part, 0) for part, metric in _METRICS.items()}
    metrics["artifact_bytes"] = sum(parts.values())
    metrics["executable_bytes"] = sum(size for part, size in parts.items() if part.startswith("executables/"))
    return Cell(KEY, "ok", metrics, rows, parts=parts)


def row(name: str, code_bytes: int | None, executable_bytes: int | None = None) -> Dispatch:
    return Dispatch(name, name, code_bytes=code_bytes, executable_bytes=executable_bytes)


def _delta(base: Cell, head: Cell) -> CellDelta:
    return CellDelta(KEY, "changed", {}, base, head)


rows = st.builds(row, st.just("d"), st.none() | sizes, st.none() | sizes)
deltas = st.builds(
    DispatchDelta,
    rows,
    rows,
    st.just("same-source"),
    st.sampled_from([None, "input", "fusion", "dedup-lost", "dedup-won", "strategy", "codegen", "packaging"]),
)
lone = st.builds(DispatchDelta, st.none(), rows, st.just("added"), st.sampled_from([None, "fusion", "dedup-lost"]))
gone = st.builds(DispatchDelta, rows, st.none(), st.just("removed"), st.sampled_from([None, "fusion", "dedup-won"]))
parts_of = st.dictionaries(st.sampled_from(PARTS), sizes.filter(bool), max_size=len(PARTS))


def _sides(found: list[DispatchDelta], left: dict[str, int], right: dict[str, int]) -> tuple[Cell, Cell]:
    base = cell(left, *(delta.base for delta in found if delta.base))
    return base, cell(right, *(delta.head for delta in found if delta.head))


def _swapped(delta: DispatchDelta) -> DispatchDelta:
    return replace(delta, base=delta.head, head=delta.base)


@given(st.lists(deltas | lone | gone, max_size=5), parts_of, parts_of, st.booleans(), sizes)
def test_it_sums_to_the_artifacts_change(
    found: list[DispatchDelta], left: dict[str, int], right: dict[str, int], is_old: bool, renamed: int
) -> None:
    base, head = _sides(found, left, right)
    base = replace(base, parts={}) if is_old else base
    falls = waterfall(found, rest_parts(base, head, found, renamed))
    assert sum(falls.values()) == sum(right.values()) - sum(left.values())
    assert set(falls) <= {*CAUSES, UNKNOWN}
    assert 0 not in falls.values()


@given(st.lists(deltas | lone | gone, max_size=5), parts_of, parts_of)
def test_swapping_the_sides_negates(found: list[DispatchDelta], left: dict[str, int], right: dict[str, int]) -> None:
    base, head = _sides(found, left, right)
    there = waterfall(found, rest_parts(base, head, found))
    swapped = [_swapped(delta) for delta in found]
    back = waterfall(swapped, rest_parts(head, base, swapped))
    assert back == {cause: -size for cause, size in there.items()}
    assert headline(there) == headline(back)


@given(st.dictionaries(st.sampled_from([*CAUSES, UNKNOWN]), st.integers(-1000, 1000).filter(bool)))
def test_the_headline_owns_the_most_and_half_of_it(falls: dict[str, int]) -> None:
    cause, whole = headline(falls), sum(map(abs, falls.values()))
    if cause == MIXED:
        assert all(2 * abs(size) < whole for size in falls.values())
    elif cause is not None:
        assert abs(falls[cause]) == max(map(abs, falls.values()))
        assert 2 * abs(falls[cause]) >= whole
    else:
        assert not falls
    assert [abs(falls[each]) for each in largest(falls)] == sorted(map(abs, falls.values()), reverse=True)


@given(parts_of, st.lists(rows, max_size=4))
def test_a_cell_against_itself_has_none(parts: dict[str, int], found: list[Dispatch]) -> None:
    one = cell(parts, *found)
    assert waterfall((), rest_parts(one, one, ())) == {}


def test_symbol_tables_and_code_are_told_apart() -> None:
    grown = DispatchDelta(row("conv", 1000), row("conv", 6164), "same-source", "strategy")
    base = cell({"executables/text": 2000, "executables/symbols": 30000}, row("conv", 1000))
    head = cell({"executables/text": 7164, "executables/symbols": 5440}, row("conv", 6164))
    told = headlined(
        Explanation("strategy", "configuration", "1 of 1", (grown,)), CellDelta(KEY, "changed", {}, base, head)
    )
    assert told.waterfall == {"strategy": 5164, "container": -24560}
    assert (told.cause, told.phase) == ("container", "configuration")
    assert told.why == "symbol tables -24,560 B"


def test_an_executable_that_one_side_alone_has_counts_whole_with_its_dispatch() -> None:
    new = DispatchDelta(None, row("conv", 700, executable_bytes=1000), "added", "fusion")
    base = cell({"executables/text": 100, "executables/types": 10})
    head = cell({"executables/text": 800, "executables/types": 310}, row("conv", 700, 1000))
    assert waterfall((new,), rest_parts(base, head, (new,))) == {"fusion": 1000}
    assert moved_bytes(new) == 1000


def test_where_only_the_model_changed_all_of_it_is_its_consequence() -> None:
    new = DispatchDelta(None, row("tanh", 80), "added", "input")
    base = cell({"vm": 100, "tables": 50})
    head = cell({"vm": 300, "tables": 90, "executables/text": 80}, row("tanh", 80))
    told = headlined(Explanation("input", "input", "the model itself changed", (new,)), _delta(base, head), True)
    assert (told.cause, told.why, told.waterfall) == ("input", "the model itself changed", {"input": 320})


def test_what_cannot_be_told_apart_is_unknown_and_no_cause() -> None:
    base = replace(cell({"executables/text": 100}), metrics={"artifact_bytes": 100}, parts={})
    head = replace(cell({"executables/text": 300}), metrics={"artifact_bytes": 300}, parts={})
    told = headlined(Explanation("strategy", "configuration", "…"), CellDelta(KEY, "changed", {}, base, head))
    assert (told.cause, told.waterfall) == (None, {UNKNOWN: 200})
    assert told.why == "unknown +200 B could not be told apart"


def test_code_of_unknown_size_is_no_container() -> None:
    base, head = cell({"executables/text": 100}, row("a", None)), cell({"executables/text": 150}, row("a", None))
    delta = DispatchDelta(base.dispatches[0], head.dispatches[0], "same-source", "codegen")
    assert waterfall((delta,), rest_parts(base, head, (delta,))) == {UNKNOWN: 50}


def test_longer_names_of_kernels_belong_to_the_container() -> None:
    base, head = cell({"executables/text": 100}, row("a", 100)), cell({"executables/text": 101}, row("a", 101))
    assert waterfall((), rest_parts(base, head, (), renamed_bytes=1)) == {"container": 1}


def test_no_cause_with_half_of_the_change_is_mixed_and_names_the_two_largest() -> None:
    base = cell({"vm": 100, "tables": 100, "executables/types": 100})
    head = cell({"vm": 400, "tables": 120, "executables/types": 350, "executables/text": 280}, row("a", 280))
    new = DispatchDelta(None, head.dispatches[0], "added", "fusion")
    told = headlined(Explanation("fusion", None, "…", (new,)), CellDelta(KEY, "changed", {}, base, head))
    assert told.cause == MIXED
    assert told.why == "no cause has half of the change: host +300 B, fusion +280 B"


def test_where_no_byte_moved_the_first_phase_that_differs_is_the_cause() -> None:
    one = cell({"vm": 100})
    told = headlined(Explanation("packaging", "layout", "its layout is not"), CellDelta(KEY, "changed", {}, one, one))
    assert (told.cause, told.why, told.waterfall) == ("packaging", "its layout is not", {})


@pytest.mark.parametrize("name", ["vm", "tables", "executables/symbols", "executables/annotations", "executables/x"])
def test_parts_have_words(name: str) -> None:
    assert "/" not in part_words(name)


def test_signed() -> None:
    assert [signed_bytes(size) for size in (1024, -12)] == ["+1,024 B", "-12 B"]
