"""bot.compiler.iree: the options that a compiler does not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_compiler import ROCM, VMVX, X86, install

from bot.compiler.iree import MEASURING_OPTIONS, known_measuring_options, unknown_option_of
from bot.core.planned import COMMON_FLAGS
from bot.errors import CompilerUnavailable, Interrupted
from bot.system.processes import Cancel


def test_an_option_that_is_not_known(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--iree-rocm-target"])
    for target, unknown in ((X86, None), (ROCM, "--iree-rocm-target"), (VMVX, None)):
        assert unknown_option_of(fake.toolchain, (*COMMON_FLAGS, *target.argv), tmp_path, Cancel()) == unknown
    assert len(fake.calls("options")) == 3


@pytest.mark.parametrize("action", ["fail", "crash", "nothing"])
def test_no_answer_names_no_option(tmp_path: Path, action: str) -> None:
    fake = install(tmp_path / "fake", [{"do": action}])
    assert unknown_option_of(fake.toolchain, VMVX.argv, tmp_path, Cancel()) is None


def test_all_options_are_known(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake")
    assert known_measuring_options(fake.toolchain, tmp_path, Cancel()) == MEASURING_OPTIONS
    assert len(fake.calls()) == 1


def test_options_that_are_not_known_are_dropped_one_by_one(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--stack-usage-file", "--mlir-disable-threading"])
    known = known_measuring_options(fake.toolchain, tmp_path, Cancel())
    gone = ("--stack-usage-file=stack-usage.txt", "--mlir-disable-threading")
    assert known == tuple(option for option in MEASURING_OPTIONS if option not in gone)
    assert len(known) == len(MEASURING_OPTIONS) - 2
    assert len(fake.calls()) == 3


def test_one_dropped_option_does_not_take_another_along(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--iree-scheduling-dump-statistics-format"])
    known = known_measuring_options(fake.toolchain, tmp_path, Cancel())
    assert "--iree-scheduling-dump-statistics-file=statistics.json" in known
    assert len(known) == len(MEASURING_OPTIONS) - 1


@pytest.mark.parametrize(("action", "said"), [("fail", "error: use of undeclared SSA value"), ("crash", "Stack dump")])
def test_a_compiler_that_cannot_even_do_that(tmp_path: Path, action: str, said: str) -> None:
    fake = install(tmp_path / "fake", [{"do": action}])
    with pytest.raises(CompilerUnavailable, match=f"3.13.0rc1: cannot compile a trivial module: .*{said}"):
        known_measuring_options(fake.toolchain, tmp_path, Cancel())


def test_a_compiler_that_complains_of_an_option_it_was_not_given(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--compile-to"])
    with pytest.raises(CompilerUnavailable, match="Unknown command line argument '--compile-to=input'"):
        known_measuring_options(fake.toolchain, tmp_path, Cancel())


def test_questions_can_be_cancelled(tmp_path: Path) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Interrupted):
        known_measuring_options(install(tmp_path / "fake").toolchain, tmp_path, cancel)
