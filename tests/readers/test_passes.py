"""What a function consists of after each pass, read from texts as compilers print them."""

from __future__ import annotations

import pytest

from bot.core.trace import LLVM, MACHINE, MLIR, DispatchTrace
from bot.readers.passes import PassReader

FUNCTION = """func.func @f(%arg0: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %arg0[%c0] : memref<4xf32>, vector<4xf32>
  %1:2 = scf.if %c -> (vector<4xf32>, index) {
    %2 = "custom.op"(%0) : (vector<4xf32>) -> vector<4xf32>
  }
  return
}

"""
OTHER = FUNCTION.replace("@f(", "@other(")
INSTRUCTIONS = """# Machine code for function f: NoPHIs
bb.0 (%ir-block.3):
  successors: %bb.1
  liveins: $x1
  %103:gpr64common = COPY $x2
  renamable $x0 = nofpexcept FADDSrr %1, %2
48B\t  dead early-clobber %7:vr = VLE32_V %4:gpr
  frame-setup STPXi $fp, $lr, $sp, 2
  IMPLICIT_DEF
# End machine code for function f.

"""
LLVM_IR = """define internal i32 @"f"(ptr noalias %0) #0 {
  %4 = load <8 x float>, ptr %1, align 8
  call void @llvm.assume(i1 true) [ "align"(ptr %6, i64 64) ]
  %5 = tail call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %4)
  br label %6
}
"""


def read(text: str, size: int = 1 << 16) -> DispatchTrace:
    reader = PassReader("f")
    data = text.encode()
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    reader.feed(b"")
    return DispatchTrace(tuple(reader.steps))


@pytest.mark.parametrize(
    "header",
    [
        "// -----// IR Dump After LLVMCPUPeelPass (iree-llvmcpu-peel) //----- //",
        "// -----// IR Dump After LLVMCPUPeelPass: iree-llvmcpu-peel //----- //",
        (
            "// -----// IR Dump After LLVMCPUPeelPass: iree-llvmcpu-peel{a=b c={d}}"
            " //----- //"
        ),
    ],
)
def test_operations_of_one_function_are_counted_with_their_types(header: str) -> None:
    (state,) = read(f"{header}\nbuiltin.module {{\n{OTHER}{FUNCTION}}}\n").states()
    assert (state.name, state.class_name, state.level) == (
        "iree-llvmcpu-peel",
        "LLVMCPUPeelPass",
        MLIR,
    )
    assert state.operations == {
        "arith.constant": 1,
        "vector.load": 1,
        "scf.if": 1,
        "custom.op": 1,
    }
    assert state.typed["arith.constant index"] == 1


def test_a_pass_that_changes_no_operation_is_no_step() -> None:
    headers = [
        f"// -----// IR Dump After P (p{number}) //----- //\n" for number in range(3)
    ]
    longer = FUNCTION.replace(
        "  return", "  %9 = arith.addi %c0, %c0 : index\n  return"
    )
    trace = read(headers[0] + FUNCTION + headers[1] + FUNCTION + headers[2] + longer)
    assert [step.name for step in trace.steps] == ["p0", "p2"]
    assert trace.steps[1].changes == {"arith.addi index": 1}
    assert [state.total for state in trace.states()] == [4, 5]


def test_instructions_of_the_machine_are_counted_without_flags_and_what_becomes_no_code() -> (
    None
):
    (state,) = read(
        f"# *** IR Dump After Greedy Register Allocator (greedy) ***:\n{INSTRUCTIONS}"
    ).states()
    assert (state.name, state.class_name, state.level) == (
        "greedy",
        "Greedy Register Allocator",
        MACHINE,
    )
    assert state.operations == {"COPY": 1, "FADDSrr": 1, "VLE32_V": 1, "STPXi": 1}


def test_llvm_s_own_ir_is_counted_with_its_intrinsics() -> None:
    (state,) = read(f"*** IR Dump After GVNPass on f ***\n{LLVM_IR}").states()
    assert (state.name, state.level) == ("GVNPass", LLVM)
    assert state.operations == {"load": 1, "llvm.fmuladd": 1, "br": 1}
    assert state.typed["load <8 x float>"] == 1


def test_two_ways_to_write_an_address_are_one_operation() -> None:
    """LLVM of 3.12.0 writes `[4 x i8]` where that of 3.10.0 writes `float`."""
    for element in ("float", "[4 x i8]", "i8"):
        address = f"  %3 = getelementptr {element}, ptr %1, i64 %2\n"
        body = LLVM_IR.replace("  br label %6\n", address)
        (state,) = read(f"*** IR Dump After GVNPass on f ***\n{body}").states()
        assert state.typed["getelementptr"] == 1


def test_each_level_begins_anew() -> None:
    texts = (
        f"// -----// IR Dump After P (p) //----- //\n{FUNCTION}",
        f"*** IR Dump After GVNPass on f ***\n{LLVM_IR}",
        (
            "*** IR Dump After AArch64 Instruction Selection (aarch64-isel) on f"
            f" ***\n{INSTRUCTIONS}"
        ),
    )
    trace = read("".join(texts))
    assert [step.level for step in trace.steps] == [MLIR, LLVM, MACHINE]
    assert [state.total for state in trace.states()] == [4, 3, 4]


def test_where_the_stream_is_cut_makes_no_difference() -> None:
    first = f"error: no\n// -----// IR Dump After P (p) //----- //\n{FUNCTION}"
    text = f"{first}# *** IR Dump After G (g) ***:\n{INSTRUCTIONS}"
    whole = read(text)
    assert len(whole.steps) == 2
    assert all(read(text, size) == whole for size in (1, 2, 3, 7, 64, 1000))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\xff" * 999,
        "// -----// IR Dump After\n",
        "// -----//\nfunc.func @f() {\n",
        "*** \n",
    ],
)
def test_what_is_no_dump_has_no_steps(text: str) -> None:
    assert read(text).steps == ()


def test_a_dump_that_ends_early_is_counted_as_far_as_it_goes() -> None:
    text = f"// -----// IR Dump After P (p) //----- //\n{FUNCTION}"
    (state,) = read(text[: text.index("  %1:2")]).states()
    assert state.total == 2
