// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 9: a position table shorter than the capacity.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{the table}}
kvc.weight @position_table : tensor<16x4xf32> from "positions"
// expected-note@+1 {{hint: use a capacity of 16 at most for %arg1}}
func.func @step(%s: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{expected a position table with a row for each position of the cache's capacity (20), but got 16 rows}}
  %x = kvc.embed %p in @position_table : tensor<?xi64> -> tensor<?x4xf32>
  return %x : tensor<?x4xf32>
}
