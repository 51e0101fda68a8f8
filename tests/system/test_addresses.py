"""bot.system.downloads: the same command finds its memory at the same addresses, or at others on purpose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.system.downloads import LAYOUTS, fixed_addresses, placed
from bot.system.processes import Cancel, run

MAPS = [sys.executable, "-IS", "-c", "print(open('/proc/self/maps').read())"]


def libraries(layout: int | None) -> str:
    """Where the C library of a child lies."""
    said = run(MAPS, cancel=Cancel(), layout=layout).output
    return next(line.split("-")[0] for line in said.splitlines() if "libc.so" in line or "libc-" in line)


@pytest.fixture(autouse=True)
def allowed() -> None:
    with fixed_addresses() as fixed:
        if not fixed:
            pytest.skip("the kernel does not allow fixed addresses here")


def test_a_compiler_finds_the_same_addresses_every_time() -> None:
    assert len({libraries(0) for _ in range(4)}) == 1


def test_every_layout_has_addresses_of_its_own_and_repeats_them() -> None:
    found = [{libraries(layout) for _ in range(2)} for layout in range(LAYOUTS)]
    assert all(len(each) == 1 for each in found)
    assert len(set.union(*found)) == LAYOUTS


def test_what_is_no_compiler_is_left_to_chance_and_so_is_whatever_this_thread_starts_later() -> None:
    libraries(0)
    assert len({libraries(None) for _ in range(4)}) > 1


def test_a_layout_changes_nothing_but_where_memory_lies(tmp_path: Path) -> None:
    argv = [sys.executable, "-IS", "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "a b", "*"]
    plain, moved = (run(argv, cancel=Cancel(), layout=layout, cwd=tmp_path) for layout in (0, 1))
    assert (plain.output, plain.exit_code) == (moved.output, moved.exit_code) == ("['a b', '*']\n", 7)
    assert placed(argv, 0) == argv
