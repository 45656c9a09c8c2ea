// The cache's numbers are those of the arithmetic, or narrower: a wider one would hold
// what neither lowering computes with.
// RUN: kvc-opt %s --kvc-verify-forward --verify-diagnostics

!cache = !kvc.cache<layers 1, kv_heads 1, capacity 16, key 4, value 4, f64, #kvc.contiguous>
!rows = tensor<?x4xf32>
module @wide attributes {kvc.weights = "random:7"} {
  kvc.weight @table : tensor<5x4xf32> from "table"
  // expected-error@+1 {{expected a cache of numbers that are at most as wide as the logits, 'f32', but got 'f64'}}
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
    %0 = arith.constant 0 : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> !rows
    %next = kvc.append %x, %x to %cache layer %0 at %positions of %sequences : !rows, !rows, !cache, tensor<?xi64>, tensor<?xi32>
    %seen = kvc.attend %x to %next layer %0 at %positions of %sequences scale 0.5 : !rows, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %sequences : !cache, tensor<?xi32>
    %chosen = kvc.select %seen rows %outputs : !rows, tensor<?xi64> -> !rows
    %logits = kvc.linear %chosen by @table : !rows -> tensor<?x5xf32>
    return %logits, %after : tensor<?x5xf32>, !cache
  }
}
