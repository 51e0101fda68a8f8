"""bot.store.columns: any snapshot there and back, and no damage that goes unnoticed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import measured
from strategies import snapshots

from bot.core.codec.serial import snapshot_from_plain, snapshot_to_plain
from bot.core.values.snapshot import Snapshot
from bot.errors import InputError
from bot.store import columns
from bot.store.columns import COLUMNS_SCHEMA, from_columns, to_columns

EMPTY = {"schema": COLUMNS_SCHEMA, "snapshot": {}, "cells": [], "names": [], "programs": []}
ROWS: dict[str, Any] = {"shapes": [["a"], []], "shape": [0, 1], "columns": {"a": [1]}}
REAL = to_columns(snapshot_to_plain(measured()))

leaves = st.none() | st.booleans() | st.integers(-2, 1 << 60) | st.floats() | st.text(max_size=3)
names = st.sampled_from(["a", "b", "counts", "shape", ""])
values = st.recursive(leaves, lambda v: st.lists(v, max_size=4) | st.dictionaries(names, v, max_size=3), max_leaves=30)
plains = st.fixed_dictionaries(
    {
        "schema": st.text(max_size=3),
        "cells": st.lists(values | st.dictionaries(names, values, max_size=3), max_size=5),
        "programs": st.dictionaries(names, values, max_size=3),
    }
)


def plain_of(snapshot: Snapshot) -> dict[str, Any]:
    plain = snapshot_to_plain(snapshot)
    return {**plain, "cells": list(plain["cells"])}


def cells(column: Any) -> Any:
    return from_columns({**EMPTY, "cells": column}, "somewhere")["cells"]


def text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True)


@given(plains)
def test_any_values_there_and_back(plain: dict[str, Any]) -> None:
    assert text(from_columns(json.loads(text(to_columns(plain))), "x")) == text(plain)


@given(snapshots())
def test_snapshots_there_and_back(found: Snapshot) -> None:
    plain = plain_of(found)
    assert from_columns(to_columns(snapshot_to_plain(found)), "x") == plain


def test_what_is_alike_stands_together() -> None:
    cell = {"model": "m", "dispatches": [{"name": "a", "sites": 1}, {"name": "b"}], "metrics": {"x": None}}
    found = to_columns({"schema": "s", "cells": iter([cell, {**cell, "dispatches": []}]), "programs": {}})
    assert found["snapshot"] == {"schema": "s"}
    assert found["cells"]["columns"] == {
        "model": ["m", "m"],
        "dispatches": {
            "counts": [2, 0],
            "items": {
                "shapes": [["name", "sites"], ["name"]],
                "shape": [0, 1],
                "columns": {"name": ["a", "b"], "sites": [1]},
            },
        },
        "metrics": {"shapes": [["x"]], "shape": [0, 0], "columns": {"x": [None, None]}},
    }


def test_absent_and_null_are_two_things() -> None:
    column = {"shapes": [["a"], []], "shape": [1, 0, 1], "columns": {"a": [None]}}
    assert cells(column) == [{}, {"a": None}, {}]
    assert cells({"counts": [0, 2], "items": [1, 2]}) == [[], [1, 2]]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (None, "missing"),
        ("text", "another type"),
        ({}, "missing"),
        ({**ROWS, "more": 1}, "unknown field 'more'"),
        ({**ROWS, "shape": [0]}, None),
        ({**ROWS, "shape": [0, 2]}, "no shape"),
        ({**ROWS, "shape": [0, -1]}, "out of range"),
        ({**ROWS, "shape": [0, True]}, "integers"),
        ({**ROWS, "shape": [0, 0]}, "fewer values"),
        ({**ROWS, "shape": [1, 1]}, "more values"),
        ({**ROWS, "shapes": [["b"], []]}, "fewer values"),
        ({**ROWS, "shapes": [["a", "a"], []]}, "twice"),
        ({**ROWS, "shapes": [[1], []]}, "names"),
        ({**ROWS, "shapes": ["a", []]}, "names"),
        ({**ROWS, "columns": []}, "wrong type list"),
        ({**ROWS, "columns": {"a": 1}}, "another type"),
        ({"counts": [1]}, "missing"),
        ({"counts": [1], "items": []}, "1 items, not 0"),
        ({"counts": [0], "items": [1]}, "0 items, not 1"),
        ({"counts": [2, -1], "items": [1]}, "out of range"),
        ({"counts": [1 << 60], "items": [1]}, "out of range"),
        ({"counts": 1, "items": [1]}, "wrong type int"),
        ({"counts": [1], "items": ROWS}, "1 items, not 2"),
    ],
)
def test_columns_that_do_not_agree(column: Any, why: str | None) -> None:
    if why is None:
        assert cells(column) == [{"a": 1}], "a shape that no object has is no harm"
        return
    with pytest.raises(InputError, match=why) as raised:
        cells(column)
    assert raised.value.where == "somewhere"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"names": ["a"]}, "other names"),
        ({"names": ["a", "a"], "programs": [{}, {}]}, "other names"),
        ({"names": [1], "programs": [{}]}, "strings"),
        ({"snapshot": []}, "wrong type list"),
        ({"snapshot": {"cells": []}}, "twice"),
        ({"other": 1}, "unknown field"),
        ({"schema": "code-size-columns/2"}, "code-size-columns/2.*measure it again"),
        ({"schema": "code-size-snapshot/1"}, "code-size-snapshot/1.*measure it again"),
        ({"schema": None}, "schema is missing"),
        ({"schema": ["x"]}, "of type list"),
    ],
)
def test_what_is_no_stored_snapshot(change: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        from_columns({**EMPTY, **change}, "x")


@pytest.mark.parametrize("value", [None, 1, "x", [], {}])
def test_other_values(value: Any) -> None:
    with pytest.raises(InputError, match="schema is"):
        from_columns(value, "x")


def test_nesting_has_an_end() -> None:
    column: Any = []
    for _ in range(500):
        column = {"counts": [], "items": column}
    with pytest.raises(InputError, match="too deep"):
        cells(column)


def test_empty_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty object is two bytes of text and sixty of memory."""
    monkeypatch.setattr(columns, "MOST_ROWS", 100)
    inner = {"shapes": [[]], "shape": [0] * 60, "columns": {}}
    with pytest.raises(InputError, match="more than 100 objects"):
        cells({"counts": [1] * 60, "items": inner})
    assert cells({"counts": [60], "items": inner}) == [[{}] * 60]


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
    changed = copy.deepcopy(SMALL)
    holder, at = data.draw(st.sampled_from(list(_places(changed))))
    if data.draw(st.booleans()):
        holder[at] = data.draw(values)
    else:
        del holder[at]
    try:
        found = snapshot_from_plain(from_columns(changed, "somewhere"), "somewhere")
    except InputError as error:
        assert error.where.startswith("somewhere")
    else:
        assert isinstance(found, Snapshot)


def _first_cells(count: int) -> dict[str, Any]:
    plain = from_columns(REAL, "x")
    used = {cell["program"] for cell in plain["cells"][:count]}
    programs = {name: program for name, program in plain["programs"].items() if name in used}
    return to_columns({**plain, "cells": plain["cells"][:count], "programs": programs})


SMALL = _first_cells(2)
