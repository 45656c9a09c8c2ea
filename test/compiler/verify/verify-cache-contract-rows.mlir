// What rows are made of: positions at which they were rotated or embedded, which
// are those of the step that takes them, and joins along the width.
// RUN: kvc-opt %s --kvc-inline --kvc-verify-cache-contract --split-input-file --verify-diagnostics

// Rotated before a loop of steps: positions restart in each.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @hoisted(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %n = arith.constant 2 : index
  %1 = arith.constant 1 : index
  // expected-note@+1 {{made at these positions}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %r = kvc.rotary %k at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %cache) -> !cache {
    // expected-note@+1 {{hint: make them at %3}}
    %q = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    // expected-error@+1 {{'kvc.append' op expected keys that were made at the op's own positions, but got some made at those of a step before}}
    %next = kvc.append %r, %k to %c layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}

// -----

// Rotated in the iteration before, and carried by the loop.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @carried(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %n = arith.constant 2 : index
  %1 = arith.constant 1 : index
  %last:2 = scf.for %i = %0 to %n step %1 iter_args(%x = %k, %c = %cache) -> (tensor<?x4xf32>, !cache) {
    // expected-note@+2 {{hint: make them at %1}}
    // expected-note@+1 {{made at these positions}}
    %q = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    // expected-error@+1 {{expected keys that were made at the op's own positions, but got some made at those of a step before}}
    %next = kvc.append %x, %k to %c layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %r = kvc.rotary %k at %q head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    scf.yield %r, %after : tensor<?x4xf32>, !cache
  }
  return %last#1 : !cache
}

// -----

// Of a draft's cache and the target's, the other one; values count, too.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @draft_and_target(%v: tensor<?x4xf32>, %s: tensor<?xi32>, %draft: !cache, %target: !cache) -> (!cache, !cache) {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{made at these positions}}
  %p = kvc.positions %draft of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{hint: make them at %1}}
  %q = kvc.positions %target of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %r = kvc.rotary %v at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  // expected-error@+1 {{expected values that were made at the op's own positions, but got some made at those of another cache}}
  %next = kvc.append %v, %r to %target layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %draft, %after : !cache, !cache
}

// -----

!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @rotate(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  return %r : tensor<?x4xf32>
}
func.func @other_sequences(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %t: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{hint: make them at %0}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{made at these positions}}
  %o = kvc.positions %cache of %t : !cache, tensor<?xi32> -> tensor<?xi64>
  %r = call @rotate(%q, %o) : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  %next = kvc.append %q, %q to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected queries that were made at the op's own positions, but got some made at those of other tokens}}
  %a = kvc.attend %r to %next layer %0 at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %a : tensor<?x4xf32>
}

// -----

// Embedded, through ops on rows and a branch.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @position_table : tensor<20x4xf32> from "positions"
kvc.weight @norm : tensor<4xf32> from "norm"
kvc.weight @key : tensor<4x4xf32> from "key"
func.func @embedded(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %a: !cache, %b: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %which = arith.constant false
  // expected-note@+1 {{made at these positions}}
  %p = kvc.positions %a of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{hint: make them at %1}}
  %q = kvc.positions %b of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %e = kvc.embed %p in @position_table : tensor<?xi64> -> tensor<?x4xf32>
  %h = arith.addf %x, %e : tensor<?x4xf32>
  %y = scf.if %which -> tensor<?x4xf32> {
    scf.yield %x : tensor<?x4xf32>
  } else {
    scf.yield %h : tensor<?x4xf32>
  }
  %z = kvc.rms_norm %y by @norm epsilon 1.0e-05 : tensor<?x4xf32>
  %k = kvc.linear %z by @key : tensor<?x4xf32> -> tensor<?x4xf32>
  // expected-error@+1 {{expected keys that were made at the op's own positions, but got some made at those of another cache}}
  %next = kvc.append %k, %x to %b layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

// Rounded to integers and back.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @quantised(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %a: !cache, %b: !cache) -> !cache {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{made at these positions}}
  %p = kvc.positions %a of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{hint: make them at %1}}
  %q = kvc.positions %b of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  %i = arith.fptosi %r : tensor<?x4xf32> to tensor<?x4xi8>
  %k = arith.sitofp %i : tensor<?x4xi8> to tensor<?x4xf32>
  // expected-error@+1 {{expected keys that were made at the op's own positions, but got some made at those of another cache}}
  %next = kvc.append %k, %x to %b layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

// Ids that are positions, cut to 32 bits.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @position_table : tensor<16x4xf32> from "positions"
func.func @truncated(%s: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  // expected-note@+1 {{hint: use %0}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %ids = arith.trunci %p : tensor<?xi64> to tensor<?xi32>
  // expected-error@+1 {{'kvc.embed' op expected ids of tokens, or positions as kvc.positions gives them, but got ids that are computed of positions}}
  %x = kvc.embed %ids in @position_table : tensor<?xi32> -> tensor<?x4xf32>
  return %x : tensor<?x4xf32>
}

// -----

// A join along the wrong axis in the caller, and one that is added to.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @layer(%k: tensor<?x4xf32>, %v: tensor<?x4xf32>, %p: tensor<?xi64>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  // expected-error@+1 {{expected values joined along the width to be whole heads of 4, but got a piece of width 2}}
  %next = kvc.append %k, %v to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}
// expected-note@+1 {{hint: tokens are rows: append %arg1}}
func.func @join_in_caller(%k: tensor<?x4xf32>, %old: tensor<?x2xf32>, %new: tensor<?x2xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{joined along the width here}}
  %v = tensor.concat dim(1) %old, %new : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  %next = call @layer(%k, %v, %p, %s, %cache) : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?xi64>, tensor<?xi32>, !cache) -> !cache
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}
// expected-note@+1 {{hint: tokens are rows: append %arg0}}
func.func @join_and_add(%old: tensor<?x2xf32>, %new: tensor<?x2xf32>, %v: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{joined along the width here}}
  %j = tensor.concat dim(1) %old, %new : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  %k = arith.addf %j, %v : tensor<?x4xf32>
  // expected-error@+1 {{expected keys joined along the width to be whole heads of 4, but got a piece of width 2}}
  %next = kvc.append %k, %v to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

// Memory isn't followed.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @in_memory(%x: tensor<?x4xf32>, %memory: memref<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  // expected-error@+1 {{'bufferization.materialize_in_destination' op expected rows of a step in tensors, so that they can be followed, but got memory}}
  bufferization.materialize_in_destination %r in writable %memory : (tensor<?x4xf32>, memref<?x4xf32>) -> ()
  return
}

// -----

// Accepted: hidden states joined before a projection, and a rotation that is
// written out.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @key : tensor<4x8xf32> from "key"
func.func @joined_before(%h: tensor<?x4xf32>, %e: tensor<?x4xf32>, %cos: tensor<?x4xf32>, %n: index, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %j = tensor.concat dim(1) %h, %e : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %k = kvc.linear %j by @key : tensor<?x8xf32> -> tensor<?x4xf32>
  %first = tensor.extract_slice %k[0, 0] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %second = tensor.extract_slice %k[0, 2] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %minus = arith.negf %second : tensor<?x2xf32>
  %half = tensor.concat dim(1) %minus, %first : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  %a = arith.mulf %k, %cos : tensor<?x4xf32>
  %r = arith.addf %a, %half : tensor<?x4xf32>
  %next = kvc.append %r, %h to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

// Accepted: speculative decoding, each cache with its own positions.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @table : tensor<9x4xf32> from "table"
func.func private @accept(tensor<?x4xf32>) -> (tensor<?xi32>, index)
func.func private @step(%tokens: tensor<?xi32>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  %next = kvc.append %r, %x to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %a = kvc.attend %r to %next layer %0 at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %y = arith.addf %a, %x : tensor<?x4xf32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %y, %after : tensor<?x4xf32>, !cache
}
func.func @speculate(%tokens: tensor<?xi32>, %s: tensor<?xi32>, %draft: !cache, %target: !cache) -> (!cache, !cache) {
  %0 = arith.constant 0 : index
  %n = arith.constant 3 : index
  %m = arith.constant 2 : index
  %1 = arith.constant 1 : index
  %last:3 = scf.for %i = %0 to %n step %1 iter_args(%t = %tokens, %d = %draft, %c = %target) -> (tensor<?xi32>, !cache, !cache) {
    %guessed:2 = scf.for %j = %0 to %m step %1 iter_args(%u = %t, %e = %d) -> (tensor<?xi32>, !cache) {
      %h, %f = func.call @step(%u, %s, %e) : (tensor<?xi32>, tensor<?xi32>, !cache) -> (tensor<?x4xf32>, !cache)
      %v, %k = func.call @accept(%h) : (tensor<?x4xf32>) -> (tensor<?xi32>, index)
      scf.yield %v, %f : tensor<?xi32>, !cache
    }
    %h, %after = func.call @step(%guessed#0, %s, %c) : (tensor<?xi32>, tensor<?xi32>, !cache) -> (tensor<?x4xf32>, !cache)
    %v, %length = func.call @accept(%h) : (tensor<?x4xf32>) -> (tensor<?xi32>, index)
    %d_cut = kvc.truncate %guessed#1 sequence %0 to %length : !cache
    %c_cut = kvc.truncate %after sequence %0 to %length : !cache
    scf.yield %v, %d_cut, %c_cut : tensor<?xi32>, !cache, !cache
  }
  return %last#1, %last#2 : !cache, !cache
}

// -----

// Accepted: a beam search over learned positions, whose next rows are computed
// elsewhere of this step's.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @position_table : tensor<20x4xf32> from "positions"
func.func private @score(tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<4xi32>)
func.func @beams(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %n = arith.constant 5 : index
  %1 = arith.constant 1 : index
  %last:2 = scf.for %i = %0 to %n step %1 iter_args(%x = %k, %c = %cache) -> (tensor<?x4xf32>, !cache) {
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    %e = kvc.embed %p in @position_table : tensor<?xi64> -> tensor<?x4xf32>
    %h = arith.addf %x, %e : tensor<?x4xf32>
    %next = kvc.append %h, %h to %c layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %a = kvc.attend %h to %next layer %0 at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %y = arith.addf %a, %h : tensor<?x4xf32>
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    %z, %order = func.call @score(%y) : (tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<4xi32>)
    %chosen = kvc.reorder %after by %order : !cache, tensor<4xi32>
    scf.yield %z, %chosen : tensor<?x4xf32>, !cache
  }
  return %last#1 : !cache
}

// -----

// Accepted: a prompt in chunks, rotated chunk by chunk.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @chunks(%all: tensor<?x4xf32>, %sequence: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %n = arith.constant 8 : index
  %2 = arith.constant 2 : index
  %last = scf.for %i = %0 to %n step %2 iter_args(%c = %cache) -> !cache {
    %x = tensor.extract_slice %all[%i, 0] [2, 4] [1, 1] : tensor<?x4xf32> to tensor<2x4xf32>
    %k = tensor.cast %x : tensor<2x4xf32> to tensor<?x4xf32>
    %t = tensor.splat %sequence : tensor<2xi32>
    %s = tensor.cast %t : tensor<2xi32> to tensor<?xi32>
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    %r = kvc.rotary %k at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
    %next = kvc.append %r, %k to %c layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}

// -----

// Accepted: the next tokens are chosen by this step's rows, and their rows read
// from a table without an op of kvc.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @greedy(%table: tensor<9x4xf32>, %first: tensor<1xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %n = arith.constant 5 : index
  %1 = arith.constant 1 : index
  %s = arith.constant dense<0> : tensor<1xi32>
  %last:2 = scf.for %i = %0 to %n step %1 iter_args(%token = %first, %c = %cache) -> (tensor<1xi32>, !cache) {
    %p = kvc.positions %c of %s : !cache, tensor<1xi32> -> tensor<1xi64>
    %x = tensor.generate {
    ^bb0(%row: index, %column: index):
      %id = tensor.extract %token[%row] : tensor<1xi32>
      %at = arith.index_cast %id : i32 to index
      %e = tensor.extract %table[%at, %column] : tensor<9x4xf32>
      tensor.yield %e : f32
    } : tensor<1x4xf32>
    %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<1x4xf32>, tensor<1xi64>
    %next = kvc.append %r, %x to %c layer %0 at %p of %s : tensor<1x4xf32>, tensor<1x4xf32>, !cache, tensor<1xi64>, tensor<1xi32>
    %after = kvc.advance %next by %s : !cache, tensor<1xi32>
    %one = tensor.extract %r[%0, %0] : tensor<1x4xf32>
    %two = tensor.extract %r[%0, %1] : tensor<1x4xf32>
    %is_one = arith.cmpf ogt, %one, %two : f32
    %id = arith.extui %is_one : i1 to i32
    %chosen = tensor.from_elements %id : tensor<1xi32>
    scf.yield %chosen, %after : tensor<1xi32>, !cache
  }
  return %last#1 : !cache
}
