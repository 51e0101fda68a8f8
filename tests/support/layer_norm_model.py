"""A layer norm: two of its operations are configured alike by 3.10.0, and not by 3.11.0."""

LAYER_NORM = """
#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
!matrix = tensor<128x768xf32>
!row = tensor<128xf32>
!table = tensor<1000x768xf32>
func.func @main(%table: !table, %words: tensor<128xi32>, %b: !matrix, %scale: tensor<768xf32>) -> !matrix {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 768.0 : f32
  %epsilon = arith.constant 1.0e-12 : f32
  %empty = tensor.empty() : !matrix
  %rows = tensor.empty() : !row
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : !row) -> !row
  %in = linalg.generic {indexing_maps = [#row, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%words, %b : tensor<128xi32>, !matrix) outs(%empty : !matrix) {
  ^bb0(%word: i32, %x: f32, %out: f32):
    %at = linalg.index 1 : index
    %number = arith.index_cast %word : i32 to index
    %entry = tensor.extract %table[%number, %at] : !table
    %0 = arith.addf %entry, %x : f32
    linalg.yield %0 : f32
  } -> !matrix
  %sum = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]}
      ins(%in : !matrix) outs(%zeros : !row) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.addf %x, %out : f32
    linalg.yield %0 : f32
  } -> !row
  %variance = linalg.generic {indexing_maps = [#matrix, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%in, %sum : !matrix, !row) outs(%zeros : !row) {
  ^bb0(%x: f32, %s: f32, %out: f32):
    %0 = arith.divf %s, %count : f32
    %1 = arith.subf %x, %0 : f32
    %2 = arith.mulf %1, %1 : f32
    %3 = arith.addf %2, %out : f32
    linalg.yield %3 : f32
  } -> !row
  %norm = linalg.generic {
      indexing_maps = [#matrix, #row, #row, #column, #matrix], iterator_types = ["parallel", "parallel"]
  } ins(%in, %sum, %variance, %scale : !matrix, !row, !row, tensor<768xf32>) outs(%empty : !matrix) {
  ^bb0(%x: f32, %s: f32, %v: f32, %w: f32, %out: f32):
    %0 = arith.divf %s, %count : f32
    %1 = arith.subf %x, %0 : f32
    %2 = arith.divf %v, %count : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.rsqrt %3 : f32
    %5 = arith.mulf %1, %4 : f32
    %6 = arith.mulf %5, %w : f32
    linalg.yield %6 : f32
  } -> !matrix
  return %norm : !matrix
}
"""
