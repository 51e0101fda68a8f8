"""3.10.0 → 3.12.0: LLVM writes addresses in another way, which is no cause of other code."""

from __future__ import annotations

from pathlib import Path

import pytest
from json_rows import read_json
from real_compilers import bot

pytestmark = pytest.mark.compiler

DEPTHWISE = """
func.func @main(%image: tensor<1x58x58x96xf32>, %filter: tensor<3x3x96xf32>)
    -> tensor<1x56x56x96xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x56x56x96xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x56x56x96xf32>)
      -> tensor<1x56x56x96xf32>
  %result = linalg.depthwise_conv_2d_nhwc_hwc
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%image, %filter : tensor<1x58x58x96xf32>, tensor<3x3x96xf32>)
      outs(%filled : tensor<1x56x56x96xf32>) -> tensor<1x56x56x96xf32>
  return %result : tensor<1x56x56x96xf32>
}
"""


def test_a_pass_that_only_respells_addresses_is_not_named(tmp_path: Path) -> None:
    """The report named `InstCombinePass`: 3 `getelementptr i64` fewer."""
    (tmp_path / "m.mlir").write_text(DEPTHWISE, encoding="utf-8")
    config = "schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [cuda]\n"
    (tmp_path / "c.yml").write_text(config, encoding="utf-8")
    sides = ("--base", "3.10.0", "--head", "3.12.0")
    bot("compare", *sides, "--config", "c.yml", "--out", "out", cwd=tmp_path)
    report = read_json(tmp_path / "out/report.json")
    (cause,) = [root for root in report.root_causes if root.cause == "codegen"]
    assert (cause["pass"], cause.what) == (None, "the back end changed")
    assert cause["parts"] == {"back_end": cause["bytes"]["net"]}
