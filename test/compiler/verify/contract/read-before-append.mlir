// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 3: keys read before they are appended.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{this cache}}
func.func @step(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{expected the step's keys of layer 0 to be appended before they are read, but got a cache without them}}
  %a = kvc.attend %q to %cache layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-note@+1 {{hint: use %2}}
  %next = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %a, %after : tensor<?x4xf32>, !cache
}
