"""bot.system.files: a file is written whole or not at all, and one clear line says why not."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest
from small_disk import small_disk

from bot.errors import OutputError
from bot.system.files import write_atomically


def everything_in(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*")}


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old and long")
    with open(path, "rb") as reader:
        write_atomically(path, b"new")
        assert reader.read() == b"old and long"
    assert path.read_bytes() == b"new"


def test_others_may_read_it_and_what_is_in_the_way_stays(tmp_path: Path) -> None:
    write_atomically(tmp_path / "plain", b"mine")
    assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o644
    (tmp_path / "file").mkdir()
    with pytest.raises(
        OutputError, match=r"file: cannot be written: Is a directory \(free some space"
    ):
        write_atomically(tmp_path / "file", b"data")
    with pytest.raises(OutputError, match="cannot be written") as raised:
        write_atomically(tmp_path / "plain" / "deep" / "file", b"data")
    assert raised.value.where == str(tmp_path / "plain" / "deep" / "file")
    with pytest.raises(OutputError, match="File name too long"):
        write_atomically(tmp_path / ("x" * 300), b"data")
    assert (
        everything_in(tmp_path) == {"file", "plain"}
        and (tmp_path / "plain").read_bytes() == b"mine"
    )


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        write_atomically(disk / "file", b"old")
        with pytest.raises(OutputError, match="No space left on device"):
            write_atomically(disk / "file", bytes(1 << 20))
        assert everything_in(disk) == {"file"}
        assert (disk / "file").read_bytes() == b"old"


def write_many(path: Path, letter: bytes) -> None:
    for _ in range(60):
        write_atomically(path, letter * 5000)


def test_writers_at_once_never_show_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"0" * 5000)
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=write_many, args=(path, letter))
        for letter in (b"a", b"b", b"c")
    ]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = path.read_bytes()
        assert len(content) == 5000 and len(set(content)) == 1
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert everything_in(tmp_path) == {"file"}
