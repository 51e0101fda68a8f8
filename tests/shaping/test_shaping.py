"""Dimensions of models constrained: what can be said, small models on several releases, dynamic ones of the suite."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ir_child import Child
from places import ROOT
from product_model import PRODUCT
from small_programs import FLAGS, SmallPrograms

from bot.compiler.bindings import Bindings, working
from bot.compiler.compiler import Session
from bot.compiler.compiling import Kit, Source, compile_to
from bot.compiler.rewriting import constrained
from bot.compiler.toolchain import resolve
from bot.core.snapshot import Failure
from bot.core.study import Constraint, Divisible, Dynamic, Range, Static, misfit
from bot.running.runner import DYNAMIC_SIZES, Runner, Runtime
from bot.system.defaults import default_cache
from bot.system.processes import Cancel, Meter

TORCH = """
module @m {
  func.func @main(%a: !torch.vtensor<[?,4],f32>, %b: !torch.vtensor<[4],f32>, %c: !torch.vtensor<[?,4,?],si32>)
      -> (!torch.vtensor<[?,4],f32>, !torch.vtensor<[?,4,?],si32>) attributes {torch.assume_strict_symbolic_shapes} {
    %one = torch.constant.int 1
    %0 = torch.aten.add.Tensor %a, %b, %one
        : !torch.vtensor<[?,4],f32>, !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[?,4],f32>
    %1 = torch.aten.add.Tensor %c, %c, %one
        : !torch.vtensor<[?,4,?],si32>, !torch.vtensor<[?,4,?],si32>, !torch.int -> !torch.vtensor<[?,4,?],si32>
    return %0, %1 : !torch.vtensor<[?,4],f32>, !torch.vtensor<[?,4,?],si32>
  }
}
"""
BUILTIN = """
func.func @main(%a: tensor<?x4xf32>, %n: i32) -> tensor<?x4xf32> {
  %0 = arith.addf %a, %a : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
"""
STABLEHLO = """
func.func @main(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %a, %a : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
"""
BOUND = """
// As an exporter writes it that keeps the names of its dimensions.
func.func @main(%a: !torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32>
    attributes {torch.assume_strict_symbolic_shapes} {
  %s = torch.symbolic_int "s0" {min_val = 2, max_val = 1024} : !torch.int
  torch.bind_symbolic_shape %a, [%s], affine_map<()[s0] -> (s0, 4)> : !torch.vtensor<[?,4],f32>
  %0 = torch.aten.tanh %a : !torch.vtensor<[?,4],f32> -> !torch.vtensor<[?,4],f32>
  return %0 : !torch.vtensor<[?,4],f32>
}
"""
ONNX = """
func.func @main(%a: !torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32>
    attributes {torch.onnx_meta.ir_version = 8 : si64, torch.onnx_meta.opset_version = 17 : si64} {
  %0 = torch.operator "onnx.Tanh"(%a) : (!torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32>
  return %0 : !torch.vtensor<[?,4],f32>
}
"""
CONSTRAINTS = [Static(32), Range(16, 512), Divisible(16, 16, 512)]
ASSUMED = {Range: "<umin = 16, umax = 512>", Divisible: "<umin = 16, umax = 512, udiv = 16>"}


class Stage:
    """One release, whose worker constrains and whose compiler reads what came of it."""

    def __init__(self, version: str, home: Path) -> None:
        toolchain = resolve(version, default_cache(), Cancel(), print)
        self.bindings, self.home = working(toolchain, Cancel()), home
        self.kit = Kit(toolchain, Session(home, 300, Cancel(), Meter()), self.bindings)

    def shaped(self, text: str, constraint: Constraint) -> tuple[tuple[tuple[int, int], ...], str] | str:
        """What was constrained, and the text; the message of a refusal."""
        model, out = self.home / "model.mlir", self.home / "shaped.mlir"
        model.write_text(text, encoding="utf-8")
        out.unlink(missing_ok=True)
        told = constrained(self.bindings, model, constraint, out)
        if isinstance(told, Failure):
            assert told.stage == "import" and not out.exists()
            return told.message
        return told, out.read_text(encoding="utf-8")

    def flow(self, text: str) -> str:
        """The program at the end of the flow phase."""
        path = self.home / "compiled.mlir"
        path.write_text(text, encoding="utf-8")
        flow = compile_to(self.kit, (*FLAGS["here"], "--compile-to=flow"), Source("m", path))
        assert isinstance(flow, str), flow
        return flow


def dynamic_code(flow: str) -> list[str]:
    """The lines of executables in which a dimension is dynamic; a result may be, to whom it is given."""
    kept = itertools.takewhile(lambda line: not line.startswith("  util.func public"), flow.splitlines())
    return [line for line in kept if "?" in line]


@pytest.fixture(scope="module", params=["3.8.0", "3.13.0"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(request.param, tmp_path_factory.mktemp("release"))
    yield stage
    stage.bindings.close()


@pytest.mark.compiler
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TORCH, [(0, 0), (2, 0), (2, 2)]),
        (BUILTIN, [(0, 0)]),
        (STABLEHLO, [(0, 0)]),
        (BOUND, [(0, 0)]),
        (ONNX, [(0, 0)]),
    ],
    ids=["torch", "builtin", "stablehlo", "bound", "onnx"],
)
def test_the_compiler_knows_of_each_dimension(
    at: Stage, text: str, found: list[tuple[int, int]], constraint: Constraint
) -> None:
    shaped = at.shaped(text, constraint)
    assert not isinstance(shaped, str), shaped
    told, made = shaped
    assert list(told) == found
    flow = at.flow(made)
    if isinstance(constraint, Static):
        assert "32x4" in flow and not dynamic_code(flow)
        assert dynamic_code(at.flow(text))
    else:
        assumed = re.findall(r"util\.assume\.int %\S+?(<.*?>) : index", flow)
        assert assumed.count(ASSUMED[type(constraint)]) == len(found)


@pytest.mark.compiler
def test_a_model_that_is_left_as_it_is_stays_to_the_byte(at: Stage) -> None:
    text = BUILTIN.replace("\n", " // ünï\n")
    assert at.shaped(text, Dynamic()) == (((0, 0),), text)


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BUILTIN.replace("?", "8"), "no input of the model has a dynamic dimension"),
        ("module {}", "the model has 0 functions that others can call, and not one"),
        (BUILTIN + BUILTIN.replace("@main", "@other"), "the model has 2 functions that others can call, and not one"),
        (
            "func.func @main(%a: tensor<*xf32>) -> tensor<*xf32> { return %a : tensor<*xf32> }",
            "input 0 is a tensor<*xf32>, a form of which no dimension can be constrained",
        ),
        (
            "func.func @main(%a: !torch.vtensor<*,f32>) -> !torch.vtensor<*,f32> { return %a : !torch.vtensor<*,f32> }",
            "input 0 is a !torch.vtensor<*,f32>, a form of which no dimension can be constrained",
        ),
        (
            "func.func @main(%a: !torch.tensor<[?],f32>) { return }",
            "input 0 is a !torch.tensor<[?],f32>, a form of which no dimension can be constrained",
        ),
    ],
)
@pytest.mark.parametrize("constraint", [Dynamic(), *CONSTRAINTS], ids=lambda one: type(one).__name__)
def test_a_model_of_which_it_cannot_be_said_is_refused(at: Stage, text: str, why: str, constraint: Constraint) -> None:
    assert at.shaped(text, constraint) == f"not constrained: {why}"


@pytest.mark.compiler
def test_a_text_that_is_no_model_and_a_file_that_is_not_there(at: Stage) -> None:
    refused = at.shaped("func.func @main(", Range(1, 2))
    assert isinstance(refused, str) and refused.startswith("cannot constrain its dimensions: MLIRError: ")
    gone = constrained(at.bindings, at.home / "gone.mlir", Range(1, 2), at.home / "out.mlir")
    assert isinstance(gone, Failure)
    assert gone.message == "cannot constrain its dimensions: on this machine: gone.mlir: No such file or directory"


@pytest.mark.compiler
def test_a_function_that_is_called_within_cannot_have_another_type(at: Stage) -> None:
    caller = """
      func.func private @again(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {
        %0 = func.call @main(%a, %a) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
        return %0 : tensor<?x4xf32>
      }
    """
    refused = at.shaped(BUILTIN.replace("%n: i32", "%n: tensor<?x4xf32>") + caller, Static(8))
    assert isinstance(refused, str)
    assert refused.startswith("not constrained: the compiler does not take the model with it: ")
    assert "operand type mismatch" in refused and "\n" not in refused


@pytest.mark.parametrize("answer", ['{"refused": null}', '{"dimensions": [[-1, 0]], "refused": null}', "nothing"])
def test_a_worker_that_answers_something_else_is_not_believed(tmp_path: Path, answer: str) -> None:
    script = tmp_path / "worker.py"
    script.write_text(f"print('{{\"ready\": true}}', flush=True)\ninput()\nprint({answer!r}, flush=True)\ninput()\n")
    bindings = Bindings(tmp_path, "", Cancel(), timeout_seconds=20, script=script)
    told = constrained(bindings, tmp_path / "model.mlir", Static(8), tmp_path / "out.mlir")
    bindings.close()
    assert isinstance(told, Failure) and told.message.startswith("cannot constrain its dimensions: ")
    bindings = Bindings(None, "it is a binary alone", Cancel())
    told = constrained(bindings, tmp_path / "model.mlir", Static(8), tmp_path / "out.mlir")
    assert told == Failure("import", "cannot constrain its dimensions: it is a binary alone")


# The dynamic models of the suite: a fixed size gives the static export's artifact, and outputs stay.

MODELS = ROOT / "configs/models"
BERT, TWIN = "bert_l4_f32_dyn", "bert_l4_f32_s128"
LENGTH = {BERT: [(0, 1), (1, 1)], "gpt2_f32_dyn": [(0, 1)], "tinyllama_l4_f32_dyn": [(0, 1)]}
"""Of each dynamic model, where the length of its sequence is: its one symbolic dimension; the batch is 1."""
LENGTHS: dict[str, Constraint] = {
    "range": Range(16, 512),
    "divisible": Divisible(16, 16, 512),
    "static": Static(DYNAMIC_SIZES[0]),
}
VECTOR_LOAD = b"ld.global.nc.v4."


@pytest.fixture(scope="module")
def programs(compiler_root: Path, worker: Child, tmp_path_factory: pytest.TempPathFactory) -> SmallPrograms:
    return SmallPrograms(compiler_root, worker, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def bindings(compiler_root: Path) -> Iterator[Bindings]:
    found = Bindings(compiler_root, "", Cancel())
    yield found
    found.close()


def shaped(bindings: Bindings, home: Path, name: str, constraint: Constraint) -> str:
    """The text of a model of the suite, constrained at its length."""
    out = home / f"{name}.mlir"
    assert constrained(bindings, MODELS / f"{name}.mlir", constraint, out) == tuple(LENGTH[name])
    return out.read_text(encoding="utf-8")


@pytest.mark.compiler
def test_every_dynamic_model_of_the_suite_is_looked_at() -> None:
    dynamic = {path.stem for path in MODELS.glob("*.mlir") if re.search(r"@main\(.*\?", path.read_text("utf-8"))}
    assert dynamic == set(LENGTH)


@pytest.mark.compiler
def test_a_fixed_length_gives_the_artifact_of_the_static_export(
    programs: SmallPrograms, bindings: Bindings, tmp_path: Path
) -> None:
    fixed = shaped(bindings, tmp_path, BERT, Static(128)).replace(f"@{BERT} ", f"@{TWIN} ")
    exported = (MODELS / f"{TWIN}.mlir").read_text(encoding="utf-8")
    artifacts = [programs.artifact(*named).read_bytes() for named in (("fixed", fixed), ("exported", exported))]
    assert artifacts[0] == artifacts[1]


@pytest.mark.compiler
@pytest.mark.parametrize("name", LENGTH)
def test_a_fixed_length_leaves_no_dimension_dynamic(
    programs: SmallPrograms, bindings: Bindings, tmp_path: Path, name: str
) -> None:
    text = shaped(bindings, tmp_path, name, Static(32))
    assert re.search(r"@main\(.*!torch\.vtensor<\[1,32\],si32>.* -> !torch\.vtensor<\[1,32,\d+\],f32>", text)
    fixed = programs.interface(f"{name}.fixed", text)
    flow = (programs.home / f"{name}.fixed.here.mlir").read_text(encoding="utf-8")
    assert fixed.functions and "?" not in flow


@pytest.mark.compiler
def test_outputs_stay_where_the_constraint_is_kept(
    programs: SmallPrograms, bindings: Bindings, runtime: Runtime, tmp_path: Path
) -> None:
    text = (MODELS / f"{BERT}.mlir").read_text(encoding="utf-8")
    before = programs.artifact("before", text)
    runner = Runner(runtime, programs.interface("before", text), tmp_path / "data", Cancel(), draws=1)
    for name, constraint in LENGTHS.items():
        after = programs.artifact(name, shaped(bindings, tmp_path, BERT, constraint))
        told = runner.outputs_equal(before, after)
        assert told.equal, (name, told)
        assert f"dynamic dimensions of {DYNAMIC_SIZES[0]}" in told.equal_note, told


@pytest.mark.compiler
def test_the_code_generator_of_a_gpu_makes_use_of_divisibility(
    programs: SmallPrograms, bindings: Bindings, tmp_path: Path
) -> None:
    model = tmp_path / "product.mlir"
    model.write_text(PRODUCT, encoding="utf-8")
    code = {}
    for name in ("range", "divisible"):
        out = tmp_path / f"{name}.mlir"
        assert constrained(bindings, model, LENGTHS[name], out) == ((0, 0),)
        code[name] = programs.artifact(name, out.read_text(encoding="utf-8"), "cuda").read_bytes()
    assert VECTOR_LOAD not in code["range"] and VECTOR_LOAD in code["divisible"]


def test_sizes_that_no_model_can_have() -> None:
    assert misfit(Range(512, 16)) == "min 512 is above max 16"
    assert misfit(Divisible(16, 32, 16)) == "min 32 is above max 16"
    assert misfit(Divisible(16, 8, 512)) == "min 8 is no multiple of 16"
    assert misfit(Divisible(16, 16, 500)) == "max 500 is no multiple of 16"
    assert {misfit(one) for one in (Dynamic(), Static(3), Range(7, 7), Divisible(16, 16, 512))} == {""}
