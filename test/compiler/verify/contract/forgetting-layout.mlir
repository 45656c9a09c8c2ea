// RUN: kvc-test-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 10: a layout that forgets.
// Attention over it isn't over the full prefix. A function that is to be so says it
// by the attribute `kvc.inexact`. `#kvc_test.forgetting` is a layout of the tests,
// which `kvc-test-opt` knows.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc_test.forgetting>
// expected-note@+2 {{hint: use '!kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>' for %arg0}}
// expected-error@+1 {{expected a layout that keeps every position, so that attention is over the full prefix, or a function that is kvc.inexact, but got #kvc_test.forgetting}}
func.func @step(%cache: !cache) -> !cache {
  return %cache : !cache
}
