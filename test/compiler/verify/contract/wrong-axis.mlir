// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 7: concatenation along the wrong axis.
// Tokens are rows: a join along the width that isn't one of whole heads puts new
// keys beside old ones.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{hint: tokens are rows: append %arg0 in a step of its own, and attend to the cache}}
func.func @step(%old: tensor<?x2xf32>, %new: tensor<?x2xf32>, %v: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{joined along the width here}}
  %k = tensor.concat dim(1) %old, %new : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  // expected-error@+1 {{expected keys joined along the width to be whole heads of 4, but got a piece of width 2}}
  %next = kvc.append %k, %v to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}
