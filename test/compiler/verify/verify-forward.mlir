// What the runtime doesn't check must not index memory: one program for each way.
// RUN: kvc-opt %s --split-input-file --verify-diagnostics --kvc-verify-forward

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
module {
  kvc.weight @table : tensor<5x4xf32> from "table"
  // The right program.
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
    %p = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %n = scf.for %layer = %c0 to %c2 step %c1 iter_args(%c = %cache) -> (!cache) {
      %next = kvc.append %x, %x to %c layer %layer at %p of %sequences : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
      scf.yield %next : !cache
    }
    %after = kvc.advance %n by %sequences : !cache, tensor<?xi32>
    %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
    %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
    return %logits, %after : tensor<?x5xf32>, !cache
  }
}

// -----

// expected-error@+1 {{expected a function @forward}}
module {}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  // expected-error@+1 {{expected its sequences to be argument 1 of @forward, which the runtime has checked}}
  %p = kvc.positions %cache of %tokens : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<4x4xf32> from "table"
kvc.weight @head : tensor<5x4xf32> from "head"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  // expected-error@+1 {{expected the table @table to have 5 rows at least (the vocabulary), but got 4}}
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @head : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  // expected-error@+1 {{expected operands of one number of rows, but got a row a token and a row an output}}
  %mixed = arith.addf %chosen, %x : tensor<?x4xf32>
  %logits = kvc.linear %mixed by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
// expected-error@+1 {{expected @forward to end its step by one kvc.advance of the cache that it returns, but got 0 of them}}
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %cache : tensor<?x5xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
// expected-error@+1 {{expected the logits of @forward to be those of the rows that a kvc.select takes by its argument `outputs`}}
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %logits = kvc.linear %x by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// A constant has its own number of rows: with another number of tokens the
// reference wrote behind its buffers.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'arith.constant' op expected ops that both lowerings know in @forward (those of kvc but truncate, fork and reorder; arithmetic on rows and on indices; scf.for over indices and scf.if), but got this op}}
  %constant = arith.constant dense<0.5> : tensor<3x4xf32>
  %rows = tensor.cast %constant : tensor<3x4xf32> to tensor<?x4xf32>
  %y = arith.addf %x, %rows : tensor<?x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %y rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// So has a tensor whose type says it.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  // expected-error@+1 {{'kvc.embed' op expected each tensor in @forward to have a row a token or a row an output, but got 'tensor<3x4xf32>'}}
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<3x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<3x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// An op that takes rows out of a tensor, by numbers that nobody has checked.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %3 = arith.constant 3 : index
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'tensor.extract' op expected ops that both lowerings know in @forward}}
  %fourth = tensor.extract %x[%3, %3] : tensor<?x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// What branches give has the rows that both give it.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %true = arith.constant true
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %y = scf.if %true -> tensor<?x4xf32> {
    %a = arith.negf %x : tensor<?x4xf32>
    scf.yield %a : tensor<?x4xf32>
  } else {
    scf.yield %x : tensor<?x4xf32>
  }
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %y rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  // expected-error@+1 {{expected each value that is handed on to keep its number of rows, but got a row a token and a row an output}}
  %z = scf.if %true -> tensor<?x4xf32> {
    scf.yield %chosen : tensor<?x4xf32>
  } else {
    scf.yield %y : tensor<?x4xf32>
  }
  %logits = kvc.linear %z by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// Sums of loop variables and constants are layers, too.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %n = scf.for %l = %c0 to %c2 step %c2 iter_args(%c = %cache) -> (!cache) {
    %sum = arith.addi %l, %c1 : index
    %next = kvc.append %x, %x to %c layer %sum at %p of %sequences : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %next : !cache
  }
  %after = kvc.advance %n by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// -1 would be the largest number.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant -1 : index
  %p = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'scf.for' op expected ops that both lowerings know in @forward}}
  %n = scf.for unsigned %l = %c0 to %last step %c1 iter_args(%c = %cache) -> (!cache) {
    %next = kvc.append %x, %x to %c layer %l at %p of %sequences : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %next : !cache
  }
  %after = kvc.advance %n by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'arith.remsi' op expected ops that both lowerings know in @forward}}
  %r = arith.remsi %c1, %c0 : index
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %p = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'kvc.rotary' op expected angles below 2^30, but got 7.000000e+09 at position 7}}
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 divisors [1.0e-09] : tensor<?x4xf32>, tensor<?xi64>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// Whatever is on the list.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = arith.addi %c0, %c1 : index
  %difference = arith.subi %c0, %c1 : index
  %product = arith.muli %c0, %c1 : index
  %less = arith.cmpi slt, %product, %sum : index
  %y = scf.if %less -> tensor<?x4xf32> {
    %a = arith.addf %x, %x : tensor<?x4xf32>
    %b = arith.subf %a, %x : tensor<?x4xf32>
    %c = arith.mulf %b, %a : tensor<?x4xf32>
    %d = arith.divf %c, %b : tensor<?x4xf32>
    scf.yield %d : tensor<?x4xf32>
  } else {
    %a = arith.negf %x : tensor<?x4xf32>
    %b = arith.maximumf %a, %x : tensor<?x4xf32>
    %c = arith.minimumf %b, %a : tensor<?x4xf32>
    scf.yield %c : tensor<?x4xf32>
  }
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// Other flags may give other bits.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'arith.addf' op expected ops that both lowerings know in @forward}}
  %y = arith.addf %x, %x fastmath<contract> : tensor<?x4xf32>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// A promise that doesn't hold would be undefined: 0 - 1 + 1.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'arith.subi' op expected ops that both lowerings know in @forward}}
  %i = arith.subi %c0, %c1 overflow<nuw> : index
  %j = arith.addi %i, %c1 : index
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// Numbers are indices, and the conditions of branches.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'arith.constant' op expected ops that both lowerings know in @forward}}
  %zero = arith.constant 0 : i32
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// Loops and branches hand on rows and caches.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op expected ops that both lowerings know in @forward}}
  %i = scf.for %l = %c0 to %c1 step %c1 iter_args(%m = %c0) -> index {
    scf.yield %l : index
  }
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// One type of rows: the lowerings would choose differently.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // expected-error@+1 {{'kvc.embed' op expected rows of 'f32', the type of the logits, but got 'tensor<?x4xf64>'}}
  %y = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf64>
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}

// -----

// Lengths are the runtime's.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 8, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<5x4xf32> from "table"
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'kvc.fork' op expected ops that both lowerings know in @forward}}
  %fork = kvc.fork %cache from %c0 to %c0 : !cache
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  %chosen = kvc.select %x rows %outputs : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x4xf32> -> tensor<?x5xf32>
  return %logits, %after : tensor<?x5xf32>, !cache
}
