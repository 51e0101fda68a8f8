"""bot.store.entries and bot.store.entries: names, sizes and damage of stored snapshots."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_texts import to_json
from measured import measured
from report_factory import snapshot
from strategies import snapshots

from bot.core.baseline import Entry, kept
from bot.core.snapshot import Snapshot
from bot.errors import InputError, OutputError, UsageError
from bot.store.entries import DirectoryStore, entry_of, pack, path_of, unpack

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
def test_what_is_kept_is_all_but_arguments_what_varies_and_the_ends_of_digests(found: Snapshot) -> None:
    """To the letter of its JSON; and keeping twice is keeping once."""
    plain, small = json.loads(to_json(found)), json.loads(to_json(kept(found)))
    names = {cell["program"]: less["program"] for cell, less in zip(plain["cells"], small["cells"], strict=True)}
    for cell in plain["cells"]:
        cell["program"] = names[cell["program"]]
        cell["families"] = [{**family, "varying": []} for family in cell["families"]]
        cell["dispatches"] = [_cut(row, code=4) for row in cell["dispatches"]]
    for name, program in plain["programs"].items():
        kept_program = small["programs"][names[name]]
        assert kept_program.pop("whole", "") in ("", _name(program))
        assert kept_program == _cut_program(program)
    assert {**plain, "programs": {}} == {**small, "programs": {}}
    assert kept(kept(found)) == kept(found)


def _cut(row: dict[str, Any], **characters: int) -> dict[str, Any]:
    return row | {name: row[name][:most] for name, most in characters.items() if name in row}


def _cut_program(program: dict[str, Any]) -> dict[str, Any]:
    sources = [_cut(row, source=5, structure=4, bound=4) for row in program["sources"]]
    sources = [{**row, "operations": row["operations"] % 2**32} for row in sources]
    phases = _cut(program["phases"], **dict.fromkeys(program["phases"], 16))
    return {**program, "phases": phases, "sources": sources, "arguments": []}


def _name(program: dict[str, Any]) -> str:
    text = json.dumps({**program, "arguments": []}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_cells_share_what_is_kept_of_their_program() -> None:
    assert len({id(cell.program) for cell in kept(LARGE).cells}) == 13
    assert len({id(cell.program) for cell in unpack(pack(LARGE), "x").cells}) == 13


def test_a_hundred_cells_stay_small() -> None:
    """Of cells with all that real ones have: without columns they take 70 KB."""
    packed = pack(LARGE)
    assert len(LARGE.cells) == 104 and sum(len(cell.dispatches) for cell in LARGE.cells) == 3120
    assert all(cell.program and cell.families and cell.phases_ms for cell in LARGE.cells)
    assert all(row.code and row.strategy for cell in LARGE.cells for row in cell.dispatches)
    assert 45_000 < len(packed) < 58_000
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
        (lzma.compress(b"{"), "ends after 1 byte: truncated"),
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
