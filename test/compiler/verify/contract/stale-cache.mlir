// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 4: a stale cache value.
// An op takes it after another made the next one of it.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @step(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{consumed here; the cache that this op gives is the newer value}}
  %next = kvc.append %k, %k to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-note@+1 {{hint: use %2}}
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  // expected-error@+1 {{expected the newest value of the cache, but got one that was consumed before}}
  return %cache : !cache
}
