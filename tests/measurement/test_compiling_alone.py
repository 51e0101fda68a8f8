"""An executable that a real compiler compiles alone has the code that it has in the artifact, from every phase."""

from __future__ import annotations

from pathlib import Path

import pytest
from alone_stage import compile_setup, measured
from product_model import PRODUCT

from bot.core.snapshot import Failure
from bot.study.compiling_alone import CONFIGURATIONS, SOURCES, compile_from

pytestmark = [pytest.mark.compiler, pytest.mark.slow]

TARGETS = (
    "llvm-cpu-x86_64, llvm-cpu-aarch64, llvm-cpu-riscv64, cuda, rocm, vulkan-spirv,"
    " metal-spirv, vmvx"
)


def test_it_is_the_code_of_the_artifact_on_every_target(tmp_path: Path) -> None:
    stage = measured(tmp_path, "3.13.0", PRODUCT, TARGETS)
    assert len(stage.side.cells) == 8
    with compile_setup("3.13.0") as setup:
        for cell in stage.side.cells:
            (row,) = cell.dispatches
            for phase in (SOURCES, CONFIGURATIONS):
                text = stage.texts(setup, cell, phase)[row.executable]
                code = compile_from(
                    setup,
                    argv=stage.argv(cell),
                    text=text,
                    phase=phase,
                    entry_point=row.name,
                )
                assert not isinstance(code, Failure), (cell.key, phase, code)
                assert (code.code_bytes, code.code) == (row.code_bytes, row.code), (
                    cell.key,
                    phase,
                )
                assert code.code is not None


def test_what_cannot_be_compiled_or_found_has_a_reason(tmp_path: Path) -> None:
    stage = measured(tmp_path, "3.13.0", PRODUCT, "vmvx")
    (cell,) = stage.side.cells
    (row,) = cell.dispatches
    with compile_setup("3.13.0") as setup:
        text = stage.texts(setup, cell, SOURCES)[row.executable]
        argv = stage.argv(cell)
        torn = compile_from(
            setup,
            argv=argv,
            text=text[: len(text) // 2],
            phase=SOURCES,
            entry_point=row.name,
        )
        assert isinstance(torn, Failure)
        assert (torn.stage, "error:" in torn.message) == ("compile", True)
        failure = compile_from(
            setup, argv=argv, text=text, phase=SOURCES, entry_point="another_function"
        )
        assert isinstance(failure, Failure)
        assert (
            failure.message
            == "compiled alone, it has no single function another_function"
        )
        unknown = compile_from(
            setup,
            argv=(*argv, "--no-such-option"),
            text=text,
            phase=SOURCES,
            entry_point=row.name,
        )
        assert isinstance(unknown, Failure)
        assert "--no-such-option" in unknown.message
