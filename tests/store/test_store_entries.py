"""bot.store.entries: names, sizes, columns and damage of stored snapshots."""

from __future__ import annotations

import copy
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from everyday import measured
from hypothesis import given
from hypothesis import strategies as st
from json_texts import to_json
from replacing import replace
from report_factory import snapshot
from strategies import snapshots

from bot.core.baseline import Entry, kept
from bot.core.snapshot import Snapshot
from bot.errors import InputError, OutputError, UsageError
from bot.store.entries import DirectoryStore, entry_of, from_columns, pack, path_of, to_columns, unpack

ENTRY = Entry("default", "ab" * 20, "c" * 64)
PATH = f"snapshots/default/ab/{'ab' * 20}.{'c' * 64}.json.xz"
LARGE = measured()
PACKED = pack(snapshot("3.13.0", models=("gpt2_f32_dyn",)))


def test_names() -> None:
    assert path_of(ENTRY) == PATH and entry_of(PATH) == ENTRY
    foreign = "README.md", PATH + "x", PATH.replace("/ab/", "/ac/"), PATH.replace("default", ".."), "", "x/" + PATH
    assert not any(map(entry_of, foreign))
    for report_id in ("", "..", "a/b", "a--b", "-a", "a\n", "ä", "a" * 65):
        with pytest.raises(UsageError, match="report_id"):
            path_of(Entry(report_id, ENTRY.sha, ENTRY.digest))


@given(snapshots())
def test_there_and_back(found: Snapshot) -> None:
    assert unpack(pack(found), "x") == kept(found)


@given(snapshots())
def test_what_is_kept_is_all_but_arguments_and_what_varies(found: Snapshot) -> None:
    """To the letter of its JSON; and keeping twice is keeping once."""
    plain, small = json.loads(to_json(found)), json.loads(to_json(kept(found)))
    names = {cell["program"]: less["program"] for cell, less in zip(plain["cells"], small["cells"], strict=True)}
    for cell in plain["cells"]:
        cell["program"] = names[cell["program"]]
        cell["families"] = [{**family, "varying": []} for family in cell["families"]]
    for name, program in plain["programs"].items():
        assert small["programs"][names[name]] == {**program, "arguments": []}
    assert {**plain, "programs": {}} == {**small, "programs": {}}
    assert kept(kept(found)) == kept(found)


def test_cells_share_what_is_kept_of_their_program() -> None:
    assert len({id(cell.program) for cell in kept(LARGE).cells}) == 4
    assert len({id(cell.program) for cell in unpack(pack(LARGE), "x").cells}) == 4


def test_the_cells_of_the_quick_suite_stay_small() -> None:
    """As rows, not columns, they take 37 KB."""
    packed = pack(LARGE)
    assert len(LARGE.cells) == 29 and sum(len(cell.dispatches) for cell in LARGE.cells) == 822
    assert all(cell.program and cell.families and cell.phases_ms for cell in LARGE.cells)
    assert all(row.code and row.strategy for cell in LARGE.cells for row in cell.dispatches)
    assert 29_000 < len(packed) < 32_000
    assert packed == pack(LARGE)


@given(st.integers(0, len(PACKED) - 1))
def test_torn(at: int) -> None:
    with pytest.raises(InputError, match="somewhere"):
        unpack(PACKED[:at], "somewhere")


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255))
def test_a_changed_byte(at: int, change: int) -> None:
    data = bytearray(PACKED)
    data[at] ^= change
    with pytest.raises(InputError):
        unpack(bytes(data), "x")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (lzma.compress(bytes(65 << 20), preset=0), "64 MiB"),
        (PACKED + PACKED, "after its end"),
        (lzma.compress(b"\xff"), "not JSON"),
        (lzma.compress(b'{"schema":"\xff"}'), "no text"),
        (lzma.compress(b"{}"), "schema is missing"),
        (lzma.compress(to_json(snapshot("3.13.0")).encode()), "'code-size-snapshot/1'.*measure it again"),
        (lzma.compress(b'{"schema":"\\ud800, and so on"}'), "not JSON"),
        (lzma.compress(b"[" * 1_000_000), "got `array`"),
        (lzma.compress(b"{"), "not JSON, or was cut off"),
        (lzma.compress(b"{}", format=lzma.FORMAT_ALONE), "no xz file"),
    ],
)
def test_what_is_no_snapshot(data: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        unpack(data, "x")


# A directory


def test_a_directory(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "new")
    assert store.entries() == []
    assert store.save(ENTRY, LARGE)
    assert not store.save(ENTRY, snapshot("1"))
    (store.root / "snapshots" / "default" / "ab" / "x.json.xz").write_text("foreign")
    assert store.entries() == [ENTRY]
    assert store.load(ENTRY) == kept(LARGE)
    assert not list(store.root.rglob(".part-*"))
    with pytest.raises(InputError, match="No such file"):
        DirectoryStore(tmp_path).load(ENTRY)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        DirectoryStore(tmp_path / "file").save(ENTRY, LARGE)


# Its rows as columns: whatever else comes is refused in one line, or is a snapshot

PLAIN: dict[str, Any] = json.loads(to_columns(replace(LARGE, cells=LARGE.cells[:2])))
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


def test_equal_fields_stand_side_by_side() -> None:
    rows = [row for cell in LARGE.cells[:2] for row in cell.dispatches]
    table = PLAIN["dispatches"]
    assert table["counts"] == [len(cell.dispatches) for cell in LARGE.cells[:2]]
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
        ({"schema": "code-size-columns/2"}, "'code-size-columns/2', not 'code-size-columns/3' (measure it again"),
        ({"schema": "code-size-snapshot/1"}, "'code-size-snapshot/1', not"),
        ({"schema": None}, "is not a stored snapshot: schema: expected `str`"),
    ],
)
def test_what_is_no_stored_snapshot(change: dict[str, Any], why: str) -> None:
    assert why in refusal({**PLAIN, **change})
    for deep in ("null", "1", "[" * 100_000, '{"schema":' + "[" * 100_000, '{"sites":' * 100_000):
        with pytest.raises(InputError):
            from_columns(deep.encode(), "somewhere")


def test_rows_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is a few bytes of text, and hundreds of memory."""
    monkeypatch.setattr("bot.store.entries.MOST_ROWS", 10)
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
