"""Files of printed IR in the order in which a compiler wrote them, whatever else it left there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.errors import InputError
from bot.readers.printed_files import printed_files


def test_files_sort_by_their_numbers_and_not_by_their_names(tmp_path: Path) -> None:
    names = ["10_cse.mlir", "9_a/9_1_cse.mlir", "9_a/9_10_b.mlir", "9_a/9_2_c.mlir"]
    ignored = ["notes.txt", "²_cse.mlir", "2_x.mlir/3_y.txt"]
    for name in [*names, *ignored]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    files = printed_files(tmp_path)
    assert [file.numbers for file in files] == [(), (9, 1), (9, 2), (9, 10), (10,)]
    assert files[-1].path == tmp_path / "10_cse.mlir"


def test_folders_that_are_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(102):
        folder = folder / "d"
    folder.mkdir(parents=True)
    with pytest.raises(InputError):
        printed_files(tmp_path)
