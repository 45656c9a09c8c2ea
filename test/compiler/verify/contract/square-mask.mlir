// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 2: a square mask on a rectangular score array.
// The mask of attention is written as positions: a query sees the keys at
// positions up to its own. Row numbers of the chunk make it square over the
// chunk, at the sequence's start.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @step(%rows: index, %q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %layer = arith.constant 0 : index
  // expected-note@+1 {{hint: use %0}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %next = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-note@+1 {{positions of another origin}}
  %square = tensor.generate %rows {
  ^bb0(%i: index):
    %row = arith.index_cast %i : index to i64
    tensor.yield %row : i64
  } : tensor<?xi64>
  // expected-error@+1 {{expected a mask with a row for each query and a column for each position of the sequence, from kvc.positions, but got a mask that is square over the rows of the result of tensor.generate}}
  %a = kvc.attend %q to %next layer %layer at %square of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %a, %after : tensor<?x4xf32>, !cache
}
