"""What ladders make of a target's flags, and of IR that another release spells otherwise."""

from __future__ import annotations

from functools import partial

import pytest

from bot.core.snapshot import Failure
from bot.study.code_generator import linker_flags
from bot.study.foreign_ir import with_fixes


def test_the_linkers_flags_are_those_of_the_build() -> None:
    target = (
        '  hal.executable.variant public @v target(<"llvm-cpu",'
        ' "embedded-elf-riscv_64", {cpu = "generic-rv64", cpu_features = "+m,+v",'
        ' target_abi = "lp64d"}>) {'
    )
    assert linker_flags(target) == (
        "--plugin-opt=mcpu=generic-rv64",
        *("-mllvm", "-mattr=+m,+v"),
        *("-mllvm", "-target-abi=lp64d"),
    )
    assert linker_flags(target.replace("llvm-cpu", "vmvx")) is None
    assert linker_flags("") is None


OLD_MATRIX = (
    '  %0 = "llvm.mlir.constant"() <{value = 0 : i32}> : () -> i32\n'
    '  %4 = "rocdl.mfma.f32.16x16x4f32"(%1, %2, %3, %0, %0, %0)'
    " : (f32, f32, vector<4xf32>, i32, i32, i32) -> vector<4xf32>\n"
)
NEW_MATRIX = (
    '  %0 = "llvm.mlir.constant"() <{value = 0 : i32}> : () -> i32\n'
    '  %4 = "rocdl.mfma.f32.16x16x4f32"(%1, %2, %3)'
    " <{abid = 0 : i32, blgp = 0 : i32, cbsz = 0 : i32}>"
    " : (f32, f32, vector<4xf32>) -> vector<4xf32>\n"
)


def test_only_constants_that_are_zero_are_spelled_otherwise() -> None:
    def newer(text: str) -> str | Failure:
        if "%3, %" in text:
            return Failure("read", "'rocdl.mfma' op expected 3 operands, but found 6")
        return text

    assert with_fixes(newer, OLD_MATRIX) == NEW_MATRIX
    other_constant = OLD_MATRIX.replace("value = 0", "value = 1")
    assert isinstance(with_fixes(newer, other_constant), Failure)
    defined_twice = f"{OLD_MATRIX}  %0 = llvm.other\n"
    assert isinstance(with_fixes(newer, defined_twice), Failure)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("prefetch_shared_memory = true, x = 1", "prefetch_num_stages = 2, x = 1"),
        ("prefetch_shared_memory = false, x = 1", "x = 1"),
    ],
)
def test_the_stages_of_prefetching_are_spelled_as_each_release_reads_them(
    old: str, new: str
) -> None:
    def reads(word: str, text: str) -> str | Failure:
        if word in text:
            return Failure("read", f"unknown struct parameter name: {word}")
        return text

    assert with_fixes(partial(reads, "prefetch_shared_memory"), old) == new
    if "prefetch" in new:
        assert with_fixes(partial(reads, "prefetch_num_stages"), new) == old
    three = "prefetch_num_stages = 3"
    assert isinstance(with_fixes(partial(reads, "prefetch_num_stages"), three), Failure)
