"""bot.store.entries: names, sizes and damage of stored snapshots."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from everyday import measured
from hypothesis import given
from hypothesis import strategies as st
from json_texts import to_json
from report_factory import snapshot
from strategies import snapshots

from bot.core.baseline import Entry, kept
from bot.core.snapshot import Snapshot
from bot.errors import InputError, OutputError, UsageError
from bot.store.directory import DirectoryStore
from bot.store.entries import entry_of, pack, path_of, unpack

ENTRY = Entry("default", "ab" * 20, "c" * 64)
PATH = f"snapshots/default/ab/{'ab' * 20}.{'c' * 64}.json.xz"
LARGE = measured()
PACKED = pack(snapshot("3.13.0", models=("gpt2_f32_dyn",)))


def test_names() -> None:
    assert path_of(ENTRY) == PATH and entry_of(PATH) == ENTRY
    foreign = (
        "README.md",
        PATH + "x",
        PATH.replace("/ab/", "/ac/"),
        PATH.replace("default", ".."),
        "",
        "x/" + PATH,
    )
    assert not any(map(entry_of, foreign))
    for report_id in ("", "..", "a/b", "a--b", "-a", "a\n", "ä", "a" * 65):
        with pytest.raises(UsageError, match="report_id"):
            path_of(Entry(report_id, ENTRY.sha, ENTRY.digest))


@given(snapshots())
def test_there_and_back(drawn_snapshot: Snapshot) -> None:
    assert unpack(pack(drawn_snapshot), "x") == kept(drawn_snapshot)


@given(snapshots())
def test_what_is_kept_is_all_but_what_varies(drawn_snapshot: Snapshot) -> None:
    """To the letter of its JSON; and keeping twice is keeping once."""
    plain = json.loads(to_json(drawn_snapshot))
    small = json.loads(to_json(kept(drawn_snapshot)))
    for cell in plain["cells"]:
        cell["families"] = [{**family, "varying": []} for family in cell["families"]]
    assert plain == small
    assert kept(kept(drawn_snapshot)) == kept(drawn_snapshot)


def test_cells_share_what_is_kept_of_their_program() -> None:
    assert len({id(cell.program) for cell in kept(LARGE).cells}) == 4
    assert len({id(cell.program) for cell in unpack(pack(LARGE), "x").cells}) == 4


def test_the_cells_of_the_quick_suite_stay_small() -> None:
    packed = pack(LARGE)
    assert (
        len(LARGE.cells) == 29
        and sum(len(cell.dispatches) for cell in LARGE.cells) == 822
    )
    assert all(cell.program and cell.families for cell in LARGE.cells)
    assert all(
        row.code and row.strategy for cell in LARGE.cells for row in cell.dispatches
    )
    assert 34_000 < len(packed) < 39_000
    assert packed == pack(LARGE)


@given(st.integers(0, len(PACKED) - 1))
def test_torn(end: int) -> None:
    with pytest.raises(InputError, match="somewhere"):
        unpack(PACKED[:end], "somewhere")


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255))
def test_a_changed_byte(offset: int, change: int) -> None:
    data = bytearray(PACKED)
    data[offset] ^= change
    with pytest.raises(InputError):
        unpack(bytes(data), "x")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lzma.compress(bytes(65 << 20), preset=0), "64 MiB"),
        (PACKED + PACKED, "after its end"),
        (lzma.compress(b"\xff"), "not JSON"),
        (lzma.compress(b'{"schema":"\xff"}'), "not text"),
        (lzma.compress(b"{}"), "schema is missing"),
        (
            lzma.compress(b'{"schema":"code-size-columns/3"}'),
            "'code-size-columns/3'.*measure it again",
        ),
        (lzma.compress(b'{"schema":"\\ud800, and so on"}'), "not JSON"),
        (lzma.compress(b"[" * 1_000_000), "got `array`"),
        (lzma.compress(b"{"), "not JSON, or was cut off"),
        (lzma.compress(b"{}", format=lzma.FORMAT_ALONE), "not a complete xz file"),
    ],
)
def test_what_is_no_snapshot(data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
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
