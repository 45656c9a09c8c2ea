// Chunks that can't fit into the cache, as far as a program says so; the plan of a
// call finds the rest. An append is judged as if it runs.
// RUN: kvc-opt %s --kvc-verify-cache-contract --split-input-file --verify-diagnostics

// What may fit is accepted.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
// Of 8 tokens, 4 are of %a at least and 4 of %b.
func.func @two_sequences(%k: tensor<8x4xf32>, %a: i32, %b: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %of_a = tensor.splat %a : tensor<4xi32>
  %of_b = tensor.splat %b : tensor<4xi32>
  %s = tensor.concat dim(0) %of_a, %of_b : (tensor<4xi32>, tensor<4xi32>) -> tensor<8xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<8xi32> -> tensor<8xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<8x4xf32>, tensor<8x4xf32>, !cache, tensor<8xi64>, tensor<8xi32>
  %after = kvc.advance %next by %s : !cache, tensor<8xi32>
  return %after : !cache
}
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
// The loop may have no iteration, and a sequence that is cut has room again.
func.func @loop_then_chunk(%n: index, %k: tensor<4x4xf32>, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %s = tensor.splat %a : tensor<4xi32>
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %cache) -> !cache {
    %p = kvc.positions %c of %s : !cache, tensor<4xi32> -> tensor<4xi64>
    %next = kvc.append %k, %k to %c layer %0 at %p of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
    %after = kvc.advance %next by %s : !cache, tensor<4xi32>
    scf.yield %after : !cache
  }
  %p_1 = kvc.positions %last of %s : !cache, tensor<4xi32> -> tensor<4xi64>
  %next_1 = kvc.append %k, %k to %last layer %0 at %p_1 of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after_1 = kvc.advance %next_1 by %s : !cache, tensor<4xi32>
  %cut = kvc.truncate %after_1 sequence %0 to %0 : !cache
  %p_2 = kvc.positions %cut of %s : !cache, tensor<4xi32> -> tensor<4xi64>
  %next_2 = kvc.append %k, %k to %cut layer %0 at %p_2 of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after_2 = kvc.advance %next_2 by %s : !cache, tensor<4xi32>
  return %after_2 : !cache
}
// The branches append to different sequences.
func.func @branches(%which: i1, %k: tensor<4x4xf32>, %a: i32, %b: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %s = tensor.splat %a : tensor<4xi32>
  %t = tensor.splat %b : tensor<4xi32>
  %last = scf.if %which -> !cache {
    %p = kvc.positions %cache of %s : !cache, tensor<4xi32> -> tensor<4xi64>
    %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
    %after = kvc.advance %next by %s : !cache, tensor<4xi32>
    scf.yield %after : !cache
  } else {
    %p_1 = kvc.positions %cache of %t : !cache, tensor<4xi32> -> tensor<4xi64>
    %next_1 = kvc.append %k, %k to %cache layer %0 at %p_1 of %t : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
    %after_1 = kvc.advance %next_1 by %t : !cache, tensor<4xi32>
    scf.yield %after_1 : !cache
  }
  %p_2 = kvc.positions %last of %s : !cache, tensor<4xi32> -> tensor<4xi64>
  %next_2 = kvc.append %k, %k to %last layer %0 at %p_2 of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after_2 = kvc.advance %next_2 by %s : !cache, tensor<4xi32>
  return %after_2 : !cache
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

// The same, with sizes that only constants say.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{hint: use a capacity of 8 at least for %arg2, or at most 7 of these tokens here}}
func.func @splat_of_size(%k: tensor<?x4xf32>, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %8 = arith.constant 8 : index
  // expected-note@+1 {{the tokens' sequences}}
  %s = tensor.splat %a[%8] : tensor<?xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 8 tokens of sequence %arg1 after 0}}
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{hint: use a capacity of 8 at least for %arg2, or at most 7 of these tokens here}}
func.func @fill(%k: tensor<8x4xf32>, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %empty = tensor.empty() : tensor<8xi32>
  // expected-note@+1 {{the tokens' sequences}}
  %s = linalg.fill ins(%a : i32) outs(%empty : tensor<8xi32>) -> tensor<8xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<8xi32> -> tensor<8xi64>
  // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 8 tokens of sequence %arg1 after 0}}
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<8x4xf32>, tensor<8x4xf32>, !cache, tensor<8xi64>, tensor<8xi32>
  %after = kvc.advance %next by %s : !cache, tensor<8xi32>
  return %after : !cache
}

// -----

// Of the tokens of two sequences, those of one are too many after those before.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
func.func @joined(%k: tensor<5x4xf32>, %l: tensor<6x4xf32>, %a: i32, %b: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %s = tensor.from_elements %a, %b, %a, %b, %a : tensor<5xi32>
  %of_a = tensor.splat %a : tensor<5xi32>
  %of_b = tensor.from_elements %b : tensor<1xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<5xi32> -> tensor<5xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<5x4xf32>, tensor<5x4xf32>, !cache, tensor<5xi64>, tensor<5xi32>
  // expected-note@+1 {{hint: use a capacity of 8 at least for %2, or at most 4 of these tokens here}}
  %after = kvc.advance %next by %s : !cache, tensor<5xi32>
  // expected-note@+1 {{the tokens' sequences}}
  %t = tensor.concat dim(0) %of_b, %of_a : (tensor<1xi32>, tensor<5xi32>) -> tensor<6xi32>
  %p_1 = kvc.positions %after of %t : !cache, tensor<6xi32> -> tensor<6xi64>
  // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 5 tokens of sequence %arg2 after 3}}
  %next_1 = kvc.append %l, %l to %after layer %0 at %p_1 of %t : tensor<6x4xf32>, tensor<6x4xf32>, !cache, tensor<6xi64>, tensor<6xi32>
  %after_1 = kvc.advance %next_1 by %t : !cache, tensor<6xi32>
  return %after_1 : !cache
}

// -----

// Whatever the sequences, each step has a token of the first one.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{the tokens' sequences}}
func.func @steps(%k: tensor<2x4xf32>, %s: tensor<2xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  // expected-note@+1 {{hint: use a capacity of 8 at least for %arg4}}
  %last = scf.for %i = %0 to %8 step %1 iter_args(%c = %cache) -> !cache {
    %p = kvc.positions %c of %s : !cache, tensor<2xi32> -> tensor<2xi64>
    // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 1 token of the first sequence of %arg1 after 7}}
    %next = kvc.append %k, %k to %c layer %0 at %p of %s : tensor<2x4xf32>, tensor<2x4xf32>, !cache, tensor<2xi64>, tensor<2xi32>
    %after = kvc.advance %next by %s : !cache, tensor<2xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}

// -----

// A loop that may run any number of times, after a chunk that fills the cache.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
func.func @generate(%n: index, %k: tensor<7x4xf32>, %l: tensor<1x4xf32>, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %prompt = tensor.splat %a : tensor<7xi32>
  // expected-note@+1 {{the tokens' sequences}}
  %token = tensor.splat %a : tensor<1xi32>
  %p_1 = kvc.positions %cache of %prompt : !cache, tensor<7xi32> -> tensor<7xi64>
  %next_1 = kvc.append %k, %k to %cache layer %0 at %p_1 of %prompt : tensor<7x4xf32>, tensor<7x4xf32>, !cache, tensor<7xi64>, tensor<7xi32>
  %after_1 = kvc.advance %next_1 by %prompt : !cache, tensor<7xi32>
  // expected-note@+1 {{hint: use a capacity of 8 at least for %arg6}}
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %after_1) -> !cache {
    %p = kvc.positions %c of %token : !cache, tensor<1xi32> -> tensor<1xi64>
    // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 1 token of sequence %arg3 after 7}}
    %next = kvc.append %l, %l to %c layer %0 at %p of %token : tensor<1x4xf32>, tensor<1x4xf32>, !cache, tensor<1xi64>, tensor<1xi32>
    %after = kvc.advance %next by %token : !cache, tensor<1xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}

// -----

// Tokens of the same sequence in either branch.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
func.func @after_branches(%which: i1, %k: tensor<4x4xf32>, %l: tensor<5x4xf32>, %a: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{the tokens' sequences}}
  %s = tensor.splat %a : tensor<4xi32>
  %t = tensor.splat %a : tensor<5xi32>
  // expected-note@+1 {{hint: use a capacity of 8 at least for %0, or at most 3 of these tokens here}}
  %last = scf.if %which -> !cache {
    %p = kvc.positions %cache of %s : !cache, tensor<4xi32> -> tensor<4xi64>
    %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
    %after = kvc.advance %next by %s : !cache, tensor<4xi32>
    scf.yield %after : !cache
  } else {
    %p_1 = kvc.positions %cache of %t : !cache, tensor<5xi32> -> tensor<5xi64>
    %next_1 = kvc.append %l, %l to %cache layer %0 at %p_1 of %t : tensor<5x4xf32>, tensor<5x4xf32>, !cache, tensor<5xi64>, tensor<5xi32>
    %after_1 = kvc.advance %next_1 by %t : !cache, tensor<5xi32>
    scf.yield %after_1 : !cache
  }
  %p_2 = kvc.positions %last of %s : !cache, tensor<4xi32> -> tensor<4xi64>
  // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 4 tokens of sequence %arg3 after 4}}
  %next_2 = kvc.append %k, %k to %last layer %0 at %p_2 of %s : tensor<4x4xf32>, tensor<4x4xf32>, !cache, tensor<4xi64>, tensor<4xi32>
  %after_2 = kvc.advance %next_2 by %s : !cache, tensor<4xi32>
  return %after_2 : !cache
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
