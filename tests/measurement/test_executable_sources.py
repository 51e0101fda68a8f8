"""The IR of each executable, divided from the program that the compile of a build left."""

from __future__ import annotations

from pathlib import Path

import pytest
from alone_stage import AloneStage, compile_setup, measured
from ladder_models import EMBEDDING_NORM
from product_model import PRODUCT

from bot.compiler.cell_cache import cell_key
from bot.compiler.importing import Importer
from bot.compiler.program_cache import ProgramCache
from bot.core.snapshot import Cell, Failure
from bot.study.compiling_alone import SOURCES
from bot.study.executable_sources import executables_in
from bot.study.tracing import SideTracer
from bot.system.defaults import default_cache
from bot.system.files import temporary_directory

TARGETS = "llvm-cpu-x86_64, llvm-cpu-riscv64, cuda, vulkan-spirv, vmvx"


def key_of_cell(stage: AloneStage, cell: Cell) -> str:
    """Return the key of a build in the cache."""
    fitting = (build for build in stage.plan.cells if build.key == cell.key)
    return cell_key(stage.plan.compiler.info.digest, next(fitting))


@pytest.mark.compiler
@pytest.mark.slow
@pytest.mark.parametrize("release", ["3.10.0", "3.11.0", "3.13.0"])
def test_a_divided_program_has_the_text_that_the_compiler_writes(
    tmp_path: Path, release: str
) -> None:
    """The norm exceeds the stack limit, so its program is of the compile without one."""
    programs = ProgramCache(default_cache())
    statuses = set[str]()
    for name, model in (("product", PRODUCT), ("norm", EMBEDDING_NORM)):
        stage = measured(tmp_path / name, release, model, TARGETS)
        with compile_setup(release) as setup:
            for cell in stage.side.cells:
                if not cell.measured:
                    continue
                statuses.add(cell.status)
                program = programs.load(key_of_cell(stage, cell))
                assert program is not None
                with temporary_directory("divided-", tmp_path) as out:
                    paths = executables_in(setup, program, out)
                    assert isinstance(paths, dict), paths
                    divided = {
                        executable: path.read_text(encoding="utf-8")
                        for executable, path in paths.items()
                    }
                assert divided == stage.texts(setup, cell, SOURCES)
                assert divided
    assert "over-stack-limit" in statuses


@pytest.mark.compiler
@pytest.mark.slow
def test_the_model_is_compiled_again_only_where_no_program_is_left(
    tmp_path: Path,
) -> None:
    stage = measured(tmp_path, "3.13.0", PRODUCT, "llvm-cpu-x86_64")
    (cell,) = stage.side.cells
    (row,) = cell.dispatches
    key = key_of_cell(stage, cell)
    program = ProgramCache(default_cache()).load(key)
    assert program is not None
    without_program = ProgramCache(tmp_path / "left")
    without_program.keep(key, program)
    torn = ProgramCache(tmp_path / "torn")
    torn.keep(key, b"no MLIR")
    sources = list[str | Failure]()
    compiled_models = list[list[str]]()
    for programs in (without_program, torn, ProgramCache(tmp_path / "empty")):
        with compile_setup("3.13.0") as setup:
            importer = Importer(setup.toolchain, setup.session)
            tracer = SideTracer(stage.plan, setup, importer, programs)
            sources.append(tracer.ladder_side(cell, row).source)
            compiled_models.append(list(setup.session.meter.cpu_ms))
    assert compiled_models == [[], ["m"], ["m"]]
    assert isinstance(sources[0], str)
    assert sources == [sources[0]] * 3


def test_a_torn_program_is_absent_and_a_build_without_a_key_keeps_none(
    tmp_path: Path,
) -> None:
    programs = ProgramCache(tmp_path)
    programs.keep("a1", b"module {}")
    assert programs.load("a1") == b"module {}"
    (path,) = (entry for entry in tmp_path.rglob("*") if entry.is_file())
    path.write_bytes(path.read_bytes()[:-3])
    assert programs.load("a1") is None
    programs.keep("", b"module {}")
    assert programs.load("") is None
    ProgramCache(tmp_path, keeps=False).keep("b2", b"module {}")
    assert programs.load("b2") is None
