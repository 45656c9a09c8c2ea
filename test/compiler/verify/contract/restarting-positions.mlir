// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 1: positions that restart.
// Here a step takes those of the step before.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @steps(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %layer = arith.constant 0 : index
  // expected-note@+1 {{made of the lengths of an older cache}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %first = kvc.append %k, %k to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-note@+1 {{hint: lengths change here: use kvc.positions of %2}}
  %between = kvc.advance %first by %s : !cache, tensor<?xi32>
  // expected-error@+1 {{expected positions of this step, but got those of a step before, which restart there}}
  %second = kvc.append %k, %k to %between layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %second by %s : !cache, tensor<?xi32>
  return %after : !cache
}
