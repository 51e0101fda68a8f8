"""Every packaged experiment with the real compiler, from the command line to its files.

And known answers of one.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from fold_programs import layers
from json_rows import JsonRow, read_json
from places import ROOT
from real_compilers import binary

from bot.cli.main import main
from bot.config.experiments import load_experiments
from bot.running.runner import installed

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("short_runs")]

COMPILER = "3.13.0"
CONFIG = (
    "schema: code-size-config/1\nmodels: [models/*.mlir]\ntargets: [llvm-cpu-x86_64,"
    " vmvx]\n"
)
LONG = {"opt-level", "llvm-size-passes"}
"""Experiments of many variants, which are compiled only: what is run is run in shorter ones."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A small model with a configuration, and the cache of the session."""
    home = tmp_path_factory.mktemp("lab")
    (home / "models").mkdir()
    shutil.copy(ROOT / "tests/fixtures/e2e/models/tiny.mlir", home / "models/tiny.mlir")
    (home / "c.yml").write_text(CONFIG, encoding="utf-8")
    binary(COMPILER)
    (home / "cache").symlink_to(shared_cache)
    return home


def asked(
    home: Path, name: str, *arguments: str, config: Path | None = None
) -> JsonRow:
    """What an experiment gave."""
    out = home / f"out-{name}"
    argv = [
        "lab",
        name,
        "--config",
        str(config or home / "c.yml"),
        "--cache",
        str(home / "cache"),
        "--out",
        str(out),
    ]
    assert main([*argv, "--compiler", COMPILER, *arguments]) == 0
    lab = read_json(out / "lab.json")
    assert {path.name for path in out.iterdir()} >= {"lab.json", "lab.md"}
    return lab


def cell(
    lab: JsonRow, model: str, variant: str, target: str = "llvm-cpu-x86_64"
) -> JsonRow:
    row: JsonRow
    (row,) = [
        cell
        for cell in lab.cells
        if (cell.model, cell.target, cell.variant) == (model, target, variant)
    ]
    return row


OF_MODELS = {
    name for name, experiment in load_experiments().items() if experiment.models
}
"""Experiments with models of their own."""


@pytest.mark.parametrize(
    "name", sorted(load_experiments().keys() - {"aggressive-fusion"} - OF_MODELS)
)
def test_every_packaged_experiment_measures_its_variants(home: Path, name: str) -> None:
    experiment = load_experiments()[name]
    lab = asked(home, name, "--model", "tiny", *(("--no-run",) if name in LONG else ()))
    measured = {cell.variant for cell in lab.cells if cell.measured}
    expected = {
        variant.name
        for variant in experiment.variants
        if variant.targets is None or "llvm-cpu-x86_64" in variant.targets
    }
    assert measured == expected, [
        cell.failure for cell in lab.cells if not cell.measured
    ]
    for cell in lab.cells:
        assert not cell.measured or cell.metrics["artifact_bytes"]
    if lab.run and installed() is not None:
        compared_cells = [
            cell for cell in lab.cells if cell.variant != experiment.variants[0].name
        ]
        assert compared_cells and all(
            compared_cell.price or compared_cell.price_note
            for compared_cell in compared_cells
        )
    page = (home / f"out-{name}/lab.md").read_text(encoding="utf-8")
    assert (
        page.startswith(f"**Lab: {name}**. {experiment.question}")
        and "On `llvm-cpu-x86_64`" in page
    )


def test_aggressive_fusion_on_the_quick_suite_gives_what_is_known(home: Path) -> None:
    """The artifacts are only compiled: docs/lab.md has this experiment with runs, of a small model."""
    models = [
        word
        for name in ("bert_l4_f32_dyn", "mobilenet_v1_f32_224")
        for word in ("--model", name)
    ]
    lab = asked(
        home,
        "aggressive-fusion",
        *models,
        "--target",
        "x86_64",
        "--no-run",
        config=ROOT / "configs/quick.yml",
    )
    sites = [
        cell(lab, "bert_l4_f32_dyn", name).metrics["dispatch_sites"]
        for name in ("off", "on")
    ]
    assert sites == [92, 82]
    assert [cell(lab, "bert_l4_f32_dyn", name).status for name in ("off", "on")] == [
        "ok",
        "over-stack-limit",
    ]
    still = [
        cell(lab, "mobilenet_v1_f32_224", name).artifact_digest
        for name in ("off", "on")
    ]
    assert still[0] == still[1]
    page = (home / "out-aggressive-fusion/lab.md").read_text(encoding="utf-8")
    assert (
        "- With `on` 1 build needs the stack limit raised: `bert_l4_f32_dyn` on"
        " `llvm-cpu-x86_64`." in page
    )


def test_the_printed_command_gives_the_very_bytes(home: Path) -> None:
    lab = asked(
        home, "llvm-size-passes", "--no-run", "--target", "x86_64", "--model", "tiny"
    )
    measured = cell(lab, "tiny", "machine-outliner")
    line = measured.command.replace(
        "iree-compile", shlex.quote(str(binary(COMPILER))), 1
    )
    subprocess.run(["sh", "-c", line], cwd=home, check=True, capture_output=True)
    assert (
        hashlib.sha256((home / "tiny.vmfb").read_bytes()).hexdigest()
        == measured.artifact_digest
    )


@pytest.mark.usefixtures("runtime")
def test_a_variant_that_computes_otherwise_is_run_beside_the_first_and_timed(
    home: Path,
) -> None:
    text = (
        "schema: code-size-experiments/1\nexperiments:\n  width:\n    question:"
        " Wider?\n    run: true\n    columns: [artifact_bytes]\n    targets:"
        " [llvm-cpu-x86_64]\n    variants:\n      narrow: {}\n      wide: {targets:"
        " {'*': [--iree-llvmcpu-target-cpu=x86-64-v2]}}\n      same: {flags:"
        " [--enable-gvn-sink]}\n"
    )
    (home / "own.yml").write_text(text, encoding="utf-8")
    lab = asked(
        home, "width", "--experiments", str(home / "own.yml"), "--model", "tiny"
    )
    wide, same = (cell(lab, "tiny", name) for name in ("wide", "same"))
    assert (
        wide.equal is True
        and wide.price is not None
        and wide.price.low <= wide.price.ratio <= wide.price.high
    )
    assert (
        same.price is None
        and same.price_note == "the same artifact"
        and same.equal is True
    )
    assert lab.machine


HELD = """\
schema: code-size-experiments/1
experiments:
  held:
    question: Against what?
    run: true
    columns: [artifact_bytes]
    targets: [llvm-cpu-x86_64]
    variants:
      unknown: {flags: [--no-such-option]}
      plain: {flags: [--enable-gvn-sink]}
      slow: {targets: {'*': [--iree-llvmcpu-target-cpu=x86-64-v2]}}
"""


@pytest.mark.usefixtures("runtime")
def test_what_is_held_against_the_reference_is_its_own_program_and_what_is_not_says_why(
    home: Path,
) -> None:
    (home / "models/layers.mlir").write_text(
        layers([(3, 4), (5, 5), (7, 6), (11, 7)]), encoding="utf-8"
    )
    (home / "held.yml").write_text(HELD, encoding="utf-8")
    lab = asked(
        home,
        "held",
        "--experiments",
        str(home / "held.yml"),
        "--model",
        "layers",
        "--flags=--enable-gvn-hoist",
    )
    rows = {cell.variant: cell for cell in lab.cells}
    assert rows["unknown"].status == "unsupported" and rows["plain"].price is None
    assert rows["slow"].price
    assert "--enable-gvn-hoist --enable-gvn-sink" in rows["plain"].command
    page = (home / "out-held/lab.md").read_text(encoding="utf-8")
    assert (
        "On `llvm-cpu-x86_64`, 1 model, against `plain`: " in page
        and "against `unknown`" not in page
    )
    assert "| `plain` |" in page
