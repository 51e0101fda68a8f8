"""The IR worker's answers: the real ones as facts.

Any other JSON as facts or MalformedBinary, nothing else.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from ir_child import Child
from places import FIXTURES

from bot.core.program import Site
from bot.errors import MalformedBinary
from bot.readers import ir_facts
from bot.readers.ir_facts import Interface, Tensor, interface, parsed

ANSWERS, NAMED = (
    json.loads((FIXTURES / "ir" / f"{name}.answers.json").read_text())
    for name in ("tiny", "named")
)


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(some.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


def program_facts(answer: Any) -> Any:
    return ir_facts.program_facts(json.dumps(answer))


def alloca_bytes(answer: Any) -> Any:
    return ir_facts.alloca_bytes(json.dumps(answer))


def strategies(answer: Any) -> Any:
    return ir_facts.strategies(json.dumps(answer))


def changed(answer: Any, *path: str | int, to: object) -> Any:
    """A copy of the answer with one value changed."""
    result = copy.deepcopy(answer)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return result


def test_the_real_answers_become_facts() -> None:
    facts = program_facts(ANSWERS["program"])
    assert (facts.dispatch_regions, facts.linalg_ops, facts.executables) == (5, 13, 4)
    assert (facts.dispatch_sites, facts.memory_bound_sites) == (5, 2)
    assert (facts.phases, facts.sources, facts.sites) == ({}, (), ())
    assert (facts.operations, facts.places) == (None, {})
    facts = program_facts(NAMED["program"])
    matmul = "net_dispatch_0_matmul_16x48x24_f32"
    assert [*facts.phases] == ["input", "global-optimization"]
    assert [source.executable for source in facts.sources] == [
        point.executable for point in facts.entry_points
    ]
    assert (
        "linalg.matmul ins(" in facts.sources[1].shown
        and '"linalg.matmul"(' in facts.sources[1].generic
    )
    assert facts.sites[0] == Site(
        facts.entry_points[0].entry_point, "net/scale", initializer=True
    )
    assert facts.sites[1:3] == (
        Site(matmul, "net/layer.0/dense"),
        Site(matmul, 'net/layer.1/"dense"'),
    )
    assert (
        strategies(NAMED["strategies"])[
            "_initializer_0_dispatch_0_elementwise_1152_f32"
        ]
        == "DoubleTilingExpert | distribution = [1152], vector_common_parallel = [8]"
    )
    sizes = alloca_bytes(ANSWERS["allocas"])
    assert (
        sorted(sizes.values()) == [0, 0, 0, 128]
        and sizes["tiny$net_dispatch_4_conv_7x7x8x3x3_f32"] == 128
    )
    assert strategies({"functions": {}}) == alloca_bytes({"functions": {}}) == {}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("executables",), 2, "more than 2 executables"),
        (("entry_points", 1, "kind"), "magic", "unknown kind 'magic'"),
        (
            ("entry_points",),
            [NAMED["program"]["entry_points"][0]] * 2,
            "an entry point is listed twice",
        ),
        (("phases",), {"vm": "0" * 64}, "not digests of phases"),
        (("phases", "input"), "0" * 63 + "G", "a phase has no digest"),
        (("sources", 0, "executable"), "net_dispatch_0", "listed twice"),
        (("places",), {"a\nb": 1}, "not a line of text"),
        (("sites", 0, "entry_point"), "", "not a line of text"),
        (("sites", 0, "component"), "a\nb", "not a line of text"),
        (("sites", 0, "component"), "a" * 201, "not a line of text"),
        (
            ("families",),
            [{"kind": "offsets", "members": ["nobody"], "varying": ["a"]}],
            "or not in the program",
        ),
        (
            ("families",),
            [{"kind": "offsets", "members": ["net_dispatch_0"] * 2, "varying": ["a"]}],
            "also in another family",
        ),
        (
            ("families",),
            [{"kind": "offsets", "members": [], "varying": ["a\nb"]}],
            "not a line of text",
        ),
    ],
)
def test_a_wrong_value_is_named(
    path: tuple[str | int, ...], value: object, message: str
) -> None:
    with pytest.raises(MalformedBinary, match=message):
        program_facts(changed(NAMED["program"], *path, to=value))


@pytest.mark.parametrize("read", [program_facts, alloca_bytes, strategies])
def test_the_workers_error_is_passed_on_as_one_line(read: Any) -> None:
    with pytest.raises(MalformedBinary, match="program IR: MLIRError: cannot parse"):
        read({"error": "MLIRError:\ncannot parse"})
    with pytest.raises(MalformedBinary, match="allocations of f have no constant size"):
        alloca_bytes({"functions": {"g": 1, "f": None}})


PLACES: list[tuple[str | int, ...]] = [(key,) for key in NAMED["program"]]
PLACES += [
    (key, 0)
    for key, value in NAMED["program"].items()
    if value and isinstance(value, list)
]


@given(
    JSON
    | some.builds(
        lambda path, value: changed(NAMED["program"], *path, to=value),
        some.sampled_from(PLACES),
        JSON,
    )
    | some.builds(lambda value: {"functions": value}, JSON)
)
def test_any_json_gives_facts_or_malformed_binary(answer: Any) -> None:
    for read in (program_facts, alloca_bytes, strategies):
        try:
            read(answer)
        except MalformedBinary as error:
            assert "\n" not in error.line


# What a program takes and gives: asked of the real worker, and read.


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
def test_a_plain_function_its_parameters_and_its_target(
    worker: Child, tmp_path: Path
) -> None:
    facts = asked(worker, tmp_path, DEVICE, PLAIN)
    (main,) = facts.functions
    assert main.name == "main"
    assert main.arguments == (
        "tensor<4xf32>",
        "i32",
        "tensor<7xi8>",
        "tensor<2xui8>",
    ), "as imported, else as declared"
    assert main.results == ("tensor<4xf32>", "i32", "tensor<2xui8>")
    named = [
        (parameter.scope, parameter.key, parameter.type)
        for parameter in facts.parameters
    ]
    assert named == [
        ("model", "a.weight", "tensor<4x2xf32>"),
        ("", "bare", "tensor<3xi8>"),
    ]
    (target,) = facts.targets
    assert (target.backend, target.format, target.features) == (
        "llvm-cpu",
        "embedded-elf-x86_64",
        ("+avx", "+avx2"),
    )


@pytest.mark.compiler
def test_a_function_that_waits_for_another_has_the_other_s_types(
    worker: Child, tmp_path: Path
) -> None:
    (main,) = asked(worker, tmp_path, FENCED, SYNC).functions
    assert (main.name, main.arguments, main.results) == (
        "main",
        ("tensor<1x?xi32>",),
        ("tensor<1x?xi32>",),
    )
    (function,) = asked(worker, tmp_path, FENCED).functions
    assert function.name == "main$async" and function.arguments[1:] == (
        "!hal.fence",
        "!hal.fence",
    )
    with pytest.raises(MalformedBinary):
        asked(worker, tmp_path, "nonsense")


@pytest.mark.compiler
def test_every_target_of_a_device_is_reported(worker: Child, tmp_path: Path) -> None:
    device = """util.global private @__device_0 = #hal.device.target<"local", [
      #hal.executable.target<"vmvx", "vmvx-bytecode-fb">,
      #hal.executable.target<"llvm-cpu", "embedded-elf-arm_64", {cpu_features = "+neon"}>]> : !hal.device\n"""
    targets = asked(worker, tmp_path, device).targets
    assert [(target.backend, target.features) for target in targets] == [
        ("vmvx", ()),
        ("llvm-cpu", ("+neon",)),
    ]


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
def test_types_are_taken_apart(
    text: str, tensor: Tensor, size_bytes: int | None
) -> None:
    parsed_type = parsed(text)
    assert parsed_type == tensor and parsed_type.size_bytes == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        "!hal.fence",
        "!hal.buffer_view",
        "tensor<4xcomplex<f32>>",
        "tensor<4xf32, #e>",
        "tensor<*xf32>",
        "",
        "x:y",
    ],
)
def test_what_is_no_tensor_and_no_number_is_not_taken_for_one(text: str) -> None:
    assert parsed(text) is None
