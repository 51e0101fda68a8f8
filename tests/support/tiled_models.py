"""Small models that releases tile differently: one matrix product, as a plain one and as convolutions of size 1."""

from __future__ import annotations

_MATMUL_LIKE = """
#in = affine_map<(d0, d1, d2, d3) -> (d3, d1, d2)>
#weights = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
#out = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
func.func @main(%a: tensor<{input}xf32>, %b: tensor<{channels}xf32>) -> tensor<{output}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{output}xf32>
  %sum = linalg.fill ins(%zero : f32) outs(%empty : tensor<{output}xf32>) -> tensor<{output}xf32>
  %0 = linalg.generic {{
      indexing_maps = [#in, #weights, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  }} ins(%a, %b : tensor<{input}xf32>, tensor<{channels}xf32>) outs(%sum : tensor<{output}xf32>) {{
  ^bb0(%x: f32, %y: f32, %z: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %z, %m : f32
    linalg.yield %s : f32
  }} -> tensor<{output}xf32>
  return %0 : tensor<{output}xf32>
}}
"""


def matmul_like(channels_in: int, channels_out: int, size: int) -> str:
    """Return a convolution of size 1 over `size` x `size` pixels."""
    return _MATMUL_LIKE.format(
        input=f"{channels_in}x{size}x{size}",
        channels=f"{channels_out}x{channels_in}",
        output=f"{channels_out}x{size}x{size}",
    )
