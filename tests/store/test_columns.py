"""Columns of bot.store.entries: there and back; whatever else comes is refused in one line, or is a snapshot."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import measured
from replacing import replace
from strategies import snapshots

from bot.core.snapshot import Snapshot
from bot.errors import InputError
from bot.store import entries
from bot.store.entries import from_columns, to_columns

REAL = measured()
PLAIN: dict[str, Any] = json.loads(to_columns(replace(REAL, cells=REAL.cells[:2])))
SITES = {"counts": [1], "columns": {"entry_point": ["e"]}}

leaves = st.none() | st.booleans() | st.integers(-2, 1 << 60) | st.floats() | st.text(max_size=3)
names = st.sampled_from(["counts", "columns", "name", "sites", ""])
values = st.recursive(leaves, lambda v: st.lists(v, max_size=4) | st.dictionaries(names, v, max_size=3), max_leaves=30)


def refusal(plain: Any) -> str:
    """The one line with which plain values are refused."""
    with pytest.raises(InputError) as raised:
        from_columns(json.dumps(plain).encode(), "somewhere")
    assert raised.value.where.startswith("somewhere")
    return raised.value.line


@given(snapshots())
def test_snapshots_there_and_back(found: Snapshot) -> None:
    assert from_columns(to_columns(found), "x") == found


def test_equal_fields_stand_side_by_side() -> None:
    rows = [row for cell in REAL.cells[:2] for row in cell.dispatches]
    table = PLAIN["dispatches"]
    assert table["counts"] == [len(cell.dispatches) for cell in REAL.cells[:2]]
    assert table["columns"]["code_bytes"] == [row.code_bytes for row in rows]
    assert not any(cell["dispatches"] for cell in PLAIN["snapshot"]["cells"])
    assert not any(program["sources"] or program["sites"] for program in PLAIN["snapshot"]["programs"].values())


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (None, "expected `object`, got `null`"),
        ({}, "missing required field `counts`"),
        ({**SITES, "more": 1}, "unknown field `more`"),
        ({**SITES, "counts": [2]}, "another length"),
        ({**SITES, "counts": [0]}, "another length"),
        ({**SITES, "counts": [1, 0]}, "another length"),
        ({**SITES, "counts": [-1]}, "expected `int` >= 0"),
        ({**SITES, "counts": [True]}, "expected `int`, got `bool`"),
        ({**SITES, "counts": [1 << 60]}, "expected `int` <="),
        ({**SITES, "columns": []}, "expected `object`, got `array`"),
        ({**SITES, "columns": {}}, "rows without a column"),
        ({**SITES, "columns": {"entry_point": [7]}}, "expected `str`, got `int`"),
        ({**SITES, "columns": {"entry_point": [[[]]]}}, "expected `str`, got `array`"),
        ({**SITES, "columns": {"component": ["c"]}}, "missing required field `entry_point`"),
        ({**SITES, "columns": {"entry_point": ["e"], "splendid": [1]}}, "unknown field `splendid`"),
        ({**SITES, "columns": {"entry_point": ["e"], "component": []}}, "another length"),
    ],
)
def test_tables_that_do_not_agree(table: Any, why: str) -> None:
    assert len(PLAIN["snapshot"]["programs"]) == 1
    assert why in refusal({**PLAIN, "sites": table})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"other": 1}, "unknown field `other`"),
        ({"snapshot": []}, "expected `object`, got `array`"),
        ({"schema": "code-size-columns/1"}, "'code-size-columns/1', not 'code-size-columns/2' (measure it again"),
        ({"schema": "code-size-snapshot/1"}, "'code-size-snapshot/1', not"),
        ({"schema": None}, "is not a stored snapshot: schema: expected `str`"),
    ],
)
def test_what_is_no_stored_snapshot(change: dict[str, Any], why: str) -> None:
    assert why in refusal({**PLAIN, **change})


def test_other_values_and_nesting_without_end() -> None:
    others: tuple[Any, ...] = (None, 1, "x", [], {})
    for value in others:
        refusal(value)
    for deep in ("[" * 100_000, '{"schema":' + "[" * 100_000, '{"sites":' * 100_000):
        with pytest.raises(InputError):
            from_columns(deep.encode(), "somewhere")


def test_rows_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is a few bytes of text, and hundreds of memory."""
    monkeypatch.setattr(entries, "MOST_ROWS", 10)
    assert "more than 10 rows" in refusal({**PLAIN, "sites": {"counts": [11], "columns": {}}})


def _places(value: Any, holder: Any = None, at: Any = None) -> Iterator[tuple[Any, Any]]:
    """Every place in the value, as what holds it and under which key."""
    if holder is not None:
        yield holder, at
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, found in inner:
        yield from _places(found, value, key)


@given(st.data())
def test_changed_in_any_place(data: st.DataObject) -> None:
    """What comes out is refused in one line, or is a snapshot."""
    changed = copy.deepcopy(PLAIN)
    holder, at = data.draw(st.sampled_from(list(_places(changed))))
    if data.draw(st.booleans()):
        holder[at] = data.draw(values)
    else:
        del holder[at]
    try:
        found = from_columns(json.dumps(changed).encode(), "somewhere")
    except InputError as error:
        assert error.where.startswith("somewhere")
    else:
        assert isinstance(found, Snapshot)
