"""Small reductions: flags of a single release change their code in few passes of MLIR."""

from __future__ import annotations

_REDUCTION = """
#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%a: tensor<64x{width}xf32>) -> tensor<64xf32> {{
  %start = arith.constant {start} : f32
  %rows = tensor.empty() : tensor<64xf32>
  %filled = linalg.fill ins(%start : f32) outs(%rows : tensor<64xf32>) -> tensor<64xf32>
  %reduced = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%a : tensor<64x{width}xf32>) outs(%filled : tensor<64xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %0 = arith.{operation} %in, %out : f32
    linalg.yield %0 : f32
  }} -> tensor<64xf32>
  return %reduced : tensor<64xf32>
}}
"""

SUMS = _REDUCTION.format(width=768, start="0.0", operation="addf")
MAXIMA = _REDUCTION.format(width=100, start="0xFF800000", operation="maximumf")
