"""Operations of the last IR: the scan of the text against a walk over the parsed module, on dumps of all targets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from growth import LINEAR, cpu_growth
from hypothesis import given
from hypothesis import strategies as st
from ir_child import Child
from places import FIXTURES
from reader_checks import BINARIES

from bot.readers.ir_worker.ir_operations import NOT_CODE, operations

HERE = FIXTURES / "ir"
TRIPLE, CPU = "llvm-cpu --iree-llvmcpu-target-triple=", " --iree-llvmcpu-target-cpu="
TARGETS = {
    "llvm-cpu-x86_64": f"{TRIPLE}x86_64-unknown-linux-gnu{CPU}x86-64-v3",
    "llvm-cpu-aarch64": f"{TRIPLE}aarch64-unknown-linux-gnu{CPU}generic",
    "llvm-cpu-riscv64": f"{TRIPLE}riscv64-pc-linux-elf{CPU}generic-rv64 --iree-llvmcpu-target-abi=lp64d "
    "--iree-llvmcpu-target-cpu-features=+m,+a,+f,+d,+zvl512b,+v",
    "vmvx": "vmvx",
    "vulkan-spirv": "vulkan-spirv --iree-vulkan-target=ampere",
    "cuda": "cuda --iree-cuda-target=sm_80",
    "rocm": "rocm --iree-rocm-target=gfx942",
    "metal-spirv": "metal-spirv --iree-metal-compile-to-metallib=false",
}
MODELS = {"dense": BINARIES / "dense.mlir", "tiny": HERE / "tiny.mlir"}
WALK = """
import json, sys
from collections import Counter
sys.path[0:1] = [sys.argv[1]]
sys.modules.update(dict.fromkeys(("numpy", "iree.compiler.dialects.linalg", "iree.compiler.dialects.llvm")))
import iree.compiler.ir as ir
context = ir.Context()
context.allow_unregistered_dialects = True
module = ir.Module.parse(open(sys.argv[2], "rb").read(), context)
found = {}
def function(op):
    if op.name in ("llvm.func", "spirv.func", "vm.func") and len(op.regions[0].blocks):
        counts = found.setdefault(op.attributes["sym_name"].value, Counter())
        def each(inner):
            counts[inner.name] += 1
            return ir.WalkResult.ADVANCE
        op.walk(each)
        counts[op.name] -= 1
    return ir.WalkResult.ADVANCE
module.operation.walk(function)
print(json.dumps(found))
"""


def walked(root: Path, dump: Path) -> dict[str, dict[str, int]]:
    """Function → operation → count, as MLIR's own bindings walk them."""
    command = [sys.executable, "-S", "-c", WALK, str(root), str(dump)]
    found: dict[str, dict[str, int]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return {
        name: {op: count for op, count in counts.items() if count and op not in NOT_CODE}
        for name, counts in found.items()
    }


def dumped(root: Path, folder: Path, model: str, target: str, *more: str) -> Path:
    options = ["--iree-dispatch-creation-enable-aggressive-fusion", "--mlir-disable-threading"]
    command = [str(root / "iree/compiler/_mlir_libs/iree-compile"), "-", *options, *more]
    command += f"--iree-hal-target-backends={TARGETS[target]}".split()
    command += [f"--dump-compilation-phases-to={folder}", "-o", "/dev/null"]
    with MODELS[model].open() as text:
        subprocess.run(command, stdin=text, check=True, capture_output=True)
    (found,) = folder.glob("*.10.*.mlir")
    return found


@pytest.mark.compiler
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("model", "more"), [("dense", ()), ("tiny", ("--mlir-print-debuginfo",))])
def test_the_scan_counts_what_the_bindings_walk(
    worker: Child, compiler_root: Path, tmp_path: Path, model: str, more: tuple[str, ...], target: str
) -> None:
    dump = dumped(compiler_root, tmp_path, model, target, *more)
    found = worker.ask(op="operations", executable_targets=str(dump))["functions"]
    every = walked(compiler_root, dump)
    assert found == {name: counts for name, counts in every.items() if "_dispatch_" in name}
    assert len(found) >= 2 and all(sum(counts.values()) > 20 for counts in found.values())


def test_a_prepared_dump() -> None:
    found: Any = operations((HERE / "tiny.10.executable-targets.mlir").read_bytes())
    exports = json.loads((HERE / "tiny.answers.json").read_text())["program"]["entry_points"]
    assert list(found) == [row["entry_point"] for row in exports]
    assert not NOT_CODE & {name for counts in found.values() for name in counts}


TEXT = b"""module {
  hal.executable private @first {
    hal.executable.variant public @v target(<"llvm-cpu", "x">) {
      hal.executable.export public @main ordinal(0) layout(#l) count(%arg0: !hal.device) -> (index, index, index) {
        %c1 = arith.constant 1 : index
        hal.return %c1, %c1, %c1 : index, index, index
      }
      builtin.module {
        llvm.func @expf(f32) -> f32
        llvm.func internal @helper(%arg0: f32) -> f32 {
          llvm.return %arg0 : f32
        }
        llvm.func @main(%arg0: !llvm.ptr) -> i32 {
          %0 = llvm.mlir.constant(0 : i32) : i32
          %1, %2 = "llvm.thing"(%arg0) : (!llvm.ptr) -> (f32, f32) loc("a"("b = llvm.add"))
          %3:2 = llvm.thing %arg0 : f32
          llvm.switch %0 : i32, ^bb1 [
            0: ^bb1,
            1: ^bb2
          ]
        ^bb1:  // pred: ^bb0
          llvm.br ^bb2
        ^bb2:  // 2 preds: ^bb0, ^bb1
          llvm.return %0 : i32 loc(#loc)
        } loc(#loc)
      }
    }
  }
}
"""


def test_only_entry_points_count_and_declarations_have_nothing() -> None:
    assert operations(TEXT) == {"main": {"llvm.thing": 2, "llvm.switch": 1, "llvm.br": 1, "llvm.return": 1}}


def test_a_helper_with_the_name_of_another_executables_entry_point_counts_to_none() -> None:
    other = TEXT.replace(b"@main", b"@other").replace(b"@helper", b"@main")
    assert operations(TEXT + other).keys() == {"main", "other"}
    assert operations(TEXT + other)["main"] == operations(TEXT)["main"]


def test_two_entry_points_of_one_name_are_not_known() -> None:
    assert operations(TEXT + TEXT) == {"main": None}


def test_names_in_quotes() -> None:
    assert list(operations(TEXT.replace(b"@main", b'@"a b"'))) == ["a b"]


def test_a_function_without_its_end_is_refused() -> None:
    with pytest.raises(ValueError, match="without its end"):
        operations(TEXT.partition(b"        ^bb2:")[0])


def test_text_that_is_no_module_has_no_functions() -> None:
    assert operations(b"") == operations(b"nothing\n{}") == {}


@given(cut=st.integers(0, len(TEXT)), junk=st.binary(max_size=40))
def test_any_text_gives_counts_or_a_refusal(cut: int, junk: bytes) -> None:
    try:
        operations(TEXT[:cut] + junk + TEXT[cut:])
    except ValueError as error:
        assert "without its end" in str(error)


@pytest.mark.parametrize(
    "line",
    [
        b"          %0 = llvm.add %1\n",
        b"          " + b"%0, " * 20 + b"\n",
        b" " * 60 + b"=" * 60 + b"\n",
        b"  hal.executable.export " + b"x" * 60 + b"\n",
        b"          llvm.func " + b"x" * 60 + b"\n",
    ],
)
def test_twice_the_text_takes_about_twice_the_time(line: bytes) -> None:
    head, tail = TEXT.split(b"          %0 =", 1)
    assert cpu_growth(lambda count: head + line * count + b"          %0 =" + tail, operations, 2000) < LINEAR
