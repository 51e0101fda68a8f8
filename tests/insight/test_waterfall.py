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
from bot.explain.explanations import headlined

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


def _told(found: list[DispatchDelta], base: Cell, head: Cell, renamed: int = 0) -> Explanation:
    return headlined(Explanation(None, None, "", tuple(found), renamed_bytes=renamed), _delta(base, head))


@given(st.lists(deltas | lone | gone, max_size=5), parts_of, parts_of, st.booleans(), sizes)
def test_it_sums_to_the_artifacts_change_and_swapping_the_sides_negates(
    found: list[DispatchDelta], left: dict[str, int], right: dict[str, int], is_old: bool, renamed: int
) -> None:
    base, head = _sides(found, left, right)
    base = replace(base, parts={}) if is_old else base
    told = _told(found, base, head, renamed)
    falls, whole = told.waterfall, sum(map(abs, told.waterfall.values()))
    assert sum(falls.values()) == sum(right.values()) - sum(left.values())
    assert set(falls) <= {*CAUSES, UNKNOWN} and 0 not in falls.values()
    if told.cause == MIXED:
        assert all(2 * abs(size) < whole for size in falls.values())
    elif falls:
        size = abs(falls[told.cause or UNKNOWN])
        assert size == max(map(abs, falls.values())) and 2 * size >= whole
    swapped = [replace(delta, base=delta.head, head=delta.base) for delta in found]
    back = _told(swapped, head, base, -renamed)
    assert (back.cause, back.waterfall) == (told.cause, {cause: -size for cause, size in falls.items()})
    assert _told([], head, head).waterfall == {}


def test_symbol_tables_and_code_are_told_apart() -> None:
    grown = DispatchDelta(row("conv", 1000), row("conv", 6164), "same-source", "strategy")
    base = cell({"executables/text": 2000, "executables/symbols": 30000}, row("conv", 1000))
    head = cell({"executables/text": 7164, "executables/symbols": 5440}, row("conv", 6164))
    told = headlined(Explanation("strategy", "configuration", "1 of 1", (grown,)), _delta(base, head))
    assert told.waterfall == {"strategy": 5164, "container": -24560}
    assert (told.cause, told.phase) == ("container", "configuration")
    assert told.why == "symbol tables -24,560 B"


def test_an_executable_that_one_side_alone_has_counts_whole_with_its_dispatch() -> None:
    new = DispatchDelta(None, row("conv", 700, executable_bytes=1000), "added", "fusion")
    base = cell({"executables/text": 100, "executables/types": 10})
    head = cell({"executables/text": 800, "executables/types": 310}, row("conv", 700, 1000))
    assert _told([new], base, head).waterfall == {"fusion": moved_bytes(new)} == {"fusion": 1000}


def test_what_is_not_known_is_no_cause_and_names_of_kernels_belong_to_the_container() -> None:
    base, head = (
        replace(cell({"executables/text": size}), metrics={"artifact_bytes": size}, parts={}) for size in (100, 300)
    )
    told = headlined(Explanation("strategy", "configuration", "…"), _delta(base, head))
    assert (told.cause, told.waterfall) == (None, {UNKNOWN: 200})
    assert told.why == "unknown +200 B could not be told apart"
    base, head = cell({"executables/text": 100}, row("a", None)), cell({"executables/text": 150}, row("a", None))
    unsized = DispatchDelta(base.dispatches[0], head.dispatches[0], "same-source", "codegen")
    assert _told([unsized], base, head).waterfall == {UNKNOWN: 50}
    base, head = cell({"executables/text": 100}, row("a", 100)), cell({"executables/text": 101}, row("a", 101))
    assert _told([], base, head, renamed=1).waterfall == {"container": 1}


def test_the_headline_has_the_words_of_the_largest_part() -> None:
    base = cell({"vm": 100, "tables": 100, "executables/types": 100})
    head = cell({"vm": 400, "tables": 120, "executables/types": 350, "executables/text": 280}, row("a", 280))
    new = DispatchDelta(None, head.dispatches[0], "added", "fusion")
    told = headlined(Explanation("fusion", None, "…", (new,)), _delta(base, head))
    assert (told.cause, told.why) == (MIXED, "no cause has half of the change: host +300 B, fusion +280 B")
    base, head = (
        cell({"vm": 100, "tables": 50}),
        cell({"vm": 300, "tables": 90, "executables/text": 80}, row("tanh", 80)),
    )
    new = DispatchDelta(None, row("tanh", 80), "added", "input")
    told = headlined(Explanation("input", "input", "the model itself changed", (new,)), _delta(base, head), True)
    assert (told.cause, told.why, told.waterfall) == ("input", "the model itself changed", {"input": 320})
    none = headlined(Explanation("packaging", "layout", "its layout is not"), _delta(base, base))  # the first phase's
    assert (none.cause, none.why, none.waterfall) == ("packaging", "its layout is not", {})


@pytest.mark.parametrize("name", ["vm", "tables", "executables/symbols", "executables/annotations", "executables/x"])
def test_parts_have_words(name: str) -> None:
    assert "/" not in part_words(name)
