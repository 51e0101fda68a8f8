// A layer of a transformer encoder, small, with parameters of its own: attention with 4 heads of 16, a layer norm, and
// a feed-forward network of 4 times the width. The lab writes the lines between `repeat` and `end` once for each layer.
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#reduced = affine_map<(d0, d1) -> (d0)>
#head = affine_map<(d0, d1, d2) -> (d0, d1)>
module @encoder {
  // repeat
  util.global private @layer{layer}.query = #flow.parameter.named<"model"::"layer{layer}.query"> : tensor<64x64xf32>
  util.global private @layer{layer}.key = #flow.parameter.named<"model"::"layer{layer}.key"> : tensor<64x64xf32>
  util.global private @layer{layer}.value = #flow.parameter.named<"model"::"layer{layer}.value"> : tensor<64x64xf32>
  util.global private @layer{layer}.output = #flow.parameter.named<"model"::"layer{layer}.output"> : tensor<64x64xf32>
  util.global private @layer{layer}.scale = #flow.parameter.named<"model"::"layer{layer}.scale"> : tensor<64xf32>
  util.global private @layer{layer}.up = #flow.parameter.named<"model"::"layer{layer}.up"> : tensor<64x256xf32>
  util.global private @layer{layer}.down = #flow.parameter.named<"model"::"layer{layer}.down"> : tensor<256x64xf32>
  // end
  func.func @main(%x0: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %width = arith.constant 64.0 : f32
    %small = arith.constant 1.0e-5 : f32
    %quarter = arith.constant 0.25 : f32
    %none = tensor.empty() : tensor<32x64xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%none : tensor<32x64xf32>) -> tensor<32x64xf32>
    %none_heads = tensor.empty() : tensor<4x32x16xf32>
    %zeros_heads = linalg.fill ins(%zero : f32) outs(%none_heads : tensor<4x32x16xf32>) -> tensor<4x32x16xf32>
    %none_keys = tensor.empty() : tensor<4x16x32xf32>
    %none_back = tensor.empty() : tensor<32x4x16xf32>
    %none_scores = tensor.empty() : tensor<4x32x32xf32>
    %zeros_scores = linalg.fill ins(%zero : f32) outs(%none_scores : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
    %none_rows = tensor.empty() : tensor<4x32xf32>
    %zeros_rows = linalg.fill ins(%zero : f32) outs(%none_rows : tensor<4x32xf32>) -> tensor<4x32xf32>
    %lowest_rows = linalg.fill ins(%lowest : f32) outs(%none_rows : tensor<4x32xf32>) -> tensor<4x32xf32>
    %none_row = tensor.empty() : tensor<32xf32>
    %zeros_row = linalg.fill ins(%zero : f32) outs(%none_row : tensor<32xf32>) -> tensor<32xf32>
    %none_wide = tensor.empty() : tensor<32x256xf32>
    %zeros_wide = linalg.fill ins(%zero : f32) outs(%none_wide : tensor<32x256xf32>) -> tensor<32x256xf32>
    // repeat
    %wq{layer} = util.global.load @layer{layer}.query : tensor<64x64xf32>
    %wk{layer} = util.global.load @layer{layer}.key : tensor<64x64xf32>
    %wv{layer} = util.global.load @layer{layer}.value : tensor<64x64xf32>
    %wo{layer} = util.global.load @layer{layer}.output : tensor<64x64xf32>
    %scale{layer} = util.global.load @layer{layer}.scale : tensor<64xf32>
    %up{layer} = util.global.load @layer{layer}.up : tensor<64x256xf32>
    %down{layer} = util.global.load @layer{layer}.down : tensor<256x64xf32>
    %q{layer} = linalg.matmul ins(%x{previous}, %wq{layer} : tensor<32x64xf32>, tensor<64x64xf32>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
    %k{layer} = linalg.matmul ins(%x{previous}, %wk{layer} : tensor<32x64xf32>, tensor<64x64xf32>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
    %v{layer} = linalg.matmul ins(%x{previous}, %wv{layer} : tensor<32x64xf32>, tensor<64x64xf32>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
    %q4{layer} = tensor.expand_shape %q{layer} [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf32> into tensor<32x4x16xf32>
    %k4{layer} = tensor.expand_shape %k{layer} [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf32> into tensor<32x4x16xf32>
    %v4{layer} = tensor.expand_shape %v{layer} [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf32> into tensor<32x4x16xf32>
    %qh{layer} = linalg.transpose ins(%q4{layer} : tensor<32x4x16xf32>) outs(%none_heads : tensor<4x32x16xf32>) permutation = [1, 0, 2]
    %kh{layer} = linalg.transpose ins(%k4{layer} : tensor<32x4x16xf32>) outs(%none_keys : tensor<4x16x32xf32>) permutation = [1, 2, 0]
    %vh{layer} = linalg.transpose ins(%v4{layer} : tensor<32x4x16xf32>) outs(%none_heads : tensor<4x32x16xf32>) permutation = [1, 0, 2]
    %scores{layer} = linalg.batch_matmul ins(%qh{layer}, %kh{layer} : tensor<4x32x16xf32>, tensor<4x16x32xf32>) outs(%zeros_scores : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
    %largest{layer} = linalg.generic {indexing_maps = [#map3, #head], iterator_types = ["parallel", "parallel", "reduction"]} ins(%scores{layer} : tensor<4x32x32xf32>) outs(%lowest_rows : tensor<4x32xf32>) {
    ^bb0(%score: f32, %so_far: f32):
      %larger = arith.maximumf %score, %so_far : f32
      linalg.yield %larger : f32
    } -> tensor<4x32xf32>
    %powers{layer} = linalg.generic {indexing_maps = [#map3, #head, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%scores{layer}, %largest{layer} : tensor<4x32x32xf32>, tensor<4x32xf32>) outs(%none_scores : tensor<4x32x32xf32>) {
    ^bb0(%score: f32, %maximum: f32, %unused: f32):
      %difference = arith.subf %score, %maximum : f32
      %scaled = arith.mulf %difference, %quarter : f32
      %power = math.exp %scaled : f32
      linalg.yield %power : f32
    } -> tensor<4x32x32xf32>
    %sums{layer} = linalg.generic {indexing_maps = [#map3, #head], iterator_types = ["parallel", "parallel", "reduction"]} ins(%powers{layer} : tensor<4x32x32xf32>) outs(%zeros_rows : tensor<4x32xf32>) {
    ^bb0(%power: f32, %so_far: f32):
      %sum = arith.addf %power, %so_far : f32
      linalg.yield %sum : f32
    } -> tensor<4x32xf32>
    %weights{layer} = linalg.generic {indexing_maps = [#map3, #head, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%powers{layer}, %sums{layer} : tensor<4x32x32xf32>, tensor<4x32xf32>) outs(%none_scores : tensor<4x32x32xf32>) {
    ^bb0(%power: f32, %sum: f32, %unused: f32):
      %weight = arith.divf %power, %sum : f32
      linalg.yield %weight : f32
    } -> tensor<4x32x32xf32>
    %mixed{layer} = linalg.batch_matmul ins(%weights{layer}, %vh{layer} : tensor<4x32x32xf32>, tensor<4x32x16xf32>) outs(%zeros_heads : tensor<4x32x16xf32>) -> tensor<4x32x16xf32>
    %back{layer} = linalg.transpose ins(%mixed{layer} : tensor<4x32x16xf32>) outs(%none_back : tensor<32x4x16xf32>) permutation = [1, 0, 2]
    %joined{layer} = tensor.collapse_shape %back{layer} [[0], [1, 2]] : tensor<32x4x16xf32> into tensor<32x64xf32>
    %attended{layer} = linalg.matmul ins(%joined{layer}, %wo{layer} : tensor<32x64xf32>, tensor<64x64xf32>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
    %added{layer} = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%attended{layer}, %x{previous} : tensor<32x64xf32>, tensor<32x64xf32>) outs(%none : tensor<32x64xf32>) {
    ^bb0(%left: f32, %right: f32, %unused: f32):
      %sum = arith.addf %left, %right : f32
      linalg.yield %sum : f32
    } -> tensor<32x64xf32>
    %squares{layer} = linalg.generic {indexing_maps = [#row, #reduced], iterator_types = ["parallel", "reduction"]} ins(%added{layer} : tensor<32x64xf32>) outs(%zeros_row : tensor<32xf32>) {
    ^bb0(%element: f32, %so_far: f32):
      %square = arith.mulf %element, %element : f32
      %sum = arith.addf %square, %so_far : f32
      linalg.yield %sum : f32
    } -> tensor<32xf32>
    %normed{layer} = linalg.generic {indexing_maps = [#row, #reduced, #column, #row], iterator_types = ["parallel", "parallel"]} ins(%added{layer}, %squares{layer}, %scale{layer} : tensor<32x64xf32>, tensor<32xf32>, tensor<64xf32>) outs(%none : tensor<32x64xf32>) {
    ^bb0(%element: f32, %squares: f32, %gain: f32, %unused: f32):
      %mean = arith.divf %squares, %width : f32
      %above = arith.addf %mean, %small : f32
      %root = math.rsqrt %above : f32
      %unit = arith.mulf %element, %root : f32
      %scaled = arith.mulf %unit, %gain : f32
      linalg.yield %scaled : f32
    } -> tensor<32x64xf32>
    %wide{layer} = linalg.matmul ins(%normed{layer}, %up{layer} : tensor<32x64xf32>, tensor<64x256xf32>) outs(%zeros_wide : tensor<32x256xf32>) -> tensor<32x256xf32>
    %bent{layer} = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%wide{layer} : tensor<32x256xf32>) outs(%none_wide : tensor<32x256xf32>) {
    ^bb0(%element: f32, %unused: f32):
      %positive = arith.maximumf %element, %zero : f32
      linalg.yield %positive : f32
    } -> tensor<32x256xf32>
    %narrow{layer} = linalg.matmul ins(%bent{layer}, %down{layer} : tensor<32x256xf32>, tensor<256x64xf32>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
    %x{layer} = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%narrow{layer}, %normed{layer} : tensor<32x64xf32>, tensor<32x64xf32>) outs(%none : tensor<32x64xf32>) {
    ^bb0(%left: f32, %right: f32, %unused: f32):
      %sum = arith.addf %left, %right : f32
      linalg.yield %sum : f32
    } -> tensor<32x64xf32>
    // end
    return %x{layers} : tensor<32x64xf32>
  }
}
