// Programs that can't be followed, or for too long, are errors that say what
// can't; and what is near to them is accepted.
// RUN: kvc-opt %s --kvc-verify-cache-contract --split-input-file --verify-diagnostics

// A cache of an op without a rule.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @hidden(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{'scf.execute_region' op expected a cache that comes from an argument of a function through kvc ops, calls of functions with a body, scf.for and scf.if, so that it can be followed, but got one of this op}}
  %h = scf.execute_region -> !cache {
    scf.yield %next : !cache
  }
  return %h : !cache
}
func.func @extracted(%t: tensor<1x!cache>) -> !cache {
  %0 = arith.constant 0 : index
  // expected-error@+1 {{'tensor.extract' op expected a cache that comes from an argument of a function through kvc ops, calls of functions with a body, scf.for and scf.if, so that it can be followed, but got one of this op}}
  %c = tensor.extract %t[%0] : tensor<1x!cache>
  return %c : !cache
}
func.func @poisoned(%n: index, %cache: !cache) -> !cache {
  %last = scf.for %i = %n to %n step %n iter_args(%c = %cache) -> !cache {
    // expected-error@+1 {{'ub.poison' op expected a cache that comes from an argument of a function through kvc ops, calls of functions with a body, scf.for and scf.if, so that it can be followed, but got one of this op}}
    %x = ub.poison : !cache
    scf.yield %x : !cache
  }
  return %last : !cache
}
func.func private @elsewhere() -> !cache
func.func @of_elsewhere() -> !cache {
  // expected-error@+1 {{'func.call' op expected a cache that comes from an argument of a function through kvc ops, calls of functions with a body, scf.for and scf.if, so that it can be followed, but got one of this op}}
  %c = call @elsewhere() : () -> !cache
  return %c : !cache
}

// -----

// Ops in a region, or a function, that isn't followed.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @position_table : tensor<16x4xf32> from "positions"
func.func @around(%s: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = scf.execute_region -> tensor<?x4xf32> {
    // expected-error@+1 {{'kvc.embed' op expected to be reached from a func.func of one block through calls, scf.for and scf.if, so that its step can be followed, but got an op that isn't}}
    %y = kvc.embed %p in @position_table : tensor<?xi64> -> tensor<?x4xf32>
    scf.yield %y : tensor<?x4xf32>
  }
  return %x : tensor<?x4xf32>
}
func.func private @reads(%s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  return %p : tensor<?xi64>
}
func.func @called_around(%s: tensor<?xi32>, %cache: !cache) {
  %p = call @reads(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
  scf.execute_region {
    // expected-error@+1 {{'func.call' op expected to be reached from a func.func of one block through calls, scf.for and scf.if, so that its step can be followed, but got an op that isn't}}
    %q = func.call @reads(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
    scf.yield
  }
  return
}
func.func private @itself(%s: tensor<?xi32>, %cache: !cache) -> !cache {
  // expected-error@+1 {{'kvc.advance' op expected to be reached from a func.func of one block through calls, scf.for and scf.if, so that its step can be followed, but got an op that isn't}}
  %next = kvc.advance %cache by %s : !cache, tensor<?xi32>
  // expected-error@+1 {{'func.call' op expected to be reached from a func.func of one block through calls, scf.for and scf.if, so that its step can be followed, but got an op that isn't}}
  %r = call @itself(%s, %next) : (tensor<?xi32>, !cache) -> !cache
  return %r : !cache
}
ml_program.func @other_function(%s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  // expected-error@+1 {{'kvc.positions' op expected to be reached from a func.func of one block through calls, scf.for and scf.if, so that its step can be followed, but got an op that isn't}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  ml_program.return %p : tensor<?xi64>
}

// -----

!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @blocks(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  cf.br ^next
^next:
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  return %r : tensor<?x4xf32>
}
func.func @calls_blocks(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{'func.call' op expected a function of one block that returns, so that its part of a step can be followed, but got another one}}
  %r = call @blocks(%x, %p) : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

ml_program.func @no_func(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  // expected-note@-1 {{positions of another origin}}
  // expected-note@+2 {{hint: use kvc.positions of the cache that the step starts with}}
  // expected-error@+1 {{'kvc.rotary' op expected positions that kvc.positions made from the lengths of the cache, but got a block argument that can't be followed}}
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  ml_program.return %r : tensor<?x4xf32>
}

// -----

// What never runs needs no judgement.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @never(%s: tensor<?xi32>, %cache: !cache) -> !cache {
  %next = kvc.advance %cache by %s : !cache, tensor<?xi32>
  return %next : !cache
}
func.func @dead(%s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %false = arith.constant false
  %a = scf.if %false -> !cache {
    %next = func.call @never(%s, %cache) : (tensor<?xi32>, !cache) -> !cache
    scf.yield %next : !cache
  } else {
    scf.yield %cache : !cache
  }
  %b = scf.for %i = %1 to %0 step %1 iter_args(%c = %a) -> !cache {
    %next = kvc.advance %c by %s : !cache, tensor<?xi32>
    scf.yield %next : !cache
  }
  return %b : !cache
}

// -----

// An open step that a loop of unknown count changes: by other tokens, by
// another cache's, by a branch.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @other_tokens(%n: index, %k: tensor<?x4xf32>, %s: tensor<?xi32>, %t: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %open = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected a loop that appends to layers to have constant bounds, or whole steps in each iteration, but got one that changes the open step's append to layer 0}}
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %open) -> !cache {
    %a = kvc.advance %c by %s : !cache, tensor<?xi32>
    %q = kvc.positions %a of %t : !cache, tensor<?xi32> -> tensor<?xi64>
    // expected-note@+1 {{appended to here}}
    %m = kvc.append %k, %k to %a layer %0 at %q of %t : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %m : !cache
  }
  %end = kvc.advance %last by %t : !cache, tensor<?xi32>
  return %end : !cache
}
func.func @exchange(%n: index, %k: tensor<?x4xf32>, %s: tensor<?xi32>, %t: tensor<?xi32>, %a: !cache, %b: !cache) -> (!cache, !cache) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %p = kvc.positions %a of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %q = kvc.positions %b of %t : !cache, tensor<?xi32> -> tensor<?xi64>
  %a1 = kvc.append %k, %k to %a layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-note@+1 {{appended to here}}
  %b1 = kvc.append %k, %k to %b layer %0 at %q of %t : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected a loop that appends to layers to have constant bounds, or whole steps in each iteration, but got one that changes the open step's append to layer 0}}
  %c:2 = scf.for %i = %0 to %n step %1 iter_args(%x = %a1, %y = %b1) -> (!cache, !cache) {
    scf.yield %y, %x : !cache, !cache
  }
  %a2 = kvc.advance %c#0 by %t : !cache, tensor<?xi32>
  %b2 = kvc.advance %c#1 by %s : !cache, tensor<?xi32>
  return %a2, %b2 : !cache, !cache
}
func.func @one_branch(%n: index, %which: i1, %k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %open = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected a loop that appends to layers to have constant bounds, or whole steps in each iteration, but got one that changes the open step's append to layer 0}}
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %open) -> !cache {
    %a = kvc.advance %c by %s : !cache, tensor<?xi32>
    %r = scf.if %which -> !cache {
      %q = kvc.positions %a of %s : !cache, tensor<?xi32> -> tensor<?xi64>
      // expected-note@+1 {{appended to here}}
      %m = kvc.append %k, %k to %a layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
      scf.yield %m : !cache
    } else {
      scf.yield %a : !cache
    }
    scf.yield %r : !cache
  }
  return
}
// Each iteration ends the step before and opens one of the same tokens.
func.func @rotated(%n: index, %k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %open = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %open) -> !cache {
    %a = kvc.advance %c by %s : !cache, tensor<?xi32>
    %q = kvc.positions %a of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    %m = kvc.append %k, %k to %a layer %0 at %q of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %m : !cache
  }
  %end = kvc.advance %last by %s : !cache, tensor<?xi32>
  return %end : !cache
}

// -----

// Bounds of unsigned numbers, or of more than 64 bits, are any number.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @unsigned(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %first = arith.constant 127 : i8
  %end = arith.constant -128 : i8
  %1 = arith.constant 1 : i8
  %last = scf.for unsigned %i = %first to %end step %1 iter_args(%c = %cache) -> !cache : i8 {
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    // expected-note@+2 {{hint: use %2}}
    // expected-note@+1 {{appended to here}}
    %next = kvc.append %k, %k to %c layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    // expected-error@+1 {{expected one append to a layer in a step, but got a second one to layer 0}}
    %again = kvc.append %k, %k to %next layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %again by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}
func.func @wide(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %first = arith.constant 0 : i128
  %end = arith.constant 18446744073709551616 : i128
  %1 = arith.constant 1 : i128
  %last = scf.for %i = %first to %end step %1 iter_args(%c = %cache) -> !cache : i128 {
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    // expected-note@+2 {{hint: use %2}}
    // expected-note@+1 {{appended to here}}
    %next = kvc.append %k, %k to %c layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    // expected-error@+1 {{expected one append to a layer in a step, but got a second one to layer 0}}
    %again = kvc.append %k, %k to %next layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %again by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}

// -----

// Long loops of whole steps, and one whose variable leaves its range at the end.
!cache = !kvc.cache<layers 80, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @decode(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %layers = arith.constant 80 : index
  %steps = arith.constant 1000000 : index
  %last = scf.for %i = %0 to %steps step %1 iter_args(%c = %cache) -> !cache {
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    %appended = scf.for %layer = %0 to %layers step %1 iter_args(%d = %c) -> !cache {
      %next = kvc.append %k, %k to %d layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
      scf.yield %next : !cache
    }
    %after = kvc.advance %appended by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}
func.func @wraps(%s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %step = arith.constant 9223372036854775806 : index
  %end = arith.constant 9223372036854775807 : index
  %last = scf.for %i = %0 to %end step %step iter_args(%c = %cache) -> !cache {
    %next = kvc.truncate %c sequence %0 to %0 : !cache
    scf.yield %next : !cache
  }
  return %last : !cache
}
func.func @many_layers(%cache: !kvc.cache<layers 1125899906842624, kv_heads 1, capacity 1, key 1, value 1, f32, #kvc.contiguous>) {
  return
}

// -----

// Calls that double at each of 21 functions, which no shorter way follows.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @f0() {
  call @f1() : () -> ()
  // expected-error@+1 {{'func.call' op expected 1048576 ops at most where calls and loops are followed, but got more}}
  call @f1() : () -> ()
  return
}
func.func private @f1() {
  call @f2() : () -> ()
  call @f2() : () -> ()
  return
}
func.func private @f2() {
  call @f3() : () -> ()
  call @f3() : () -> ()
  return
}
func.func private @f3() {
  call @f4() : () -> ()
  call @f4() : () -> ()
  return
}
func.func private @f4() {
  call @f5() : () -> ()
  call @f5() : () -> ()
  return
}
func.func private @f5() {
  call @f6() : () -> ()
  call @f6() : () -> ()
  return
}
func.func private @f6() {
  call @f7() : () -> ()
  call @f7() : () -> ()
  return
}
func.func private @f7() {
  call @f8() : () -> ()
  call @f8() : () -> ()
  return
}
func.func private @f8() {
  call @f9() : () -> ()
  call @f9() : () -> ()
  return
}
func.func private @f9() {
  call @f10() : () -> ()
  call @f10() : () -> ()
  return
}
func.func private @f10() {
  call @f11() : () -> ()
  call @f11() : () -> ()
  return
}
func.func private @f11() {
  call @f12() : () -> ()
  call @f12() : () -> ()
  return
}
func.func private @f12() {
  call @f13() : () -> ()
  call @f13() : () -> ()
  return
}
func.func private @f13() {
  call @f14() : () -> ()
  call @f14() : () -> ()
  return
}
func.func private @f14() {
  call @f15() : () -> ()
  call @f15() : () -> ()
  return
}
func.func private @f15() {
  call @f16() : () -> ()
  call @f16() : () -> ()
  return
}
func.func private @f16() {
  call @f17() : () -> ()
  call @f17() : () -> ()
  return
}
func.func private @f17() {
  call @f18() : () -> ()
  call @f18() : () -> ()
  return
}
func.func private @f18() {
  call @f19() : () -> ()
  call @f19() : () -> ()
  return
}
func.func private @f19() {
  call @f20() : () -> ()
  call @f20() : () -> ()
  return
}
func.func private @f20() {
  return
}
func.func @doubling(%cache: !cache) -> !cache {
  call @f0() : () -> ()
  return %cache : !cache
}

// -----

// Sequences that are made again of the same number are the same.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @layer(%k: tensor<?x4xf32>, %p: tensor<?xi64>, %n: index, %sequence: i32, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %s = tensor.splat %sequence[%n] : tensor<?xi32>
  %next = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}
func.func @same_sequences(%k: tensor<?x4xf32>, %n: index, %sequence: i32, %cache: !cache) -> !cache {
  %s = tensor.splat %sequence[%n] : tensor<?xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %next = call @layer(%k, %p, %n, %sequence, %cache) : (tensor<?x4xf32>, tensor<?xi64>, index, i32, !cache) -> !cache
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}
