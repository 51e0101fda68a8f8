"""Real releases with data tiling off and on: reports say of the new dispatches and of the old regions what is true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_compilers import bot, own_cache

from bot.cli.main import main
from bot.core.snapshot import Cell, Dispatch
from bot.core.trace import DispatchTrace
from bot.study.tracing import SideTracer

pytestmark = pytest.mark.compiler

MODEL = """
func.func @main(%a: tensor<64x128xf32>, %b: tensor<128x256xf32>) -> tensor<64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x256xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>) -> tensor<64x256xf32>
  %result = linalg.matmul ins(%a, %b : tensor<64x128xf32>, tensor<128x256xf32>)
      outs(%filled : tensor<64x256xf32>) -> tensor<64x256xf32>
  return %result : tensor<64x256xf32>
}
"""
CONFIGURATION = """
schema: code-size-config/1
models: [matmul.mlir]
targets:
  llvm-cpu-x86_64: {extends: llvm-cpu-x86_64, flags: [%s]}
"""
FIRST_PASSES = {
    "3.11.0": "iree-dispatch-creation-set-encoding",
    "3.13.0": "iree-dispatch-creation-annotate-data-tiling-hints",
}
"""Release → the pass by which an encoding begins: without the hints, 3.13.0 sets none."""
ENCODES = "it changes the encoding of a tensor, and only head has it"


def sides_of(home: Path, release: str, flag: str) -> list[str]:
    """Return the arguments for a model without and with data tiling, and an empty cache."""
    (home / "matmul.mlir").write_text(MODEL)
    (home / "off.yml").write_text(CONFIGURATION % f"{flag}=false")
    (home / "on.yml").write_text(CONFIGURATION % flag)
    cache = own_cache(home / "cache", release)
    configs = ("--config", home / "off.yml", "--head-config", home / "on.yml")
    return [release, release, *map(str, configs), "--cache", str(cache)]


@pytest.mark.parametrize(
    "flag", ["--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling"]
)
@pytest.mark.parametrize("release", ["3.11.0", "3.13.0"])
def test_regions_that_data_tiling_keeps_are_not_formed_differently(
    tmp_path: Path, release: str, flag: str
) -> None:
    out = tmp_path / "out"
    bot("compare", *sides_of(tmp_path, release, flag), "--out", out)
    report = json.loads((out / "report.json").read_text())
    (cell,) = [cell for cell in report["cells"] if cell["state"] == "changed"]
    rows = {row["name"]: row for row in cell["dispatches"]}
    encoding = [row for name, row in rows.items() if name.startswith("_encoding_")]
    assert len(encoding) == 2 and {(row["cause"], row["note"]) for row in encoding} == {
        (None, ENCODES)
    }
    (matmul,) = [row for name, row in rows.items() if not name.startswith("_encoding_")]
    assert matmul["base"]["sites"] == matmul["head"]["sites"] == 1
    assert FIRST_PASSES[release] in json.dumps(matmul)
    assert sum(cell["waterfall"].values()) == sum(
        cell["metrics"]["artifact_bytes"][side] * sign
        for side, sign in (("head", 1), ("base", -1))
    )
    text = "".join(
        (out / name).read_text()
        for name in ("report.json", "comment.md", "report.html")
    )
    for lie in (
        "formed differently",
        "it has other dispatches than",
        "IR was not read",
    ):
        assert lie not in text, lie


def test_a_second_run_traces_no_dispatch_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also no dispatch that the passes over the program form alike on both sides."""
    traced = list[str]()
    original = SideTracer.trace

    def counted(
        self: SideTracer, cell: Cell, row: Dispatch, before: DispatchTrace | None
    ) -> DispatchTrace:
        traced.append(row.name)
        return original(self, cell, row, before)

    monkeypatch.setattr(SideTracer, "trace", counted)
    sides = sides_of(tmp_path, "3.13.0", "--iree-opt-data-tiling")
    reports = []
    for out in ("first", "second"):
        assert main(["compare", *sides, "--out", str(tmp_path / out)]) in (0, 1)
        reports.append((tmp_path / out / "report.json").read_text())
        if out == "first":
            assert any("matmul" in name for name in traced)
            traced.clear()
    assert traced == []
    assert reports[0] == reports[1]
