// Attention over a sequence of 128 rows, small: scores, softmax, and the weighted sum. `attention_dyn.mlir` is the same
// with a dynamic length.
#scores = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0, d1)>
module @attention {
  func.func @main(%query: tensor<4x128x32xf32>, %key: tensor<4x32x128xf32>, %value: tensor<4x128x32xf32>) -> tensor<4x128x32xf32> {
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %none = tensor.empty() : tensor<4x128x128xf32>
    %none_rows = tensor.empty() : tensor<4x128xf32>
    %none_out = tensor.empty() : tensor<4x128x32xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%none : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
    %zero_rows = linalg.fill ins(%zero : f32) outs(%none_rows : tensor<4x128xf32>) -> tensor<4x128xf32>
    %lowest_rows = linalg.fill ins(%lowest : f32) outs(%none_rows : tensor<4x128xf32>) -> tensor<4x128xf32>
    %zero_out = linalg.fill ins(%zero : f32) outs(%none_out : tensor<4x128x32xf32>) -> tensor<4x128x32xf32>
    %products = linalg.batch_matmul ins(%query, %key : tensor<4x128x32xf32>, tensor<4x32x128xf32>) outs(%zeros : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
    %largest = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%products : tensor<4x128x128xf32>) outs(%lowest_rows : tensor<4x128xf32>) {
    ^bb0(%score: f32, %so_far: f32):
      %larger = arith.maximumf %score, %so_far : f32
      linalg.yield %larger : f32
    } -> tensor<4x128xf32>
    %powers = linalg.generic {indexing_maps = [#scores, #row, #scores], iterator_types = ["parallel", "parallel", "parallel"]} ins(%products, %largest : tensor<4x128x128xf32>, tensor<4x128xf32>) outs(%none : tensor<4x128x128xf32>) {
    ^bb0(%score: f32, %maximum: f32, %unused: f32):
      %difference = arith.subf %score, %maximum : f32
      %power = math.exp %difference : f32
      linalg.yield %power : f32
    } -> tensor<4x128x128xf32>
    %sums = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%powers : tensor<4x128x128xf32>) outs(%zero_rows : tensor<4x128xf32>) {
    ^bb0(%power: f32, %so_far: f32):
      %sum = arith.addf %power, %so_far : f32
      linalg.yield %sum : f32
    } -> tensor<4x128xf32>
    %weights = linalg.generic {indexing_maps = [#scores, #row, #scores], iterator_types = ["parallel", "parallel", "parallel"]} ins(%powers, %sums : tensor<4x128x128xf32>, tensor<4x128xf32>) outs(%none : tensor<4x128x128xf32>) {
    ^bb0(%power: f32, %sum: f32, %unused: f32):
      %weight = arith.divf %power, %sum : f32
      linalg.yield %weight : f32
    } -> tensor<4x128x128xf32>
    %result = linalg.batch_matmul ins(%weights, %value : tensor<4x128x128xf32>, tensor<4x128x32xf32>) outs(%zero_out : tensor<4x128x32xf32>) -> tensor<4x128x32xf32>
    return %result : tensor<4x128x32xf32>
  }
}
