"""The dynamic models of the suite, constrained: a fixed size gives the static export's artifact, and outputs stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ir_child import Child
from places import ROOT
from product_model import PRODUCT
from small_programs import SmallPrograms

from bot.compiler.bindings import Bindings
from bot.compiler.rewriting import constrained
from bot.core.study import Constraint, Divisible, Range, Static
from bot.running.runner import DYNAMIC_SIZES, Runner, Runtime
from bot.system.processes import Cancel

pytestmark = pytest.mark.compiler

MODELS = ROOT / "configs/models"
BERT, TWIN = "bert_l4_f32_dyn", "bert_l4_f32_s128"
LENGTH = {BERT: [(0, 1), (1, 1)], "gpt2_f32_dyn": [(0, 1)], "tinyllama_l4_f32_dyn": [(0, 1)]}
"""Of each dynamic model, where the length of its sequence is: its one symbolic dimension; the batch is 1."""
CONSTRAINTS: dict[str, Constraint] = {
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


def test_every_dynamic_model_of_the_suite_is_looked_at() -> None:
    dynamic = {path.stem for path in MODELS.glob("*.mlir") if re.search(r"@main\(.*\?", path.read_text("utf-8"))}
    assert dynamic == set(LENGTH)


def test_a_fixed_length_gives_the_artifact_of_the_static_export(
    programs: SmallPrograms, bindings: Bindings, tmp_path: Path
) -> None:
    fixed = shaped(bindings, tmp_path, BERT, Static(128)).replace(f"@{BERT} ", f"@{TWIN} ")
    exported = (MODELS / f"{TWIN}.mlir").read_text(encoding="utf-8")
    artifacts = [programs.artifact(*named).read_bytes() for named in (("fixed", fixed), ("exported", exported))]
    assert artifacts[0] == artifacts[1]


@pytest.mark.parametrize("name", LENGTH)
def test_a_fixed_length_leaves_no_dimension_dynamic(
    programs: SmallPrograms, bindings: Bindings, tmp_path: Path, name: str
) -> None:
    text = shaped(bindings, tmp_path, name, Static(32))
    assert re.search(r"@main\(.*!torch\.vtensor<\[1,32\],si32>.* -> !torch\.vtensor<\[1,32,\d+\],f32>", text)
    fixed = programs.interface(f"{name}.fixed", text)
    flow = (programs.home / f"{name}.fixed.here.mlir").read_text(encoding="utf-8")
    assert fixed.functions and "?" not in flow


def test_outputs_stay_where_the_constraint_is_kept(
    programs: SmallPrograms, bindings: Bindings, runtime: Runtime, tmp_path: Path
) -> None:
    text = (MODELS / f"{BERT}.mlir").read_text(encoding="utf-8")
    before = programs.artifact("before", text)
    runner = Runner(runtime, programs.interface("before", text), tmp_path / "data", Cancel(), draws=1)
    for name, constraint in CONSTRAINTS.items():
        after = programs.artifact(name, shaped(bindings, tmp_path, BERT, constraint))
        told = runner.outputs_equal(before, after)
        assert told.equal, (name, told)
        assert f"dynamic dimensions of {DYNAMIC_SIZES[0]}" in told.equal_note, told


def test_the_code_generator_of_a_gpu_makes_use_of_divisibility(
    programs: SmallPrograms, bindings: Bindings, tmp_path: Path
) -> None:
    model = tmp_path / "product.mlir"
    model.write_text(PRODUCT, encoding="utf-8")
    code = {}
    for name in ("range", "divisible"):
        out = tmp_path / f"{name}.mlir"
        assert constrained(bindings, model, CONSTRAINTS[name], out) == ((0, 0),)
        code[name] = programs.artifact(name, out.read_text(encoding="utf-8"), "cuda").read_bytes()
    assert VECTOR_LOAD not in code["range"] and VECTOR_LOAD in code["divisible"]
