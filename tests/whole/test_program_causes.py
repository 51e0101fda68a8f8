"""Other dispatch regions: which pass forms them, by experiment with two real releases, from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from alone_stage import compile_setup
from json_rows import read_json
from places import ROOT
from real_compilers import bot

from bot.compiler.compiling import CompileInput, compile_to
from bot.compiler.toolchain import UNTHREADED
from bot.core.program_proof import HEAD_ONLY, PROGRAM_PHASES
from bot.readers.flow_regions import regions_of
from bot.study.program_side import ProgramSide
from bot.study.proving_program import SAME_REGIONS, prove_program
from bot.study.proving_program_pass import Programs

pytestmark = pytest.mark.compiler

PROGRAMS = ROOT / "tests/fixtures/programs"
NEW_PASS = "iree-global-opt-convert-batch-matmul-to-matmul"
FLAGS = ("--iree-hal-target-backends=vmvx",)


def configured(home: Path, model: str) -> Path:
    """Copy a program into a directory with a configuration; return its path."""
    shutil.copy(PROGRAMS / f"{model}.mlir", home / f"{model}.mlir")
    config = home / "c.yml"
    text = f"schema: code-size-config/1\nmodels: [{model}.mlir]\ntargets: [vmvx]\n"
    config.write_text(text, encoding="utf-8")
    return config


def formed_causes(home: Path, base: str, head: str) -> list[Any]:
    """Compare two releases; return the root causes that form regions."""
    sides = ("--base", base, "--head", head)
    bot("compare", *sides, "--config", "c.yml", "--out", f"{base}-{head}", cwd=home)
    report = read_json(home / f"{base}-{head}/report.json")
    return [root for root in report.root_causes if root.cause in ("fusion", "input")]


def test_a_new_pass_before_regions_are_formed_is_named(tmp_path: Path) -> None:
    """The report named the pass that forms regions, which is the same on both sides.

    Swapping sides changes nothing.
    """
    configured(tmp_path, "attn_out_proj")
    for base, head in (("3.11.0", "3.13.0"), ("3.13.0", "3.11.0")):
        (root,) = formed_causes(tmp_path, base, head)
        assert (root.cause, root["pass"]) == ("fusion", NEW_PASS)
        assert (
            root.what
            == f"{NEW_PASS} forms other dispatch regions: proved by experiment"
        )
    comment = (tmp_path / "3.11.0-3.13.0/comment.md").read_text(encoding="utf-8")
    assert (
        f"`{NEW_PASS}` **forms other dispatch regions: proved by experiment**"
        in comment
    )
    assert "iree-dispatch-creation-form-dispatch-regions" not in comment
    report = read_json(tmp_path / "3.11.0-3.13.0/report.json")
    lone = next(row["name"] for row in report.cells[0].dispatches if not row["base"])
    cell = (
        "--model",
        "attn_out_proj",
        "--target",
        "vmvx",
        "--dispatch",
        f"head:{lone}",
    )
    sides = ("--base", "3.11.0", "--head", "3.13.0", "--config", "c.yml")
    answer = json.loads(
        bot("trace", *sides, *cell, "--format", "json", cwd=tmp_path).stdout
    )
    program = answer["program"]
    assert (program["status"], program["phase"]) == ("proved", "global-optimization")
    assert (program["restored_regions"], program["regions"]) == (3, 3)
    assert program["pass"]["name"] == answer["parts_at"] == NEW_PASS
    assert (program["pass"]["runs_on"], program["pass"]["status"]) == (
        HEAD_ONLY,
        "proved",
    )
    # The very bytes: head without the pass has the code that base's regions have in
    # head's compiler.
    assert program["pass"]["restored_bytes"] == program["moved_bytes"] != 0


def test_a_pass_of_both_releases_that_changed_is_named() -> None:
    """Masked attention became two dispatches by a change of elementwise fusion.

    Regions are formed as before.
    """
    source = CompileInput("m", PROGRAMS / "masked_attention.mlir")
    with compile_setup("3.11.0") as base, compile_setup("3.12.0") as head:
        proof = prove_program(
            ProgramSide(base, FLAGS, source), ProgramSide(head, FLAGS, source)
        ).proof
    assert (proof.status, proof.phase, proof.regions) == (
        "proved",
        "dispatch-creation",
        3,
    )
    assert proof.passed is not None
    assert (proof.passed.name, proof.passed.status, proof.passed.restored_regions) == (
        "iree-dispatch-creation-elementwise-op-fusion",
        "proved",
        3,
    )


def test_a_program_with_equal_regions_has_no_cause() -> None:
    """3.12.0 and 3.13.0 form the same regions of it; the code differs behind that."""
    source = CompileInput("m", PROGRAMS / "attn_out_proj.mlir")
    with compile_setup("3.12.0") as base, compile_setup("3.13.0") as head:
        outcome = prove_program(
            ProgramSide(base, FLAGS, source), ProgramSide(head, FLAGS, source)
        )
    assert (outcome.proof.status, outcome.proof.why) == ("not-tried", SAME_REGIONS)
    assert outcome.proof.pass_name == ""


WITH_PARAMETER = """
util.global private @w {policy} = #flow.parameter.named<"model"::"w"> : tensor<4xf32>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %w = util.global.load @w : tensor<4xf32>
  %sum = arith.addf %a, %w : tensor<4xf32>
  return %sum : tensor<4xf32>
}}
"""
POLICIES = {
    "3.11.0": "{inlining_policy = #util.inline.never}",
    "3.13.0": "<inlining_policy = #util.inline.never>",
}


@pytest.mark.parametrize("phase", ["preprocessing", "dispatch-creation", "flow"])
def test_programs_with_parameters_are_read_by_later_and_earlier_releases(
    tmp_path: Path, phase: str
) -> None:
    """Releases spell the policy of globals and the operands of imports differently."""
    with compile_setup("3.11.0") as old, compile_setup("3.13.0") as new:
        sides = []
        for release, setup in (("3.11.0", old), ("3.13.0", new)):
            path = tmp_path / f"{release}.mlir"
            text = WITH_PARAMETER.format(policy=POLICIES[release])
            path.write_text(text, encoding="utf-8")
            sides.append(ProgramSide(setup, FLAGS, CompileInput("m", path)))
        for base, head in (sides, reversed(sides)):
            programs = Programs(base=base, head=head, wanted={}, regions=0)
            fed = programs.fed(base.at(phase), phase)
            assert regions_of(fed) == regions_of(head.at("flow")) != {}


def test_one_run_prints_what_a_run_to_each_phase_prints() -> None:
    source = CompileInput("m", PROGRAMS / "masked_attention.mlir")
    with compile_setup("3.12.0") as setup:
        side = ProgramSide(setup, FLAGS, source)
        for phase in PROGRAM_PHASES:
            options = (*FLAGS, f"--compile-to={phase}", UNTHREADED)
            assert side.at(phase) == compile_to(setup, options, source), phase
        assert side.compiles == 1
