"""Real releases with data tiling off and on: reports say of the new dispatches and of the old regions what is true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_compilers import bot, own_cache

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


@pytest.mark.parametrize(
    "flag", ["--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling"]
)
@pytest.mark.parametrize("release", ["3.11.0", "3.13.0"])
def test_regions_that_data_tiling_keeps_are_not_formed_differently(
    tmp_path: Path, release: str, flag: str
) -> None:
    (tmp_path / "matmul.mlir").write_text(MODEL)
    (tmp_path / "off.yml").write_text(CONFIGURATION % f"{flag}=false")
    (tmp_path / "on.yml").write_text(CONFIGURATION % flag)
    cache = own_cache(tmp_path / "cache", release)
    out = tmp_path / "out"
    sides = (
        release,
        release,
        "--config",
        tmp_path / "off.yml",
        "--head-config",
        tmp_path / "on.yml",
    )
    bot("compare", *sides, "--cache", cache, "--out", out)
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
