"""On AMD's GPUs a kernel behind another one of its program has the code of the artifact where it has other code alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from alone_stage import AloneStage, compile_setup, measured

from bot.compiler.compiling import CompileSetup
from bot.core.ladder import Ladder, attribution
from bot.core.snapshot import Cell, Dispatch
from bot.study.compiling_alone import (
    CONFIGURATIONS,
    PHASES,
    SOURCES,
    TARGETS,
    AloneCode,
    behind,
    compile_from,
)
from bot.study.foreign_ir import executable_in
from bot.study.ladder import LadderSide, measured_ladder
from bot.study.neighbours import as_in_artifact, neighbours_of

SUM_AND_PRODUCT = """
func.func @main(%a: tensor<256x784xf32>, %b: tensor<256x256xf32>, %s: tensor<784x16xf32>)
    -> (tensor<256x784xf32>, tensor<784xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<784xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<784xf32>) -> tensor<784xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<784x16xf32>) outs(%f : tensor<784xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.addf %x, %acc : f32
    linalg.yield %y : f32
  } -> tensor<784xf32>
  %me = tensor.empty() : tensor<256x784xf32>
  %mf = linalg.fill ins(%zero : f32) outs(%me : tensor<256x784xf32>) -> tensor<256x784xf32>
  %m = linalg.matmul ins(%b, %a : tensor<256x256xf32>, tensor<256x784xf32>)
      outs(%mf : tensor<256x784xf32>) -> tensor<256x784xf32>
  return %m, %sum : tensor<256x784xf32>, tensor<784xf32>
}
"""


def dispatch(name: str, code_bytes: int, workgroup_bytes: int = 0) -> Dispatch:
    return Dispatch(
        executable=name,
        name=f"{name}_main",
        code_bytes=code_bytes,
        workgroup_bytes=workgroup_bytes,
    )


def names_of_neighbours(*others: Dispatch) -> list[str]:
    row = dispatch("meant", 100)
    cell = Cell(model="m", target="rocm", status="ok", dispatches=(row, *others))
    return [other.executable for other in neighbours_of(cell, row)]


def test_the_smallest_kernels_are_neighbours() -> None:
    assert not names_of_neighbours()
    assert names_of_neighbours(dispatch("b", 80), dispatch("a", 80)) == ["a"]
    assert names_of_neighbours(
        dispatch("small", 8),
        dispatch("large", 900, workgroup_bytes=64),
        dispatch("middle", 90, workgroup_bytes=64),
    ) == ["middle", "small"]
    with_memory = dispatch("small", 8, workgroup_bytes=64)
    assert names_of_neighbours(with_memory, dispatch("large", 900)) == ["small"]


def test_another_entry_point_of_the_same_executable_is_no_neighbour() -> None:
    row = dispatch("meant", 100)
    twin = Dispatch(executable="meant", name="other", code_bytes=50)
    cell = Cell(model="m", target="rocm", status="ok", dispatches=(row, twin))
    assert not neighbours_of(cell, row)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("hal.executable @x {\n}\n", "NEIGHBOUR\nhal.executable @x {\n}\n"),
        (
            "module {\n  hal.executable @x {\n    builtin.module {\n    }\n  }\n}\n",
            "module {\nNEIGHBOUR\n\n  hal.executable @x {\n    builtin.module {\n    }\n  }\n}\n",
        ),
        (
            'module attributes {a = {b = 1 : i32}} {\n  "hal.executable"()\n}\n',
            "module attributes {a = {b = 1 : i32}} {\nNEIGHBOUR\n\n"
            '  "hal.executable"()\n}\n',
        ),
        (
            '"builtin.module"() <{a = 1 : i32}> ({\n  "hal.executable"()\n}) : () -> ()\n',
            '"builtin.module"() <{a = 1 : i32}> ({\nNEIGHBOUR\n\n'
            '  "hal.executable"()\n}) : () -> ()\n',
        ),
    ],
)
def test_a_neighbour_stands_first_in_the_module(text: str, joined: str) -> None:
    assert behind("NEIGHBOUR", text) == joined


def test_only_the_executable_of_a_neighbour_is_taken() -> None:
    executable = '  hal.executable private @x {\n    m {a = "}"} {\n    }\n  }\n'
    assert executable_in(executable) == executable
    module = (
        f"module {{\n  util.global private @d = 1 : i32\n{executable}}}\n{{-#\n#-}}\n"
    )
    assert executable_in(module) == executable
    assert executable_in("module {\n}\n") is None
    assert executable_in("hal.executable @x {\n") is None


def sides_of(
    stage: AloneStage, setup: CompileSetup, word: str
) -> tuple[LadderSide, LadderSide]:
    """Return a dispatch as it is compiled alone, and as the ladder compiles it."""
    (cell,) = stage.side.cells
    alone = stage.ladder_side(setup, "rocm", word)
    neighbours = [
        stage.ladder_side(setup, "rocm", row.name)
        for row in neighbours_of(cell, alone.row)
    ]
    return alone, as_in_artifact(alone, neighbours)


def code_by_phase(side: LadderSide) -> dict[str, str | None]:
    """Return phase → the digest of the code that the side's own IR of this phase gives."""
    texts = {
        SOURCES: side.source,
        CONFIGURATIONS: side.configured,
        TARGETS: side.translated,
    }
    codes = {}
    for phase, text in texts.items():
        assert isinstance(text, str), text
        code = compile_from(
            side.setup,
            argv=side.argv,
            text=text,
            phase=phase,
            entry_point=side.row.name,
        )
        assert isinstance(code, AloneCode), code
        codes[phase] = code.code
    return codes


@pytest.mark.compiler
@pytest.mark.slow
def test_a_product_behind_a_sum_has_a_complete_ladder(tmp_path: Path) -> None:
    releases = ("3.12.0", "3.13.0")
    stages = [
        measured(tmp_path / release, release, SUM_AND_PRODUCT, "rocm")
        for release in releases
    ]
    with compile_setup("3.12.0") as base_setup, compile_setup("3.13.0") as head_setup:
        pairs = [
            sides_of(stage, setup, "matmul")
            for stage, setup in zip(stages, (base_setup, head_setup), strict=True)
        ]
        alone = measured_ladder(*(pair[0] for pair in pairs), both_orders=False)
        behind_sum = measured_ladder(*(pair[1] for pair in pairs), both_orders=True)
        for side, in_front in pairs:
            assert not side.has_code_of_artifact
            assert in_front.has_code_of_artifact
            assert set(in_front.setup.neighbour) == set(PHASES)
            assert code_by_phase(in_front) == dict.fromkeys(PHASES, side.row.code)
    assert isinstance(alone, Ladder)
    assert alone.base.why == "compiled alone it has 6,656 B, in the artifact 6,652 B"
    assert isinstance(behind_sum, Ladder)
    assert (behind_sum.base.code_bytes, behind_sum.head.code_bytes) == (6652, 6644)
    assert (behind_sum.base_same, behind_sum.head_same) == (True, True)
    parts = attribution(behind_sum)
    assert parts == {"source": 0, "configuration": 0, "mlir": 0, "back_end": -8}
    assert behind_sum.back is not None


@pytest.mark.compiler
@pytest.mark.slow
def test_who_has_the_code_of_the_artifact_alone_has_no_neighbour(
    tmp_path: Path,
) -> None:
    stage = measured(tmp_path, "3.13.0", SUM_AND_PRODUCT, "rocm")
    with compile_setup("3.13.0") as setup:
        alone, chosen = sides_of(stage, setup, "reduction")
    assert alone.has_code_of_artifact
    assert chosen is alone


@pytest.mark.compiler
@pytest.mark.slow
def test_a_neighbour_that_cannot_be_compiled_is_none(tmp_path: Path) -> None:
    stage = measured(tmp_path, "3.13.0", SUM_AND_PRODUCT, "rocm")
    with compile_setup("3.13.0") as setup:
        alone, chosen = sides_of(stage, setup, "matmul")
        broken = LadderSide(setup, alone.argv, alone.row, "module {")
        assert as_in_artifact(alone, [broken]) is alone
        assert as_in_artifact(alone, []) is alone
    assert chosen is not alone
