"""bot.core.codec.serial_text: cell by cell or at once, the value is the same, and what is refused stays so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from strategies import plain_snapshot, snapshots

from bot.core.codec.serial import from_json, from_lines, to_json
from bot.core.codec.serial_text import parsed
from bot.core.values.snapshot import Dispatch, Snapshot
from bot.errors import InputError

ROW: dict[str, Any] = {"executable": "e", "name": "e_matmul", "kind": "matmul", "sites": 1, "code_bytes": 5}
TWO = plain_snapshot(("a", "vmvx", "ok"), ("b", "vmvx", "ok"))
SMALL = replace(TWO, cells=tuple(replace(cell, dispatches=(Dispatch(**ROW),)) for cell in TWO.cells))
LINES = to_json(SMALL).splitlines(keepends=True)


def snapshot_with(row: dict[str, Any]) -> str:
    """The text of a snapshot whose second cell has another dispatch."""
    plain = json.loads(to_json(SMALL))
    plain["cells"][1]["dispatches"] = [row]
    return json.dumps(plain, sort_keys=True)


@given(snapshots())
def test_cell_by_cell_gives_what_the_whole_text_gives(snapshot: Snapshot) -> None:
    text = to_json(snapshot)
    at_once = json.dumps(json.loads(text))
    assert from_json(text) == from_json(at_once) == from_lines(iter([text]), "whole") == snapshot


def test_equal_dispatches_are_one() -> None:
    other = replace(SMALL, notes=("another side",))
    left, right = from_json(to_json(SMALL)), from_json(to_json(other))
    assert left.cells[0].dispatches[0] is left.cells[1].dispatches[0] is right.cells[1].dispatches[0]


@pytest.mark.parametrize("name", ['"dispatches":', ',"donor":', '"dispatches":[],"donor":', "],", '"'])
def test_text_that_looks_like_a_field_is_none(name: str) -> None:
    cells = tuple(replace(cell, command=name, reasons={name: name}) for cell in SMALL.cells)
    odd = replace(SMALL, cells=tuple(replace(c, dispatches=(Dispatch(name, name, name),)) for c in cells))
    assert from_json(to_json(odd)) == odd


@pytest.mark.parametrize("rows", ["[] []", "[]]", "[", "", "0", '[{"dispatches":0}]', '[],"dispatches":0'])
def test_odd_rows_are_refused_or_what_json_says(rows: str) -> None:
    start = LINES[2].index('"dispatches":') + len('"dispatches":')
    line = LINES[2][:start] + rows + LINES[2][LINES[2].index(',"donor":') :]
    with pytest.raises(InputError):
        from_lines([*LINES[:2], line, *LINES[3:]], "odd")


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("sites", True, "has the wrong type bool"),
        ("sites", 1.0, "has the wrong type float"),
        ("code_bytes", 1 << 60, "is out of range"),
        ("code_bytes", -1, "is out of range"),
        ("kind", 7, "has the wrong type int"),
        ("unheard", 1, "unknown field"),
        ("kind", ["matmul"], "has the wrong type list"),
    ],
)
def test_a_dispatch_is_checked_though_an_equal_or_alike_one_was_read(field: str, value: Any, complaint: str) -> None:
    from_json(snapshot_with(ROW))
    with pytest.raises(InputError, match=complaint):
        from_json(snapshot_with({**ROW, field: value}))


def test_only_line_feeds_end_a_line() -> None:
    named = replace(SMALL, notes=("a\u2028b\x85c\u2029",), flags=("\r\n\x0b\x0c",))
    assert from_json(to_json(named)) == named


def test_half_a_character_in_a_cell_is_refused() -> None:
    torn = [line.replace('"command":"', r'"command":"\ud83d') for line in LINES]
    assert torn != LINES
    with pytest.raises(InputError, match="is no JSON"):
        from_lines(torn, "torn")
    whole = [line.replace('"command":"', r'"command":"\ud83d\ude00') for line in LINES]
    assert from_lines(whole, "whole").cells[0].command.startswith("😀")


@pytest.mark.parametrize("cut", range(1, len(LINES)))
def test_a_lost_line_is_refused_or_lost(cut: int) -> None:
    lines = LINES[: cut - 1] + LINES[cut:]
    try:
        found = from_lines(lines, "cut")
    except InputError:
        return
    assert found == from_json(json.dumps(json.loads("".join(lines))))


@pytest.mark.parametrize(
    "lines",
    [
        [*LINES[:2], "0,\n", *LINES[2:]],
        [*LINES[:2], "false,\n", *LINES[2:]],
        ['{"notes":{\n', ',"cells":[\n', *LINES[2:]],
        ['[{"cells":[\n', *LINES[2:]],
        [*LINES[:-1], ',"cells":[]\n', "}\n"],
        [*LINES[:-1], ',"cells":3\n', "}\n"],
        ['{"a":"\n', *LINES],
    ],
)
def test_lines_that_only_look_like_cells_are_refused(lines: list[str]) -> None:
    with pytest.raises(InputError):
        from_lines(lines, "odd")


def test_what_the_lines_raise_is_the_callers() -> None:
    with pytest.raises(UnicodeDecodeError):
        from_lines((line.decode() for line in [b"{", b"\xff"]), "bytes")


def test_any_json_is_a_value() -> None:
    assert parsed(["[1,\n", "null]"]) == [1, None]
