// Chunks that can't fit into the cache, as far as a program says so; the plan of a
// call finds the rest. An append is judged as if it runs.
// RUN: kvc-opt %s --kvc-inline --kvc-verify-cache-contract --split-input-file --verify-diagnostics

// What may fit is accepted.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
// The sequences of an argument may all differ, and their number is the caller's.
func.func @any_sequences(%k: tensor<100x4xf32>, %s: tensor<100xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<100xi32> -> tensor<100xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<100x4xf32>, tensor<100x4xf32>, !cache, tensor<100xi64>, tensor<100xi32>
  %after = kvc.advance %next by %s : !cache, tensor<100xi32>
  return %after : !cache
}
// There may be no token.
func.func @no_token(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  %last = scf.for %i = %0 to %8 step %1 iter_args(%c = %cache) -> !cache {
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    %next = kvc.append %k, %k to %c layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}
// A sequence that is cut has room again.
func.func @cut(%k: tensor<4x4xf32>, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %s = tensor.splat %a : tensor<4xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<4xi32> -> tensor<4xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after = kvc.advance %next by %s : !cache, tensor<4xi32>
  %cut = kvc.truncate %after sequence %0 to %0 : !cache
  %p_1 = kvc.positions %cut of %s : !cache, tensor<4xi32> -> tensor<4xi64>
  %next_1 = kvc.append %k, %k to %cut layer %0 at %p_1 of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after_1 = kvc.advance %next_1 by %s : !cache, tensor<4xi32>
  return %after_1 : !cache
}
// Steps of different sequences.
func.func @two_sequences(%k: tensor<4x4xf32>, %a: i32, %b: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %s = tensor.splat %a : tensor<4xi32>
  %t = tensor.splat %b : tensor<4xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<4xi32> -> tensor<4xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after = kvc.advance %next by %s : !cache, tensor<4xi32>
  %p_1 = kvc.positions %after of %t : !cache, tensor<4xi32> -> tensor<4xi64>
  %next_1 = kvc.append %k, %k to %after layer %0 at %p_1 of %t : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after_1 = kvc.advance %next_1 by %t : !cache, tensor<4xi32>
  return %after_1 : !cache
}

// -----

// All tokens are of one sequence, whichever that is.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{hint: use a capacity of 8 at least for %arg2, or at most 7 of these tokens here}}
func.func @splat(%k: tensor<8x4xf32>, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{the tokens' sequences}}
  %s = tensor.splat %a : tensor<8xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<8xi32> -> tensor<8xi64>
  // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 8 tokens of sequence %arg1 after 0}}
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<8x4xf32>, tensor<8x4xf32>, !cache, tensor<8xi64>, tensor<8xi32>
  %after = kvc.advance %next by %s : !cache, tensor<8xi32>
  return %after : !cache
}

// -----

// Of the tokens of two sequences, those of one are too many after those before.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
func.func @joined(%k: tensor<5x4xf32>, %l: tensor<6x4xf32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : i32
  %s = tensor.splat %1 : tensor<5xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<5xi32> -> tensor<5xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<5x4xf32>, tensor<5x4xf32>, !cache, tensor<5xi64>, tensor<5xi32>
  // expected-note@+1 {{hint: use a capacity of 8 at least for %2, or at most 2 of these tokens here}}
  %after = kvc.advance %next by %s : !cache, tensor<5xi32>
  // expected-note@+1 {{the tokens' sequences}}
  %t = arith.constant dense<[0, 0, 0, 1, 1, 1]> : tensor<6xi32>
  %p_1 = kvc.positions %after of %t : !cache, tensor<6xi32> -> tensor<6xi64>
  // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 3 tokens of sequence 1 after 5}}
  %next_1 = kvc.append %l, %l to %after layer %0 at %p_1 of %t : tensor<6x4xf32>, tensor<6x4xf32>, !cache, tensor<6xi64>, tensor<6xi32>
  %after_1 = kvc.advance %next_1 by %t : !cache, tensor<6xi32>
  return %after_1 : !cache
}

// -----

// A splat of a size that other operands say.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{hint: use a capacity of 8 at least for %arg3, or at most 7 of these tokens here}}
func.func @splat_by_keys(%k: tensor<8x4xf32>, %n: index, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{the tokens' sequences}}
  %s = tensor.splat %a[%n] : tensor<?xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{but got 8 tokens of sequence %arg2 after 0}}
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<8x4xf32>, tensor<8x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}
func.func @splat_by_cast(%k: tensor<?x4xf32>, %n: index, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %some = tensor.splat %a[%n] : tensor<?xi32>
  // expected-note@+1 {{the tokens' sequences}}
  %s = tensor.cast %some : tensor<?xi32> to tensor<4xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<4xi32> -> tensor<?xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<4xi32>
  // expected-note@+1 {{hint: use a capacity of 8 at least for %2, or at most 3 of these tokens here}}
  %after = kvc.advance %next by %s : !cache, tensor<4xi32>
  %q = kvc.positions %after of %s : !cache, tensor<4xi32> -> tensor<?xi64>
  // expected-error@+1 {{but got 4 tokens of sequence %arg2 after 4}}
  %next_1 = kvc.append %k, %k to %after layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<4xi32>
  %after_1 = kvc.advance %next_1 by %s : !cache, tensor<4xi32>
  return %after_1 : !cache
}
