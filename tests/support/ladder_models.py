"""Models of one dispatch each, whose code changed between releases in a phase that other evidence does not show."""

EMBEDDING_NORM = """
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%table: tensor<30522x768xf32>, %ids: tensor<128xi32>, %segments: tensor<128x768xf32>,
    %positions: tensor<128x768xf32>, %scale: tensor<768xf32>, %shift: tensor<768xf32>) -> tensor<128x768xf32> {
  %zero = arith.constant 0.0 : f32
  %width = arith.constant 7.68e+02 : f32
  %epsilon = arith.constant 9.99999996E-13 : f32
  %rows = tensor.empty() : tensor<128xf32>
  %empty = tensor.empty() : tensor<128x768xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<128xf32>) -> tensor<128xf32>
  %words = linalg.generic {indexing_maps = [#row, #all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %segments, %positions : tensor<128xi32>, tensor<128x768xf32>, tensor<128x768xf32>)
      outs(%empty : tensor<128x768xf32>) {
  ^bb0(%id: i32, %segment: f32, %position: f32, %out: f32):
    %column = linalg.index 1 : index
    %row = arith.index_cast %id : i32 to index
    %word = tensor.extract %table[%row, %column] : tensor<30522x768xf32>
    %0 = arith.addf %word, %segment : f32
    %1 = arith.addf %0, %position : f32
    linalg.yield %1 : f32
  } -> tensor<128x768xf32>
  %sums = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%words : tensor<128x768xf32>) outs(%zeros : tensor<128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  %centered = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%words, %sums : tensor<128x768xf32>, tensor<128xf32>) outs(%empty : tensor<128x768xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %sum, %width : f32
    %1 = arith.subf %in, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<128x768xf32>
  %squares = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%centered : tensor<128x768xf32>) outs(%zeros : tensor<128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %0, %out : f32
    linalg.yield %1 : f32
  } -> tensor<128xf32>
  %result = linalg.generic
      {indexing_maps = [#all, #row, #column, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%centered, %squares, %scale, %shift : tensor<128x768xf32>, tensor<128xf32>, tensor<768xf32>, tensor<768xf32>)
      outs(%empty : tensor<128x768xf32>) {
  ^bb0(%in: f32, %square: f32, %factor: f32, %offset: f32, %out: f32):
    %0 = arith.divf %square, %width : f32
    %1 = arith.addf %0, %epsilon : f32
    %2 = math.rsqrt %1 : f32
    %3 = arith.mulf %in, %2 : f32
    %4 = arith.mulf %3, %factor : f32
    %5 = arith.addf %4, %offset : f32
    linalg.yield %5 : f32
  } -> tensor<128x768xf32>
  return %result : tensor<128x768xf32>
}
"""
"""BERT's embeddings and the norm after them; from 3.10.0 to 3.11.0 its configuration changed, and so did its code."""

POINTWISE = """
#input = affine_map<(d0, d1, d2, d3) -> (d3, d1, d2)>
#filter = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
#sum = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d0)>
func.func @main(%image: tensor<128x28x28xf32>, %weights: tensor<256x128xf32>, %mean: tensor<256xf32>,
    %factor: tensor<256xf32>, %scale: tensor<256xf32>, %shift: tensor<256xf32>) -> tensor<256x30x30xf32> {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %empty = tensor.empty() : tensor<256x28x28xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x28x28xf32>) -> tensor<256x28x28xf32>
  %product = linalg.generic {indexing_maps = [#input, #filter, #sum],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%image, %weights : tensor<128x28x28xf32>, tensor<256x128xf32>) outs(%zeros : tensor<256x28x28xf32>) {
  ^bb0(%in: f32, %weight: f32, %out: f32):
    %0 = arith.mulf %in, %weight : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<256x28x28xf32>
  %result = linalg.generic {indexing_maps = [#all, #channel, #channel, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%product, %mean, %factor, %scale, %shift
        : tensor<256x28x28xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>)
      outs(%empty : tensor<256x28x28xf32>) {
  ^bb0(%in: f32, %m: f32, %f: f32, %s: f32, %b: f32, %out: f32):
    %0 = arith.subf %in, %m : f32
    %1 = arith.mulf %0, %f : f32
    %2 = arith.mulf %1, %s : f32
    %3 = arith.addf %2, %b : f32
    %4 = arith.cmpf ogt, %3, %zero : f32
    %5 = arith.select %4, %3, %zero : f32
    %6 = arith.cmpf olt, %six, %5 : f32
    %7 = arith.select %6, %six, %5 : f32
    linalg.yield %7 : f32
  } -> tensor<256x28x28xf32>
  %padded = tensor.pad %result low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%0: index, %1: index, %2: index):
    tensor.yield %zero : f32
  } : tensor<256x28x28xf32> to tensor<256x30x30xf32>
  return %padded : tensor<256x30x30xf32>
}
"""
"""A pointwise convolution of MobileNet; from 3.11.0 to 3.13.0 its tiles changed, and LLVM's code generator did, too."""
