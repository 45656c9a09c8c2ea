// RUN: kvc-test-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 10: a layout that forgets.
// A layout says how many positions a query is sure to find. Attention that sees more
// isn't over the full prefix: a window of its own may be as large, and a function
// that is to see less says so by the attribute `kvc.inexact`. `#kvc_test.forgetting`
// is a layout of the tests, which `kvc-test-opt` knows.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc_test.forgetting>
func.func @step(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{hint: use '!kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>' for %1}}
  %next = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected a layout that keeps every position that a query sees (all), or a function that is kvc.inexact, but got #kvc_test.forgetting, which keeps the last 1}}
  %a = kvc.attend %q to %next layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %a, %after : tensor<?x4xf32>, !cache
}
