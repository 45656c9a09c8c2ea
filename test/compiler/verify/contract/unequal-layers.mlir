// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 6: layers whose lengths differ at the end.
// Here the loop ends too early.
!cache = !kvc.cache<layers 3, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @step(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{this cache}}
  %last = scf.for %layer = %0 to %2 step %1 iter_args(%c = %cache) -> !cache {
    %next = kvc.append %k, %k to %c layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %next : !cache
  }
  // expected-note@+2 {{hint: use what kvc.append to %1 at layer 2 gives}}
  // expected-error@+1 {{expected an append to each of the cache's 3 layers, so that all have one length, but got none to layer 2}}
  %after = kvc.advance %last by %s : !cache, tensor<?xi32>
  return %after : !cache
}
