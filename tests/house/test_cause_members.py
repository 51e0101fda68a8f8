"""The second judge of root causes: what it reads, that it finds real causes true, and that it finds a lie."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import cause_members
import cause_reading
import everyday
import pytest
from cause_members import State, knob_problem, knob_values, llvm_states, members_of, mlir_states
from cause_reading import Function

from bot.core.report import report_lines

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


def ir(pipeline: str = "CPUDoubleTilingExpert", tile: int = 8, offset: int = 0) -> str:
    return IR.replace("PIPELINE", pipeline).replace("TILE", str(tile)).replace("OFFSET", str(offset))


def read(text: str) -> Function:
    (function,) = cause_reading.functions(text, text)
    return function


@pytest.fixture(scope="module")
def releases() -> dict[str, Any]:
    """The real `report.json` of two releases, with a pass in place of its largest cause without one."""
    report: dict[str, Any] = json.loads(b"".join(report_lines(everyday.report("two_releases"))))
    root = next(one for one in report["root_causes"] if one["cause"] == "codegen")
    root |= {"pass": "cse", "what": "cse: 2 to 3 arith.addi fewer"}
    rows = [row for cell in report["cells"] for row in cell.get("dispatches", ()) if row["cause"] == "codegen"]
    for number, row in enumerate(rows):
        row |= {"pass": "cse", "operations": {"arith.addf": 1, "arith.addi": -2 - number % 2}}
    return report


def test_a_function_has_its_settings_with_aliases_resolved() -> None:
    function = read(ir())
    assert function.name == "main_async_dispatch_3_matmul_4x8_f32"
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


def test_knobs_are_found_in_what_the_compiler_prints_and_in_the_report() -> None:
    told = (
        "DoubleTilingExpert {enable_loop_peeling} | distribution = [64, 8], vector_common_parallel = [1, 8] | {t = [1]}"
    )
    assert knob_values(told) == knob_values(" | ".join(read(ir()).settings))
    assert knob_values(told) == {
        "pipeline": ["DoubleTilingExpert"],
        "enable_loop_peeling": ["set"],
        "distribution": ["[64, 8]"],
        "vector_common_parallel": ["[1, 8]"],
        "t": ["[1]"],
    }
    assert knob_values("A | x = [[1], [0, 1]], y = -2 | x = [3]") == {
        "pipeline": ["A"], "x": ["[[1], [0, 1]]", "[3]"], "y": ["-2"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "base", "head"),
    [
        ("x 1 → 8", "A | x = [1, 0]", "A | x = [8, 0]"),
        ("x 1 → 8 and 2 → 4, with y", "A | x = [1, 2], y = 1", "A | x = [8, 4], y = 2"),
        ("x not set → 3", "A", "A | x = 3"),
        ("x [1]; [2] → [1, 1]; [2, 2]", "A | x = [1] | x = [2]", "A | x = [1, 1] | x = [2, 2]"),
        ("x [0, 8] in 1 configuration more", "A | x = [0, 8]", "A | x = [0, 8] | x = [0, 8]"),
        ("pipeline A → B", "A | x = 1", "B | x = 1"),
        ("flag not set → set", "A", "A {flag}"),
    ],
)
def test_the_words_of_a_knob_are_true_of_just_their_change(words: str, base: str, head: str) -> None:
    assert knob_problem(words, base, head) == ""
    assert knob_problem(words, head, base)
    assert knob_problem(words, base, base)
    assert knob_problem(words.replace("x ", "z ").replace("pipeline", "z").replace("flag", "z"), base, head)
    assert knob_problem(f"{words}{' and' if ', with' not in words else ','} another", base, head)


def test_every_member_of_a_real_report_is_true(releases: dict[str, Any]) -> None:
    checked = members_of(releases)
    assert len(checked) > 10
    assert [one.false for one in checked] == [[]] * len(checked)
    assert [one.true for one in checked] == [one.root["bytes"]["deltas"] for one in checked]
    assert [len(one.members) for one in checked] == [one.root["dispatches"] for one in checked]


@pytest.mark.parametrize(
    ("cause", "told", "lie"),
    [
        ("strategy", "1 → 8", "1 → 16"),
        ("strategy", "vector_common_parallel", "distribution"),
        ("strategy", ", with distribution", ", with interchange"),
        ("codegen", "2 to 3", "3 to 4"),
        ("codegen", "fewer", "more"),
        ("codegen", "arith.addi", "arith.addf"),
        ("codegen", "cse:", "canonicalize:"),
    ],
)
def test_a_false_cause_is_found(releases: dict[str, Any], cause: str, told: str, lie: str) -> None:
    false = copy.deepcopy(releases)
    root = next(one for one in false["root_causes"] if one["cause"] == cause and told in one["what"])
    root["what"] = root["what"].replace(told, lie)
    checked = next(one for one in members_of(false) if one.root is root)
    assert checked.false


def test_a_member_too_much_or_a_byte_too_few_is_found(releases: dict[str, Any]) -> None:
    for name in ("deltas", "net", "absolute"):
        false = copy.deepcopy(releases)
        root = next(one for one in false["root_causes"] if one["cause"] == "strategy")
        next(iter(root["by_target"].values()))[name] += 1
        assert sum(len(one.false) for one in members_of(false)) == 1


# Passes


def dump(name: str, *operations: str) -> str:
    body = "\n".join(f"    {one}" for one in operations)
    return f"// -----// IR Dump After X: {name} //----- //\n  func.func @f() {{\n{body}\n    return\n  }}\n"


def states(text: str) -> list[State]:
    return list(mlir_states(text.splitlines(), "f"))


ADD, MUL = "%1 = arith.addi %0, %0 : index", "%1 = arith.mulf %0, %0 : vector<8xf32>"


def test_operations_are_counted_with_their_types() -> None:
    text = dump("cse", ADD, MUL, MUL, "memref.assume_alignment %0, 64 : memref<f32>").replace("X: cse", "X (cse)")
    assert states(text + "func.func @g() {\n}\n") == [
        ("cse", Counter({"arith.mulf vector<8xf32": 2, "arith.addi index": 1}))
    ]
    machine = (
        "# *** IR Dump Before Greedy Register Allocator (greedy) ***:\n# Machine code for function f: NoPHIs\n"
        "bb.0:\n16B\t  %1:gpr = nsw ADDI $x0, 1\n32B\t  renamable $v8 = PseudoVLE32 %1\n"
        "# End machine code for function f.\n"
        "; *** IR Dump After VectorCombinePass on f ***\ndefine void @f(ptr %0) {\n  %1 = load <4 x float>, ptr %0\n}\n"
    )
    assert list(llvm_states(machine.splitlines(), "f")) == [
        ("Before", "greedy", Counter({"ADDI": 1, "PseudoVLE32": 1})),
        ("After", "VectorCombinePass", Counter({"load <4 x float>": 1})),
    ]


@pytest.mark.parametrize(
    ("name", "operations", "problem"),
    [
        ("lower", {"arith.addi": -2}, ""),
        ("lower", {"arith.addi": -1}, "differs by"),
        ("lower", {"arith.mulf": -2}, "differs by"),
        ("cse", {"arith.addi": -2}, "2 operations are apart before it, 2 after it"),
        ("first", {"arith.addi": -2}, "differs by"),
    ],
)
def test_a_pass_is_true_where_the_sides_part(name: str, operations: dict[str, int], problem: str) -> None:
    base = states(dump("first", MUL) + dump("lower", MUL, ADD, ADD, ADD) + dump("cse", MUL, ADD, ADD, ADD, ADD))
    head = states(dump("first", MUL) + dump("codegen-lower", MUL, ADD) + dump("cse", MUL, ADD, ADD))
    told = cause_members._mlir_problem({"base": base, "head": head}, name, operations)
    assert (problem in told) if problem else not told
