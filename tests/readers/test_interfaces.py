"""What a program takes and gives: asked of the real worker, and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ir_child import Child

from bot.errors import MalformedBinary
from bot.readers.ir_facts import Interface, Tensor, interface, parsed, probes

DEVICE = """
  util.global private @__device_0 = #hal.device.target<"local", [#hal.executable.target<"llvm-cpu",
    "embedded-elf-x86_64", {cpu = "x86-64-v3", cpu_features = "+avx,+avx2", target_triple = "x"}>]> : !hal.device
"""
PLAIN = """
  util.global private @a = #flow.parameter.named<"model"::"a.weight"> : tensor<4x2xf32>
  util.global private @b = #flow.parameter.named<"bare"> : tensor<3xi8>
  util.global private @again = #flow.parameter.named<"bare"> : tensor<3xi8>
  util.global private @own = dense<1> : tensor<2xi32>
  util.func private @helper(%v: i32) -> i32 { util.return %v : i32 }
  util.func public @main(%x: !hal.buffer_view, %n: i32, %unused: !hal.buffer_view, %u: !hal.buffer_view)
      -> (!hal.buffer_view, i32, !hal.buffer_view) attributes {iree.reflection = {iree.abi.declaration =
      "sync func @main(%input0: tensor<4xf64>, %input1: i32, %input2: tensor<7xi8>, %input3: tensor<2xui8>) -> ()"}} {
    %0 = hal.tensor.import %x "input0" : !hal.buffer_view -> tensor<4xf32>
    %1 = hal.tensor.import %u "input3" : !hal.buffer_view -> tensor<2xui8> as tensor<2xi8>
    %2 = hal.tensor.export %0 "output0" : tensor<4xf32> -> !hal.buffer_view
    %3 = util.call @helper(%n) : (i32) -> i32
    %4 = hal.tensor.export %1 "output2" : tensor<2xui8> as tensor<2xi8> -> !hal.buffer_view
    util.return %2, %3, %4 : !hal.buffer_view, i32, !hal.buffer_view
  }
"""
FENCED = """
  util.func public @main$async(%x: !hal.buffer_view, %wait: !hal.fence, %signal: !hal.fence) -> !hal.buffer_view
      attributes {iree.abi.model = "coarse-fences"} {
    %d = hal.buffer_view.dim<%x : !hal.buffer_view>[1] : index
    %0 = hal.tensor.import wait(%wait) => %x : !hal.buffer_view -> tensor<1x?xi32>{%d}
    %1 = hal.tensor.barrier join(%0 : tensor<1x?xi32>) => %signal : !hal.fence
    %2 = hal.tensor.export %1 : tensor<1x?xi32>{%d} -> !hal.buffer_view
    util.return %2 : !hal.buffer_view
  }
"""
SYNC = """
  util.func public @main(%x: !hal.buffer_view) -> !hal.buffer_view {
    %0 = util.null : !hal.fence
    %1 = util.call @main$async(%x, %0, %0) : (!hal.buffer_view, !hal.fence, !hal.fence) -> !hal.buffer_view
    util.return %1 : !hal.buffer_view
  }
"""


def asked(worker: Child, home: Path, *parts: str) -> Interface:
    flow = home / "flow.mlir"
    flow.write_text("module {\n" + "".join(parts) + "}\n")
    return interface(json.dumps(worker.ask(op="interface", flow=str(flow))))


@pytest.mark.compiler
def test_a_plain_function_its_parameters_and_its_target(worker: Child, tmp_path: Path) -> None:
    found = asked(worker, tmp_path, DEVICE, PLAIN)
    (main,) = found.functions
    assert main.name == "main"
    assert main.arguments == ("tensor<4xf32>", "i32", "tensor<7xi8>", "tensor<2xui8>"), "as imported, else as declared"
    assert main.results == ("tensor<4xf32>", "i32", "tensor<2xui8>")
    named = [(each.scope, each.key, each.type) for each in found.parameters]
    assert named == [("model", "a.weight", "tensor<4x2xf32>"), ("", "bare", "tensor<3xi8>")]
    (target,) = found.targets
    assert (target.backend, target.format, target.features) == ("llvm-cpu", "embedded-elf-x86_64", ("+avx", "+avx2"))


@pytest.mark.compiler
def test_a_function_that_waits_for_another_has_the_other_s_types(worker: Child, tmp_path: Path) -> None:
    (main,) = asked(worker, tmp_path, FENCED, SYNC).functions
    assert (main.name, main.arguments, main.results) == ("main", ("tensor<1x?xi32>",), ("tensor<1x?xi32>",))


@pytest.mark.compiler
def test_fences_are_told_where_nobody_waits(worker: Child, tmp_path: Path) -> None:
    (alone,) = asked(worker, tmp_path, FENCED).functions
    assert alone.name == "main$async" and alone.arguments[1:] == ("!hal.fence", "!hal.fence")


DISPATCHED = """
  flow.executable private @e {
    flow.executable.export public @d workgroups(%n: index) -> (index, index, index) {
      flow.return %n, %n, %n : index, index, index
    }
    builtin.module {
      func.func @d(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xi32>>, %n: index,
                   %y: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xi32>>,
                   %z: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xi32>>) { return }
    }
  }
  util.func public @main(%x: !hal.buffer_view) -> !hal.buffer_view attributes {iree.reflection = {a = "b"}} {
    %n = hal.buffer_view.dim<%x : !hal.buffer_view>[0] : index
    %0 = hal.tensor.import %x : !hal.buffer_view -> tensor<?xi32>{%n}
    %1:2 = flow.dispatch @e::@d[%n](%0, %n) : (tensor<?xi32>{%n}, index) -> (tensor<?xi32>{%n}, tensor<4xi32>)
    %2 = hal.tensor.export %0 : tensor<?xi32>{%n} -> !hal.buffer_view
    util.return %2 : !hal.buffer_view
  }
"""


@pytest.mark.compiler
def test_a_probed_program_gives_what_its_dispatches_compute(worker: Child, tmp_path: Path) -> None:
    (own,) = asked(worker, tmp_path, DISPATCHED).functions
    probed = tmp_path / "probed.mlir"
    answer = worker.ask(op="probe", flow=str(tmp_path / "flow.mlir"), probed=str(probed))
    assert probes(json.dumps(answer)) == 2
    (main,) = interface(json.dumps(worker.ask(op="interface", flow=str(probed)))).functions
    assert main.arguments == own.arguments
    assert main.results == (*own.results, "tensor<?xi32>", "tensor<4xi32>")


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("parts", "why"), [((FENCED,), "has fences"), ((FENCED, SYNC), "2 public functions, not one"), ((), "0 public")]
)
def test_a_program_that_cannot_be_probed_says_why(
    worker: Child, tmp_path: Path, parts: tuple[str, ...], why: str
) -> None:
    (tmp_path / "flow.mlir").write_text("\n".join(("module {", *parts, "}")))
    answer = worker.ask(op="probe", flow=str(tmp_path / "flow.mlir"), probed=str(tmp_path / "none"))
    with pytest.raises(MalformedBinary, match=why):
        probes(json.dumps(answer))
    assert not (tmp_path / "none").exists()


@pytest.mark.compiler
def test_every_target_of_a_device_is_told(worker: Child, tmp_path: Path) -> None:
    device = """util.global private @__device_0 = #hal.device.target<"local", [
      #hal.executable.target<"vmvx", "vmvx-bytecode-fb">,
      #hal.executable.target<"llvm-cpu", "embedded-elf-arm_64", {cpu_features = "+neon"}>]> : !hal.device\n"""
    told = asked(worker, tmp_path, device).targets
    assert [(each.backend, each.features) for each in told] == [("vmvx", ()), ("llvm-cpu", ("+neon",))]


@pytest.mark.compiler
def test_a_file_that_is_none_is_an_error(worker: Child, tmp_path: Path) -> None:
    with pytest.raises(MalformedBinary):
        asked(worker, tmp_path, "nonsense")


def test_an_answer_of_another_form_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="the answer has no parameters"):
        interface('{"module": "module", "functions": [], "targets": []}')
    with pytest.raises(MalformedBinary):
        interface('{"functions": [{"name": 1}], "targets": [], "parameters": []}')


@pytest.mark.parametrize(
    ("text", "tensor", "size_bytes"),
    [
        ("tensor<4x2xf32>", Tensor((4, 2), "f32"), 32),
        ("tensor<f64>", Tensor((), "f64"), 8),
        ("tensor<3xi1>", Tensor((3,), "i1"), 3),
        ("tensor<3xi4>", Tensor((3,), "i4"), 2),
        ("tensor<0x7xbf16>", Tensor((0, 7), "bf16"), 0),
        ("tensor<2xf8E4M3FN>", Tensor((2,), "f8E4M3FN"), 2),
        ("tensor<1x?xsi32>", Tensor((1, None), "si32"), None),
        ("tensor<2xindex>", Tensor((2,), "index"), 16),
        ("i32", Tensor((), "i32", is_scalar=True), 4),
    ],
)
def test_types_are_taken_apart(text: str, tensor: Tensor, size_bytes: int | None) -> None:
    found = parsed(text)
    assert found == tensor and found.size_bytes == size_bytes


@pytest.mark.parametrize(
    "text",
    ["!hal.fence", "!hal.buffer_view", "tensor<4xcomplex<f32>>", "tensor<4xf32, #e>", "tensor<*xf32>", "", "x:y"],
)
def test_what_is_no_tensor_and_no_number_is_not_taken_for_one(text: str) -> None:
    assert parsed(text) is None


def test_dimensions_that_are_not_fixed_are_made_so() -> None:
    assert Tensor((None, 3, None), "f32").sized(16) == Tensor((16, 3, 16), "f32")
    assert Tensor((None,), "f32").is_dynamic and not Tensor((2,), "f32").is_dynamic
