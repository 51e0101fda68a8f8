"""The independent judge of causes: what it reads from small recorded texts, and what it makes of two sides."""

from __future__ import annotations

import ast
import struct
from pathlib import Path
from types import ModuleType

import cause_evidence
import cause_reading
import pytest
from cause_evidence import Judged, Side, headline, judge, lines
from cause_reading import Function
from places import FIXTURES

BINARIES = FIXTURES / "binaries"
IR = """\
#config = #iree_cpu.lowering_config<distribution = [64, TILE], vector_common_parallel = [1, 8]>
#map = affine_map<(d0, d1) -> (d0, d1)>
#translation = #iree_codegen.translation_info<pipeline = PIPELINE {enable_loop_peeling}>
module {
  hal.executable private @main$async_dispatch_3 {
      builtin.module {
        func.func @main$async_dispatch_3_matmul_4x8_f32() attributes {translation_info = #translation} {
          %cOFFSET = arith.constant OFFSET : index
          %0 = linalg.fill {lowering_config = #config} ins(%cst : f32) outs(%1 : tensor<4x8xf32>) -> tensor<4x8xf32>
          %2 = linalg.generic {maps = [#map]} attrs = {lowering_config = #iree_gpu.lowering_config<{t = [1]}>} {
            %3 = arith.addf %in, %in : f32
          }
        }
      }
  }
}
"""
METADATA = """\
FlatBuffer: 25496 bytes
  Bytecode: 17040 bytes
  .rodata[  0] embedded        5 bytes `model`
  .rodata[  5] external    20088 bytes (offset 0 / 0h to 4E78h)
  # | Offset   |   Length | Blocks | i32 # | ref # | Requirements | Aliases
----+----------+----------+--------+-------+-------+--------------+---------
  0 | 00000000 |       52 |      1 |     2 |     1 |              | __set_constants
 33 | 00007C00 |      514 |     10 |    38 |     4 | EXT_F32 | 00000008 | main$async_dispatch_28_reduction
"""
VM = """\
    vm.rodata private @names {alignment = 16 : i64} dense<"0x00"> : vector<99xi8>
    vm.rodata private @old {alignment = 16 : i64, mime_type = "application/x-elf"} dense<"0x7F"> : vector<20088xi8>
    vm.rodata private @new <alignment = 16, mime_type = "application/x-flatbuffers"> dense<"0x00"> : vector<12xi8>
"""


def ir(pipeline: str = "CPUDoubleTilingExpert", tile: int = 8, offset: int = 0) -> str:
    return IR.replace("PIPELINE", pipeline).replace("TILE", str(tile)).replace("OFFSET", str(offset))


def read(text: str) -> Function:
    (function,) = cause_reading.functions(text, text)
    return function


def side(artifact: int, executables: int, host: int, **code: tuple[str, str, int]) -> Side:
    """Functions by name: their source, their configuration, their size."""
    functions = [Function(name, frozenset({(one, 1)}), (other,)) for name, (one, other, _) in code.items()]
    return Side(functions, {name: size for name, (_, _, size) in code.items()}, artifact, executables, host)


def cell(cause: str, **waterfall: int) -> dict[str, object]:
    sizes = {"artifact_bytes": {"base": 100, "head": 100 + sum(waterfall.values())}}
    return {"model": "m", "target": "t", "cause": cause, "waterfall": waterfall, "metrics": sizes}


@pytest.mark.parametrize("module", [cause_evidence, cause_reading])
def test_it_shares_nothing_with_the_bot(module: ModuleType) -> None:
    tree = ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")))
    names = {one.module or "" for one in tree if isinstance(one, ast.ImportFrom)}
    assert not any(name.split(".")[0] == "bot" for name in names)


def test_a_function_has_its_settings_with_aliases_resolved() -> None:
    function = read(ir())
    assert function.name == "main_async_dispatch_3_matmul_4x8_f32"
    assert cause_reading.bare(function.name) == "main_async_dispatch_matmul_4x8_f32"
    assert function.settings == (
        "#translation_info<pipeline = DoubleTilingExpert {enable_loop_peeling}>",
        "#lowering_config<distribution = [64, 8], vector_common_parallel = [1, 8]>",
        "#lowering_config<{t = [1]}>",
    )


def test_another_spelling_of_the_pipeline_is_the_same_setting() -> None:
    assert read(ir("#iree_cpu.pipeline<DoubleTilingExpert>")) == read(ir())
    assert cause_reading.plain("#iree_codegen.vmvx_pipeline") == "VMVXDefault"
    assert cause_reading.plain("pipeline = SPIRVBaseVectorize") == cause_reading.plain(
        "pipeline = #iree_gpu.spirv_pipeline<BaseVectorize>"
    )


def test_tiles_are_settings_and_operations_are_source() -> None:
    assert read(ir(tile=16)).settings != read(ir()).settings
    assert read(ir(tile=16, offset=64)).source == read(ir()).source
    assert read(ir().replace("arith.addf", "arith.mulf")).source != read(ir()).source
    assert ("tensor<4x8xf32>", 2) in read(ir()).source


def test_sizes_of_object_files_ptx_and_metal() -> None:
    cpu = cause_reading.elf_code((BINARIES / "dense.llvm-cpu-x86_64.o").read_bytes())
    assert cpu and all(cpu.values())
    assert cpu.keys() == cause_reading.elf_code((BINARIES / "dense.rocm.hsaco").read_bytes()).keys()
    ptx = ".version 7.6\n.visible .entry a(\n)\n{\n\tret;\n}\n\n.visible .entry b(\n)\n{\n\tret;\n\n}\n"
    assert cause_reading.ptx_code(ptx) == {"a": 30, "b": 31}
    assert cause_reading.metal_code("// é\nkernel void k(uint3 id)\n{\n}\n") == {"k": 34}


def test_names_and_decorations_of_spirv_are_no_code() -> None:
    entry = struct.pack("<3I4s4s", 5 << 16 | 15, 5, 1, b"main", b"")
    name, decoration = struct.pack("<2I4s", 3 << 16 | 5, 1, b"x"), struct.pack("<3I", 3 << 16 | 71, 1, 0)
    end = struct.pack("<I", 1 << 16 | 56)
    assert cause_reading.spirv_code(bytes(20) + entry + name + decoration + end) == {"main": 44}


def test_segments_of_an_artifact() -> None:
    assert cause_reading.host_bytes(METADATA) == 17040 + 5 + 20088
    assert cause_reading.vmvx_code(METADATA) == {"main$async_dispatch_28_reduction": 514}
    assert cause_reading.executable_bytes(VM) == 20100


def test_every_byte_gets_a_cause() -> None:
    base = side(
        1000, 500, 300, f_dispatch_0_a=("s", "c", 100), f_dispatch_1_b=("s", "c", 50), g_dispatch_0=("t", "c", 7)
    )
    head = side(
        1500, 900, 310, f_dispatch_0_a=("s", "d", 400), f_dispatch_2_b=("s", "c", 60), h_dispatch_0=("u", "c", 9)
    )
    assert judge(base, head) == {
        "codegen": 10, "container": 88, "formed": 2, "host": 10, "packaging": 90, "strategy": 300
    }  # fmt: skip


def test_a_function_that_is_only_called_otherwise_is_the_same() -> None:
    base, head = side(9, 9, 0, f_dispatch_0_a=("s", "c", 5)), side(12, 12, 0, f_dispatch_4_other=("s", "c", 8))
    assert judge(base, head) == {"codegen": 3}
    changed = side(12, 12, 0, f_dispatch_4_a=("other", "c", 8))
    assert judge(base, changed) == {"formed": 3}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [({"a": -6, "b": 4}, ("a", 0.6)), ({"a": 4, "b": 3, "c": 3}, ("mixed", 0.4)), ({}, ("none", 0.0))],
)
def test_the_headline_is_the_largest_part_or_mixed(parts: dict[str, int], expected: tuple[str, float]) -> None:
    assert headline(parts) == expected


def test_the_table_counts_agreement_and_explains_the_rest() -> None:
    found = [
        Judged(cell("fusion", fusion=10), {"formed": 10}),
        Judged(cell("strategy", strategy=10, host=1), {"codegen": 10, "host": 1}),
        Judged(cell("host", host=2), {}, "OSError: none"),
    ]
    page = list(lines(found))
    assert page[:2] == [
        "3 changed cells; 1 could not be judged. Of the others",
        "1 of 2 have the same headline both ways, 1 the same bytes in every part.",
    ]
    assert "| m | t | +10 B | fusion | 100% | formed | 100% |" in page
    assert "| m | t | +2 B | host | 100% | not judged | n/a |" in page
    assert page[-2] == "- `m` on t: the bot has strategy +10, host +1; the script has codegen +10, host +1"
    assert page[-1] == "- `m` on t was not judged: OSError: none"
