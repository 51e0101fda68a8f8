"""Options under the names of each release: one configuration, two sides that call an option otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_compiler import ROCM, TARGETS, X86, FakeCompiler, cells_of, install

from bot.compiler.iree import OTHER_NAME, RENAMED, in_its_words, known_names, knows
from bot.core.planned import PlannedCell, Target
from bot.system.processes import Cancel

HIP = Target("rocm", "rocm", ("--iree-hip-target=gfx942",))
OLD, NEW = ([names[at] for names in RENAMED] for at in (0, 1))


def in_words_of(fake: FakeCompiler, home: Path, target: Target, flags: tuple[str, ...] = ()) -> PlannedCell:
    [cell] = in_its_words(fake.toolchain, cells_of(home, ["alpha"], [target], flags), Cancel())
    return cell


def test_every_option_has_one_other_name() -> None:
    assert len(OTHER_NAME) == 2 * len(RENAMED) == len({*OLD, *NEW})
    assert all(OTHER_NAME[OTHER_NAME[name]] == name for name in OTHER_NAME)


def test_flags_get_the_name_that_is_known() -> None:
    flags = ("--iree-rocm-target=gfx942", "--iree-other=1", "--iree-hip-bc-dir")
    assert known_names(flags, lambda flag: "rocm" in flag) == (flags[0], flags[1], "--iree-rocm-bc-dir")
    assert known_names(flags, lambda flag: "hip" in flag) == ("--iree-hip-target=gfx942", flags[1], flags[2])
    assert known_names(flags, lambda _flag: True) == flags
    assert known_names(flags, lambda _flag: False) == flags  # then the compiler says what it does not know


@pytest.mark.parametrize("written", [ROCM, HIP], ids=["new name", "old name"])
@pytest.mark.parametrize(("unknown", "expected"), [(OLD, ROCM), (NEW, HIP)], ids=["new release", "old release"])
def test_either_name_works_on_either_release(
    tmp_path: Path, written: Target, unknown: list[str], expected: Target
) -> None:
    cell = in_words_of(install(tmp_path / "fake", unknown=unknown), tmp_path, written)
    assert cell.target == expected
    assert expected.flags[0] in cell.command().split()


def test_a_release_that_knows_both_keeps_what_is_written(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake")
    assert [in_words_of(fake, tmp_path, target).target for target in (ROCM, HIP)] == [ROCM, HIP]


def test_flags_for_every_cell_are_in_the_same_words(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=OLD)
    cell = in_words_of(fake, tmp_path, X86, ("--iree-hip-waves-per-eu=2", "--iree-opt-level=O2"))
    assert cell.user_flags == ("--iree-rocm-waves-per-eu=2", "--iree-opt-level=O2")


def test_the_compiler_is_asked_once_for_each_name_and_only_where_there_are_two(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=NEW)
    in_words_of(fake, tmp_path, X86)
    assert fake.calls() == []
    in_its_words(fake.toolchain, cells_of(tmp_path, ["alpha", "beta"], TARGETS), Cancel())
    assert [call["kind"] for call in fake.calls()] == ["options"] * 2


def test_a_compiler_that_fails_for_another_reason_is_not_taken_to_lack_an_option(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", [{"do": "crash", "kind": "options"}])
    assert knows(fake.toolchain, ROCM.flags[0], tmp_path, Cancel())
    assert in_words_of(fake, tmp_path, ROCM).target == ROCM
