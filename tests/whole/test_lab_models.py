"""Experiments with variants of a model, with the real compiler: static beside dynamic shapes, and growth with depth."""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
from pathlib import Path

import needs
import pytest
from json_rows import JsonRow, read_json
from places import ROOT
from real_compilers import binary, own_cache

from bot.cli.main import main

pytestmark = pytest.mark.compiler

COMPILER = "3.13.0"
CONFIG = "schema: code-size-config/1\ntargets: [llvm-cpu-x86_64]\n"
DEPTH = """\
schema: code-size-experiments/1
experiments:
  depth:
    question: How does it grow?
    columns: [compile_cpu_ms, dispatch_sites, executables, artifact_bytes]
    timing: true
    models: {{encoder: {encoder}}}
    variants: {{"1": {{layers: 1}}, "2": {{layers: 2}}, "4": {{layers: 4}}}}
"""


def asked(home: Path, *arguments: str) -> JsonRow:
    """What an experiment gave."""
    (home / "c.yml").write_text(CONFIG, encoding="utf-8")
    own_cache(home / "cache", COMPILER)
    places = [
        "--config",
        str(home / "c.yml"),
        "--cache",
        str(home / "cache"),
        "--out",
        str(home / "out"),
    ]
    assert (
        main(["lab", *arguments, *places, "--compiler", COMPILER, "--target", "x86_64"])
        == 0
    )
    return read_json(home / "out/lab.json")


def compiled(home: Path, command: str, *options: str, cwd: Path) -> Path:
    """The artifact of a printed command, run where its paths are relative to, with further options."""
    compiler = shlex.quote(str(binary(COMPILER)))
    line = command.replace("iree-compile -", f"{compiler} - {shlex.join(options)}", 1)
    line = re.sub(
        r"-o \S+", f"-o {shlex.quote(str(home / 'again.vmfb'))}", line, count=1
    )
    subprocess.run(["sh", "-c", line], cwd=cwd, check=True, capture_output=True)
    return home / "again.vmfb"


def elf_bytes(tool: str, library: Path) -> int:
    """The length of an ELF file by its own header: where the table of its sections, the last part, ends."""
    header = subprocess.run(
        [tool, "-hW", str(library)], check=True, capture_output=True, text=True
    ).stdout
    numbers = {}
    for line in header.splitlines():
        name, _, value = line.partition(":")
        if match := re.match(r"\s*(\d+)", value):
            numbers[name.strip()] = int(match[1])
    table = numbers["Size of section headers"] * numbers["Number of section headers"]
    return numbers["Start of section headers"] + table


def test_the_static_and_the_dynamic_export_have_the_bytes_that_readelf_has(
    tmp_path: Path,
) -> None:
    readelf = needs.program("readelf")
    lab = asked(tmp_path, "dynamic-shapes", "--model", "attention", "--no-run")
    cells = {cell.variant: cell for cell in lab.cells}
    assert list(cells) == ["divisible", "dynamic", "range", "static"]
    assert {cell.model for cell in lab.cells} == {"attention"}
    for name in ("static", "dynamic"):
        cell = cells[name]
        binaries = tmp_path / f"binaries-{name}"
        dump = f"--iree-hal-dump-executable-binaries-to={binaries}"
        artifact = compiled(tmp_path, cell.command, dump, cwd=ROOT / "configs")
        assert hashlib.sha256(artifact.read_bytes()).hexdigest() == cell.artifact_digest
        libraries = sorted(binaries.glob("*.so"))
        assert libraries
        assert cell.metrics["executable_bytes"] == sum(
            elf_bytes(readelf, path) for path in libraries
        )
        assert cell.metrics["artifact_bytes"] == artifact.stat().st_size
    assert (
        cells["dynamic"].metrics["executable_bytes"]
        > cells["static"].metrics["executable_bytes"]
    )
    assert [
        cells[name].metrics["dynamic_buffers"] > 0 for name in ("static", "dynamic")
    ] == [False, True]
    bounded = cells["divisible"]
    model = tmp_path / "out/models/divisible/attention.mlir"
    assert model.read_text(encoding="utf-8").count("util.assume.int") == 3
    assert "<umin = 16, umax = 512, udiv = 16>" in model.read_text(encoding="utf-8")
    again = compiled(tmp_path, bounded.command, cwd=tmp_path / "out")
    assert (
        hashlib.sha256(again.read_bytes()).hexdigest()
        == bounded.artifact_digest
        != cells["dynamic"].artifact_digest
    )
    plain = [
        cells[name].metrics["artifact_bytes"]
        for name in ("dynamic", "range", "divisible")
    ]
    assert plain == sorted(plain, reverse=True)


def test_depth_counts_each_layer_once_and_times_each_phase(tmp_path: Path) -> None:
    encoder = ROOT / "configs/lab/encoder.mlir"
    (tmp_path / "e.yml").write_text(DEPTH.format(encoder=encoder), encoding="utf-8")
    lab = asked(tmp_path, "depth", "--experiments", str(tmp_path / "e.yml"))
    cells = {cell.variant: cell for cell in lab.cells}
    sites = [cells[name].metrics["dispatch_sites"] for name in ("1", "2", "4")]
    assert sites == [sites[0], 2 * sites[0], 4 * sites[0]]
    assert len({cell.metrics["executables"] for cell in lab.cells}) == 1
    growth = {row.metric: row for row in lab.growth}
    assert (
        growth["dispatch_sites"].interval == [1.0, 1.0]
        and growth["executables"].exponent == 0.0
    )
    low, high = growth["compile_cpu_ms"].interval
    assert low <= growth["compile_cpu_ms"].exponent <= high
    assert (
        0 < growth["artifact_bytes"].exponent < 1
        and not growth["artifact_bytes"].warning
    )
    for cell in lab.cells:
        phases = [row.name for row in cell.phases]
        assert phases[:2] == ["input", "abi"] and phases[-2:] == ["vm", "artifact"]
        assert (
            all(row.wall_us >= 0 for row in cell.phases)
            and sum(row.wall_us for row in cell.phases) > 0
        )
        names = [row.name for row in cell.passes]
        assert (
            "SerializeTargetExecutablesPass" in names and "DumpModulePass" not in names
        )
    page = (tmp_path / "out/lab.md").read_text(encoding="utf-8")
    assert (
        "| dispatch sites | 12 | 24 | 48 |" in page
        and "compile CPU time, ms (varies)" in page
    )


PAIR = """\
module {
  func.func @sum(%first: !torch.vtensor<[?,4],f32>, %second: !torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32> {
    %one = torch.constant.int 1
    %sum = torch.aten.add.Tensor %first, %second, %one : !torch.vtensor<[?,4],f32>, !torch.vtensor<[?,4],f32>,
      !torch.int -> !torch.vtensor<[?,4],f32>
    return %sum : !torch.vtensor<[?,4],f32>
  }
}
"""
OF_ANY_MODEL = """\
schema: code-size-experiments/1
experiments:
  known:
    question: What do bounds give?
    columns: [artifact_bytes]
    models: {torch: torch.mlir, still: still.mlir, torn: torn.mlir}
    variants: {plain: {}, bounded: {assume: {min: 5, max: 100, divisor: 8}}}
"""
STILL = (
    "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a :"
    " tensor<4xf32>\n}\n"
)


def test_a_model_of_pytorch_gets_the_same_assumption_and_one_without_dynamic_dimensions_says_so(
    tmp_path: Path,
) -> None:
    for name, text in (("torch", PAIR), ("still", STILL), ("torn", "func.func @f(")):
        (tmp_path / f"{name}.mlir").write_text(text, encoding="utf-8")
    (tmp_path / "e.yml").write_text(OF_ANY_MODEL, encoding="utf-8")
    lab = asked(tmp_path, "known", "--experiments", str(tmp_path / "e.yml"))
    bounded = {cell.model: cell for cell in lab.cells if cell.variant == "bounded"}
    assert (
        bounded["still"].failure
        == "no argument of a public function has a dynamic dimension"
    )
    assert bounded["torn"].status == "failed" and "MLIRError" in bounded["torn"].failure
    assert bounded["torch"].status == "ok"
    model = tmp_path / "out/models/bounded/torch.mlir"
    done = subprocess.run(
        [str(binary(COMPILER)), str(model), "--compile-to=input", "-o", "-"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.count("<umin = 8, umax = 96, udiv = 8>") == 2
