"""Options of real compilers with their defaults, and a changed default proved by an experiment."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alone_stage import compile_setup, measured
from prepared_program import bot

from bot.compiler.compiling import CompileSetup
from bot.compiler.defaults import option_defaults
from bot.core.defaults import (
    ChangedDefaults,
    DefaultChange,
    OptionDefaults,
    compare_defaults,
)
from bot.core.proof import NOT_TRIED, PROVED, REFUTED
from bot.core.snapshot import Failure
from bot.show.defaults import default_words
from bot.study.proving_defaults import (
    BuildSide,
    FoundDefault,
    base_default,
    prove_default,
    why_set,
)
from bot.system.cancel import Cancel

BASE = "3.10.0"
HEAD = "3.11.0"
REASSOCIATE = "--iree-llvmcpu-reassociate-fp-reductions"
SUM = """
#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%a: tensor<128x768xf32>) -> tensor<128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<128x768xf32>) outs(%init : tensor<128xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %sum : tensor<128xf32>
}
"""


@pytest.fixture(scope="module")
def setups() -> Iterator[dict[str, CompileSetup]]:
    """Release → how it compiles."""
    with compile_setup(BASE) as base, compile_setup(HEAD) as head:
        yield {BASE: base, HEAD: head}


@pytest.fixture(scope="module")
def sides(
    setups: dict[str, CompileSetup], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, BuildSide]:
    """Release → the build of a sum over rows on x86-64."""
    build_sides = {}
    for release, setup in setups.items():
        stage = measured(
            tmp_path_factory.mktemp("side"), release, SUM, "llvm-cpu-x86_64"
        )
        (cell,) = stage.side.cells
        (row,) = cell.dispatches
        build_sides[release] = BuildSide(setup, stage.argv(cell), stage.source, row)
    return build_sides


def defaults(setup: CompileSetup) -> OptionDefaults:
    option_values = option_defaults(setup.toolchain, Cancel())
    assert not isinstance(option_values, Failure), option_values
    return option_values


@pytest.mark.compiler
@pytest.mark.slow
def test_the_options_of_two_releases_are_compared(
    setups: dict[str, CompileSetup],
) -> None:
    """The option moved between registries in 3.11.0: 3.10.0 has it, and does not report its default."""
    base = defaults(setups[BASE])
    head = defaults(setups[HEAD])
    assert (
        base.defaults["--iree-input-type"]
        == head.defaults["--iree-input-type"]
        == "auto"
    )
    assert REASSOCIATE in base.named and REASSOCIATE not in base.defaults
    changes = compare_defaults(base, head)
    assert DefaultChange(REASSOCIATE, None, "false") in changes.unreported
    # the folder of its own files is no default of a compiler
    assert changes.changed == ()
    unreported = {change.option for change in changes.unreported}
    # options that only one of the releases has
    assert "--iree-rocm-target" in head.defaults
    assert "--iree-vm-bytecode-module-optimize" in base.defaults
    assert unreported.isdisjoint(
        {"--iree-rocm-target", "--iree-vm-bytecode-module-optimize"}
    )
    back = compare_defaults(head, base)
    assert [change.option for change in back.unreported] == [
        change.option for change in changes.unreported
    ]
    assert compare_defaults(head, head) == ChangedDefaults((), ())


@pytest.mark.compiler
@pytest.mark.slow
def test_a_changed_default_is_proved_where_the_compiler_does_not_report_it(
    sides: dict[str, BuildSide],
) -> None:
    change = DefaultChange(REASSOCIATE, None, "false")
    assert base_default(sides[BASE], change) == FoundDefault("true", compiles=2)
    known = DefaultChange(REASSOCIATE, "true", "false")
    proof = prove_default(sides[BASE], sides[HEAD], known)
    assert (proof.status, proof.is_exact, proof.compiles) == (PROVED, True, 2)
    assert (
        proof.moved_bytes == proof.restored_bytes
        and proof.moved_bytes
        and proof.moved_bytes > 100
    )
    assert proof.knobs == (f"{REASSOCIATE}=true",)


@pytest.mark.compiler
@pytest.mark.slow
def test_a_comparison_tries_changed_defaults(tmp_path: Path) -> None:
    """The one that did it is proved. The others give the same code on base."""
    (tmp_path / "m.mlir").write_text(SUM, encoding="utf-8")
    config = (
        "schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [llvm-cpu-x86_64]\n"
    )
    (tmp_path / "c.yml").write_text(config, encoding="utf-8")
    bot(
        "compare",
        "--base",
        BASE,
        "--head",
        HEAD,
        "--config",
        "c.yml",
        "--out",
        "out",
        cwd=tmp_path,
    )
    report = json.loads((tmp_path / "out/report.json").read_text(encoding="utf-8"))
    by_option = {changed["option"]: changed for changed in report["changed_defaults"]}
    assert (by_option[REASSOCIATE]["base"], by_option[REASSOCIATE]["head"]) == (
        None,
        "false",
    )
    tried = by_option.pop(REASSOCIATE)["tried"]
    assert (tried["status"], tried["base"], tried["target"]) == (
        "proved",
        "true",
        "llvm-cpu-x86_64",
    )
    assert tried["restored_bytes"] == tried["moved_bytes"] > 100
    assert {changed["tried"]["status"] for changed in by_option.values()} == {
        "not-tried"
    }
    line = (
        f"default of {REASSOCIATE}: true (found by experiment) → false · proved: base's"
        " value undoes 100 %"
    )
    assert line in (tmp_path / "out/summary.md").read_text(encoding="utf-8")
    explained = bot(
        "explain", "out/report.json", "--model", "m", "--target", "x86_64", cwd=tmp_path
    ).stdout
    assert line in " ".join(explained.split())


@pytest.mark.compiler
@pytest.mark.slow
def test_one_compiler_on_both_sides_has_no_changed_default(tmp_path: Path) -> None:
    """A flag is its own experiment, so that nobody is asked."""
    (tmp_path / "m.mlir").write_text(SUM, encoding="utf-8")
    config = "schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [vmvx]\n"
    (tmp_path / "c.yml").write_text(config, encoding="utf-8")
    flag = "--flags=--iree-opt-level=O2"
    bot(
        "compare",
        "--compiler",
        HEAD,
        flag,
        "--config",
        "c.yml",
        "--out",
        "out",
        cwd=tmp_path,
    )
    assert "changed_defaults" not in json.loads(
        (tmp_path / "out/report.json").read_text(encoding="utf-8")
    )


@pytest.mark.compiler
@pytest.mark.slow
def test_a_default_that_did_nothing_is_refuted_or_not_tried(
    sides: dict[str, BuildSide],
) -> None:
    base = sides[BASE]
    head = sides[HEAD]
    unrelated = prove_default(
        base, head, DefaultChange("--iree-llvmcpu-loop-unrolling", "true", "false")
    )
    assert (unrelated.status, unrelated.restored_bytes) == (REFUTED, 0)
    idle = base_default(
        base, DefaultChange("--iree-flow-enable-pad-handling", None, "false")
    )
    assert idle == FoundDefault(
        value=None,
        why=(
            "base does not report its default, and on base head's value gives the same"
            " code"
        ),
        compiles=1,
    )
    unknown = prove_default(base, head, DefaultChange("--no-such-option", "1", "2"))
    assert unknown.status == NOT_TRIED
    assert unknown.why.startswith("head does not compile with --no-such-option=1: ")
    overridden = replace(head, argv=(*head.argv, f"{REASSOCIATE}=true"))
    assert (
        why_set(base, overridden, REASSOCIATE)
        == f"the build on head sets {REASSOCIATE} itself"
    )


@pytest.mark.compiler
def test_a_library_that_is_none_has_a_reason(
    setups: dict[str, CompileSetup], tmp_path: Path
) -> None:
    toolchain = replace(setups[HEAD].toolchain, binary=tmp_path / "iree-compile")
    missing = option_defaults(toolchain, Cancel())
    assert isinstance(missing, Failure) and "no libIREECompiler.so" in missing.message
    (tmp_path / "libIREECompiler.so").write_bytes(Path(sys.executable).read_bytes())
    broken = option_defaults(toolchain, Cancel())
    assert isinstance(broken, Failure)
    assert broken.message.startswith("the defaults of the options cannot be read: ")


def test_what_differs_in_options() -> None:
    base = OptionDefaults(
        {"--a": "1", "--b": "", "--c": "x", "--gone": "1"}, frozenset({"--new-in-help"})
    )
    head = OptionDefaults(
        {"--a": "2", "--b": "", "--new": "1", "--new-in-help": "y"}, frozenset({"--c"})
    )
    changes = compare_defaults(base, head)
    assert changes == ChangedDefaults(
        changed=(DefaultChange("--a", "1", "2"),),
        unreported=(
            DefaultChange("--c", "x", None),
            DefaultChange("--new-in-help", None, "y"),
        ),
    )
    assert default_words(changes.changed[0]) == "default of --a: 1 → 2"
    assert (
        default_words(DefaultChange("--c", "", None))
        == "default of --c: empty → not reported by head"
    )
    assert (
        default_words(DefaultChange("--c", None, "y"))
        == "default of --c: not reported by base → y"
    )
