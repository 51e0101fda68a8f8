"""bot.compiler.iree_options: which options a compiler knows, and under which of their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_compiler import ROCM, TARGETS, VMVX, X86, FakeCompiler, cells_of, install

from bot.compiler.iree import in_its_words
from bot.compiler.iree_options import (
    MEASURING_OPTIONS,
    RENAMED,
    known_measuring_options,
    unknown_option_of,
)
from bot.core.planned import COMMON_FLAGS, PlannedCell, Target
from bot.errors import CompilerUnavailable, Interrupted
from bot.system.cancel import Cancel

HIP = Target("rocm", "rocm", ("--iree-hip-target=gfx942",))
OLD, NEW = (
    [f"{start}{end}" for end in ("target", "waves-per-eu")] for start in RENAMED
)


def in_words_of(
    fake: FakeCompiler, home: Path, target: Target, flags: tuple[str, ...] = ()
) -> PlannedCell:
    [cell] = in_its_words(
        fake.toolchain, cells_of(home, ["alpha"], [target], flags), Cancel()
    )
    return cell


@pytest.mark.parametrize("written", [ROCM, HIP], ids=["new name", "old name"])
@pytest.mark.parametrize(
    ("unknown", "expected"),
    [(OLD, ROCM), (NEW, HIP), ([], None)],
    ids=["new", "old", "both"],
)
def test_either_name_works_on_either_release(
    tmp_path: Path, written: Target, unknown: list[str], expected: Target | None
) -> None:
    fake = install(tmp_path / "fake", unknown=unknown)
    cell = in_words_of(fake, tmp_path, written)
    assert (
        cell.target == (expected or written)
        and cell.target.flags[0] in cell.command().split()
    )
    if unknown == OLD:
        cell = in_words_of(
            fake, tmp_path, X86, ("--iree-hip-waves-per-eu=2", "--iree-opt-level=O2")
        )
        assert cell.user_flags == ("--iree-rocm-waves-per-eu=2", "--iree-opt-level=O2")


def test_the_compiler_is_asked_once_for_each_name_and_only_where_there_are_two(
    tmp_path: Path,
) -> None:
    fake = install(tmp_path / "fake", unknown=NEW)
    in_words_of(fake, tmp_path, X86)
    assert fake.calls() == []
    in_its_words(
        fake.toolchain, cells_of(tmp_path, ["alpha", "beta"], TARGETS), Cancel()
    )
    assert [call["kind"] for call in fake.calls()] == ["options"] * 2


@pytest.mark.parametrize("action", ["fail", "crash", "nothing"])
def test_a_compiler_that_fails_for_another_reason_is_not_taken_to_lack_an_option(
    tmp_path: Path, action: str
) -> None:
    fake = install(tmp_path / "fake", [{"do": action, "kind": "options"}])
    assert unknown_option_of(fake.toolchain, VMVX.argv, tmp_path, Cancel()) is None
    assert in_words_of(fake, tmp_path, ROCM).target == ROCM


def test_an_option_that_is_not_known(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--iree-rocm-target"])
    for target, unknown in ((X86, None), (ROCM, "--iree-rocm-target"), (VMVX, None)):
        assert (
            unknown_option_of(
                fake.toolchain, (*COMMON_FLAGS, *target.argv), tmp_path, Cancel()
            )
            == unknown
        )
    assert len(fake.calls("options")) == 3


@pytest.mark.parametrize(
    "unknown",
    [
        [],
        ["--stack-usage-file", "--mlir-disable-threading"],
        ["--iree-scheduling-dump-statistics-format"],
    ],
)
def test_measuring_options_that_are_not_known_are_dropped_one_by_one(
    tmp_path: Path, unknown: list[str]
) -> None:
    fake = install(tmp_path / "fake", unknown=unknown)
    accepted = known_measuring_options(fake.toolchain, tmp_path, Cancel())
    assert accepted == tuple(
        option
        for option in MEASURING_OPTIONS
        if option.partition("=")[0] not in unknown
    )
    assert (
        len(accepted) == len(MEASURING_OPTIONS) - len(unknown)
        and len(fake.calls()) == len(unknown) + 1
    )


@pytest.mark.parametrize(
    ("action", "unknown", "message"),
    [
        ([{"do": "fail"}], [], "error: use of undeclared SSA value"),
        ([{"do": "crash"}], [], "Stack dump"),
        ([], ["--compile-to"], "Unknown command line argument '--compile-to=input'"),
    ],
)
def test_a_compiler_that_cannot_compile_a_trivial_module(
    tmp_path: Path, action: list[dict[str, str]], unknown: list[str], message: str
) -> None:
    fake = install(tmp_path / "fake", action, unknown=unknown)
    cancel = Cancel()
    with pytest.raises(
        CompilerUnavailable,
        match=f"3.13.0rc1: cannot compile a trivial module: .*{message}",
    ):
        known_measuring_options(fake.toolchain, tmp_path, cancel)
    cancel.set()
    with pytest.raises(Interrupted):
        known_measuring_options(fake.toolchain, tmp_path, cancel)
