// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 5: a chunk appended twice.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @step(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+2 {{appended to here}}
  // expected-note@+1 {{hint: use %1, which has the chunk in this layer already}}
  %once = kvc.append %k, %k to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected one append to a layer in a step, but got a second one to layer 0}}
  %twice = kvc.append %k, %k to %once layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %twice by %s : !cache, tensor<?xi32>
  return %after : !cache
}
