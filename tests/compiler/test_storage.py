"""bot.compiler.storage and bot.study.cache_limit: what leaves the cache, and what stays."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.compiler import storage
from bot.compiler.cell_cache import CellCache, TextStore, digest_of
from bot.compiler.storage import COMPLETE, entries, evict, filled, hold
from bot.config.units import parse_size
from bot.core.snapshot import Cell
from bot.errors import UsageError
from bot.study.cache_limit import limit_of_environment, limited

LONG_AGO = 10**9
CELL = Cell("bert", "vmvx", "ok", metrics={"artifact_bytes": 1})


def aged(path: Path, seconds: int) -> Path:
    os.utime(path, ns=(seconds * LONG_AGO, seconds * LONG_AGO))
    return path


def file(root: Path, name: str, seconds: int, size: int = 100) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return aged(path, seconds)


def compiler(root: Path, name: str, seconds: int, size: int = 1000) -> Path:
    home = root / "toolchains" / name
    file(home, "iree/compiler/lib.so", 1, size)
    file(home, COMPLETE, seconds, 0)
    return home


def left_in(root: Path) -> set[str]:
    return {entry.path.relative_to(root).as_posix() for entry in entries(root)}


def test_the_longest_unused_leaves_first_whatever_it_is(tmp_path: Path) -> None:
    compiler(tmp_path, "old", 2)
    compiler(tmp_path, "new", 5)
    for number, name in enumerate(
        ("cells/aa/a.json", "ir/bb/b.mlir", "ir/c", "history/d", "digests/e"), 1
    ):
        file(tmp_path, name, number)
    assert len(left_in(tmp_path)) == 7
    gone, left_bytes = evict(tmp_path, 1300)
    assert [entry.path.name for entry in gone] == ["a.json", "b.mlir", "old"]
    assert left_bytes == 1300 and left_in(tmp_path) == {
        "ir/c",
        "history/d",
        "digests/e",
        "toolchains/new",
    }
    assert evict(tmp_path, 1300) == ([], 1300)
    assert not (tmp_path / "toolchains" / "old").exists()


def test_every_use_counts(tmp_path: Path) -> None:
    cells = CellCache(tmp_path)
    texts = TextStore(tmp_path)
    for name in ("one", "two"):
        cells.store(digest_of(name), CELL)
        texts.keep(digest_of(name)[:16], "text")
    texts.keep(digest_of("three")[:16], "text")
    for entry in entries(tmp_path):
        aged(entry.path, 1)
    assert (
        cells.load(digest_of("one")) == CELL
        and texts.load(digest_of("one")[:16]) == "text"
    )
    texts.keep(digest_of("three")[:16], "text")
    evict(tmp_path, 0, since_ns=2 * LONG_AGO)
    assert (
        cells.load(digest_of("one")) == CELL
        and texts.load(digest_of("one")[:16]) == "text"
    )
    assert texts.load(digest_of("three")[:16]) == "text"
    assert (
        cells.load(digest_of("two")) is None
        and texts.load(digest_of("two")[:16]) is None
    )


def test_what_a_run_used_stays_and_the_rest_leaves_when_it_ends(tmp_path: Path) -> None:
    messages: list[str] = []
    cells = CellCache(tmp_path)
    cells.store(digest_of("old"), CELL)
    aged(entries(tmp_path)[0].path, 1)
    with limited(tmp_path, 1, messages.append):
        cells.store(digest_of("new"), CELL)
    assert cells.load(digest_of("new")) == CELL and cells.load(digest_of("old")) is None
    first, second = messages
    assert first.startswith(
        "the cache was above its limit of 1 B: removed 1 entry of "
    ) and first.endswith(", unused for the longest time")
    assert second.endswith(
        " B, above its limit of 1 B: all remaining entries were used within a day, or cannot be removed"
    )


def test_a_run_that_fails_lets_nothing_go(tmp_path: Path) -> None:
    file(tmp_path, "cells/aa/a", 1)
    with pytest.raises(UsageError), limited(tmp_path, 0, print):
        raise UsageError("no")
    assert left_in(tmp_path) == {"cells/aa/a"}


@pytest.mark.parametrize("watched", ["toolchains/1", "cells"])
def test_of_two_runs_at_once_neither_fails_nor_lets_go_of_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: str
) -> None:
    """The other one does all of it when this one has looked at that place."""
    walk = storage._files
    waiting = [tmp_path / watched]

    def walked(folder: Path) -> Iterator[storage.CacheEntry]:
        yield from walk(folder)
        if folder in waiting:
            waiting.clear()
            assert len(evict(tmp_path, 2200)[0]) == 4

    monkeypatch.setattr(storage, "_files", walked)
    for number in range(1, 5):
        compiler(tmp_path, str(number), number)
        file(tmp_path, f"cells/{number}", number)
    assert evict(tmp_path, 2200) == ([], 2200)
    assert left_in(tmp_path) == {"toolchains/3", "toolchains/4", "cells/3", "cells/4"}


def test_what_is_no_cache_stays(tmp_path: Path) -> None:
    for name in ("baselines/a.json", "elsewhere/b", "c"):
        file(tmp_path / "cache", name, 1)
    compiler(tmp_path / "other", "linked", 1)
    (tmp_path / "cache" / "toolchains").symlink_to(tmp_path / "other" / "toolchains")
    evict(tmp_path / "cache", 0)
    assert (
        len([path for path in (tmp_path / "cache").rglob("*") if path.is_file()]) >= 3
    )
    assert hold(tmp_path / "other" / "toolchains" / "linked")


def test_a_compiler_that_is_used_stays_for_a_day_and_one_that_left_is_not_there(
    tmp_path: Path,
) -> None:
    home = compiler(tmp_path, "used", 1)
    assert hold(home) and evict(tmp_path, 0) == ([], 1000)
    aged(home / COMPLETE, int(time.time()) - 25 * 3600)
    assert evict(tmp_path, 0)[1] == 0 and not home.exists() and not hold(home)


def test_only_what_is_left_of_a_compiler_is_removed_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run may have finished it between the look and the removal."""
    home = tmp_path / "toolchains" / "one"
    rmtree = shutil.rmtree
    removed = list[Path]()

    def noted(path: Path, **options: Any) -> None:
        removed.extend([path] if path == home else [])
        rmtree(path, **options)

    monkeypatch.setattr("shutil.rmtree", noted)
    with filled(home) as scratch:
        (scratch / "old").touch()
    assert not removed and hold(home)
    (home / COMPLETE).unlink()
    with filled(home) as scratch:
        (scratch / "new").touch()
    assert removed == [home] and {path.name for path in home.iterdir()} == {
        COMPLETE,
        "new",
    }


def test_what_a_dead_run_was_writing_is_swept(tmp_path: Path) -> None:
    torn = [
        file(tmp_path, "cells/aa/.part-x", 1),
        file(tmp_path, "toolchains/.part-y/iree/lib", 1).parents[1],
    ]
    young = tmp_path / "cells" / "aa" / ".part-young"
    young.touch()
    for path in torn:
        aged(path, 1)
    evict(tmp_path, 10**9)
    assert not any(path.exists() for path in torn) and young.exists()


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"5GiB": 5 << 30, "0B": 0, "1.5KiB": 1536, "200 MiB": 200 << 20}
    assert {text: parse_size(text) for text in limits} == limits
    for text in ("", "5", "5GB", "-1GiB", "5s", "x", "1.0001KiB"):
        with pytest.raises(ValueError, match=r"\S"):
            parse_size(text)
        monkeypatch.setenv("CODE_SIZE_CACHE_LIMIT", text or "none")
        with pytest.raises(UsageError, match=r"^CODE_SIZE_CACHE_LIMIT: "):
            limit_of_environment()
