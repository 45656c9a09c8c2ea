// RUN: kvc-test-opt %s --kvc-inline --kvc-verify-cache-contract --split-input-file --verify-diagnostics

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>

// A step that keeps the contract: layers in a loop, each a call; two readers of
// one value before it is consumed.
func.func private @layer(%layer: index, %x: tensor<?x4xf32>, %p: tensor<?xi64>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  %next = kvc.append %r, %x to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %a = kvc.attend %r to %next layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %b = kvc.attend %a to %next layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %b, %next : tensor<?x4xf32>, !cache
}
func.func @step(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %y, %last = scf.for %layer = %0 to %2 step %1 iter_args(%h = %x, %c = %cache) -> (tensor<?x4xf32>, !cache) {
    %z, %next = func.call @layer(%layer, %h, %p, %s, %c) : (index, tensor<?x4xf32>, tensor<?xi64>, tensor<?xi32>, !cache) -> (tensor<?x4xf32>, !cache)
    scf.yield %z, %next : tensor<?x4xf32>, !cache
  }
  %after = kvc.advance %last by %s : !cache, tensor<?xi32>
  return %y, %after : tensor<?x4xf32>, !cache
}

// Of two branches the one that runs consumes the value.
func.func @branches(%s: index, %cache: !cache) -> !cache {
  %true = arith.constant true
  %next = scf.if %true -> !cache {
    %0 = kvc.truncate %cache sequence %s to %s : !cache
    scf.yield %0 : !cache
  } else {
    scf.yield %cache : !cache
  }
  return %next : !cache
}

// A function that only reads does not consume, nor does a loop of readers.
func.func private @reads(%s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  return %p : tensor<?xi64>
}
func.func @read_often(%n: index, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  scf.for %i = %0 to %3 step %1 {
    %p = func.call @reads(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
  }
  %p = call @reads(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
  %next = kvc.truncate %cache sequence %n to %n : !cache
  return %next : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @attend_to_stale(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+2 {{hint: use %1}}
  // expected-note@+1 {{consumed here; the cache that this op gives is the newer value}}
  %next = kvc.append %x, %x to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{'kvc.attend' op expected the newest value of the cache, but got one that was consumed before}}
  %a = kvc.attend %x to %cache layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %a, %next : tensor<?x4xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @return_stale(%i: index, %cache: !cache) -> !cache {
  // expected-note@+2 {{hint: use %0}}
  // expected-note@+1 {{consumed here}}
  %next = kvc.truncate %cache sequence %i to %i : !cache
  // expected-error@+1 {{'func.return' op expected the newest value}}
  return %cache : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @consume_twice(%i: index, %cache: !cache) -> !cache {
  // expected-note@+1 {{consumed here}}
  %a = kvc.truncate %cache sequence %i to %i : !cache
  // expected-note@+1 {{hint: use %1}}
  %b = kvc.truncate %a sequence %i to %i : !cache
  // expected-error@+1 {{'kvc.fork' op expected the newest value}}
  %c = kvc.fork %cache from %i to %i : !cache
  return %c : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @consumes(%i: index, %cache: !cache) {
  // expected-note@+2 {{hint: use %0}}
  // expected-note@+1 {{consumed here}}
  %0 = kvc.truncate %cache sequence %i to %i : !cache
  return
}
func.func private @consumes_by_call(%i: index, %cache: !cache) {
  call @consumes(%i, %cache) : (index, !cache) -> ()
  return
}
func.func @stale_after_call(%i: index, %s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  call @consumes_by_call(%i, %cache) : (index, !cache) -> ()
  // expected-error@+1 {{'kvc.positions' op expected the newest value}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  return %p : tensor<?xi64>
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @one_cache_twice(%cache: !cache) -> (!cache, !cache) {
  // expected-note@+2 {{handed on here}}
  // expected-error@+1 {{'func.return' op expected the newest value of the cache, but got one that the same op consumes}}
  return %cache, %cache : !cache, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @stale_in_loop(%s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-note@+2 {{hint: use %arg3}}
  // expected-note@+1 {{consumed here}}
  %last = scf.for %i = %0 to %1 step %1 iter_args(%c = %cache) -> !cache {
    // expected-error@+1 {{'kvc.positions' op expected the newest value}}
    %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    scf.yield %c : !cache
  }
  return %last : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @yield_stale(%n: index, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %last = scf.for %i = %0 to %1 step %1 iter_args(%c = %cache) -> !cache {
    // expected-note@+2 {{hint: use %1}}
    // expected-note@+1 {{consumed here}}
    %next = kvc.truncate %c sequence %n to %n : !cache
    // expected-error@+1 {{'scf.yield' op expected the newest value}}
    scf.yield %c : !cache
  }
  return %last : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @consumed_each_iteration(%n: index, %cache: !cache) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-note@+1 {{consumed in each iteration of this loop}}
  scf.for %i = %0 to %1 step %1 {
    // expected-error@+1 {{'kvc.truncate' op expected a cache that a loop consumes to be carried by the loop}}
    %next = kvc.truncate %cache sequence %n to %n : !cache
  }
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @stale_after_branch(%n: index, %cache: !cache) -> !cache {
  %true = arith.constant true
  scf.if %true {
    // expected-note@+2 {{hint: use %0}}
    // expected-note@+1 {{consumed here}}
    %next = kvc.truncate %cache sequence %n to %n : !cache
  }
  // expected-error@+1 {{'func.return' op expected the newest value}}
  return %cache : !cache
}

// -----

// A branch that gives the value hands it on.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @stale_after_yield(%i: index, %cache: !cache) -> !cache {
  %false = arith.constant false
  // expected-note@+1 {{hint: use %0}}
  %next = scf.if %false -> !cache {
    %never = kvc.fork %cache from %i to %i : !cache
    scf.yield %never : !cache
  } else {
    // expected-note@+1 {{handed on here}}
    scf.yield %cache : !cache
  }
  // expected-error@+1 {{'func.return' op expected the newest value}}
  return %cache : !cache
}

// -----

// Positions of another origin: constants, through a loop and a call.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @append_at(%x: tensor<?x4xf32>, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  // expected-error@+1 {{'kvc.append' op expected positions that kvc.positions made from the lengths of the cache, but got the result of tensor.generate}}
  %next = kvc.append %x, %x to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}
func.func @restart(%n: index, %x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  // expected-note@+1 {{positions of another origin}}
  %zero = tensor.generate %n {
  ^bb0(%i: index):
    %0 = arith.index_cast %i : index to i64
    tensor.yield %0 : i64
  } : tensor<?xi64>
  // expected-note@+1 {{hint: use %0}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %last:2 = scf.for %layer = %0 to %2 step %1 iter_args(%q = %p, %c = %cache) -> (tensor<?xi64>, !cache) {
    %next = func.call @append_at(%x, %layer, %q, %s, %c) : (tensor<?x4xf32>, index, tensor<?xi64>, tensor<?xi32>, !cache) -> !cache
    scf.yield %zero, %next : tensor<?xi64>, !cache
  }
  return %last#1 : !cache
}

// -----

func.func @positions_from_outside(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  // expected-note@-1 {{positions of another origin}}
  // expected-note@+2 {{hint: use kvc.positions of the cache that the step starts with}}
  // expected-error@+1 {{'kvc.rotary' op expected positions that kvc.positions made from the lengths of the cache, but got an argument of @positions_from_outside, which anyone may call}}
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  return %r : tensor<?x4xf32>
}

// -----

kvc.weight @position_table : tensor<20x4xf32> from "positions"
func.func @learned_positions() -> tensor<3x4xf32> {
  // expected-note@+1 {{positions of another origin}}
  %p = arith.constant dense<[0, 1, 2]> : tensor<3xi64>
  // expected-note@+2 {{hint: use kvc.positions of the cache that the step starts with}}
  // expected-error@+1 {{'kvc.embed' op expected positions that kvc.positions made from the lengths of the cache, but got the result of arith.constant}}
  %x = kvc.embed %p in @position_table : tensor<3xi64> -> tensor<3x4xf32>
  return %x : tensor<3x4xf32>
}

// -----

// Through scf.if, a cast and a callee's result.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @from_cache(%s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  return %p : tensor<?xi64>
}
func.func @followed(%x: tensor<3x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> tensor<3x4xf32> {
  %0 = arith.constant 0 : index
  %is_zero = arith.cmpi eq, %0, %0 : index
  %p = scf.if %is_zero -> tensor<?xi64> {
    %1 = func.call @from_cache(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
    scf.yield %1 : tensor<?xi64>
  } else {
    %1 = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    scf.yield %1 : tensor<?xi64>
  }
  %three = tensor.cast %p : tensor<?xi64> to tensor<3xi64>
  %r = kvc.rotary %x at %three head_dim 4 dims 4 theta 1.0e+04 : tensor<3x4xf32>, tensor<3xi64>
  return %r : tensor<3x4xf32>
}

// -----

// A step of whole heads joined along the width, in a loop of steps; a position
// table that is long enough.
!cache = !kvc.cache<layers 1, kv_heads 2, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @position_table : tensor<20x8xf32> from "positions"
func.func @decode(%h: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %n = arith.constant 30 : index
  %k = tensor.concat dim(1) %h, %h : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %cache) -> !cache {
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %p in @position_table : tensor<?xi64> -> tensor<?x8xf32>
    %next = kvc.append %k, %x to %c layer %0 at %p of %s : tensor<?x8xf32>, tensor<?x8xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}

// A chunk that fills the capacity, and a layer chosen by a known condition.
func.func @fill(%k: tensor<20x8xf32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %s = arith.constant dense<3> : tensor<20xi32>
  %p = kvc.positions %cache of %s : !cache, tensor<20xi32> -> tensor<20xi64>
  %is_first = arith.cmpi eq, %0, %0 : index
  %next = scf.if %is_first -> !cache {
    %a = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<20x8xf32>, tensor<20x8xf32>, !cache, tensor<20xi64>, tensor<20xi32>
    scf.yield %a : !cache
  } else {
    scf.yield %cache : !cache
  }
  %after = kvc.advance %next by %s : !cache, tensor<20xi32>
  return %after : !cache
}

// -----

// A layout that forgets, in a function that says so; one of which attention sees no
// more than it keeps; and one that has room for the capacity.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc_test.forgetting>
!ring = !kvc.cache<layers 1, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.ring<9, 8>>
!whole = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.ring<9, 9>>
func.func @forgets(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) attributes {kvc.inexact} {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %next = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %a = kvc.attend %q to %next layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %a, %after : tensor<?x4xf32>, !cache
}
func.func @window(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !ring) -> (tensor<?x4xf32>, !ring) {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !ring, tensor<?xi32> -> tensor<?xi64>
  %next = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !ring, tensor<?xi64>, tensor<?xi32>
  %a = kvc.attend %q to %next layer %layer at %p of %s scale 0.5 window 9 : tensor<?x4xf32>, !ring, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !ring, tensor<?xi32>
  return %a, %after : tensor<?x4xf32>, !ring
}
func.func @whole(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !whole) -> (tensor<?x4xf32>, !whole) {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !whole, tensor<?xi32> -> tensor<?xi64>
  %next = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !whole, tensor<?xi64>, tensor<?xi32>
  %a = kvc.attend %q to %next layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !whole, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !whole, tensor<?xi32>
  return %a, %after : tensor<?x4xf32>, !whole
}

// -----

// A window larger than what the layout keeps, in the second of two groups.
!two = !kvc.cache<layers 1, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.contiguous, layers 1, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.ring<9, 8>>
func.func @forgets(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !two) -> (tensor<?x4xf32>, !two) {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !two, tensor<?xi32> -> tensor<?xi64>
  %one = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !two, tensor<?xi64>, tensor<?xi32>
  // expected-note@+1 {{hint: use '!kvc.cache<layers 1, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.contiguous, layers 1, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.contiguous>' for %2}}
  %next = kvc.append %q, %q to %one group 1 layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !two, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected a layout that keeps every position that a query sees (the last 10), or a function that is kvc.inexact, but got #kvc.ring<9, 8>, which keeps the last 9}}
  %a = kvc.attend %q to %next group 1 layer %layer at %p of %s scale 0.5 window 10 : tensor<?x4xf32>, !two, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !two, tensor<?xi32>
  return %a, %after : tensor<?x4xf32>, !two
}

// -----

// Layers are those of a group: one of the second has no append.
!two = !kvc.cache<layers 1, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.contiguous, layers 2, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.paged<16>>
func.func @unequal(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !two) -> !two {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !two, tensor<?xi32> -> tensor<?xi64>
  %one = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !two, tensor<?xi64>, tensor<?xi32>
  // expected-note@+1 {{this cache}}
  %next = kvc.append %q, %q to %one group 1 layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !two, tensor<?xi64>, tensor<?xi32>
  // expected-error@+2 {{expected an append to each of the cache's 3 layers, so that all have one length, but got none to layer 1 of group 1}}
  // expected-note@+1 {{at layer 1 of group 1 gives}}
  %after = kvc.advance %next by %s : !two, tensor<?xi32>
  return %after : !two
}

// -----

!two = !kvc.cache<layers 1, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.contiguous, layers 2, kv_heads 1, capacity 90, key 4, value 4, f32, #kvc.paged<16>>
func.func @other_group(%q: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !two) -> !two {
  %layer = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !two, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{this cache}}
  %next = kvc.append %q, %q to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !two, tensor<?xi64>, tensor<?xi32>
  // expected-error@+2 {{expected the step's keys of layer 0 of group 1 to be appended before they are read, but got a cache without them}}
  // expected-note@+1 {{at layer 0 of group 1 gives}}
  %a = kvc.attend %q to %next group 1 layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !two, tensor<?xi64>, tensor<?xi32>
  return %next : !two
}

// -----

!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @unknown_layer(%x: tensor<?x4xf32>, %layer: index, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{'kvc.append' op expected a layer that is made of constants and variables of loops with constant bounds, so that layers can be followed, but got one that isn't known}}
  %next = kvc.append %x, %x to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @layer_outside(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %layer = arith.constant 2 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{'kvc.append' op expected a layer from 0 to 1, but got 2}}
  %next = kvc.append %x, %x to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}

// -----

// Positions made before a loop of steps are stale in it, from its second step on.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @hoisted_positions(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  // expected-note@+1 {{made of the lengths of an older cache}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %last = scf.for %i = %0 to %2 step %1 iter_args(%c = %cache) -> !cache {
    // expected-error@+1 {{'kvc.append' op expected positions of this step, but got those of a step before}}
    %next = kvc.append %x, %x to %c layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    // expected-note@+1 {{hint: lengths change here: use kvc.positions of %3}}
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}

// -----

// Two caches that a loop exchanges: positions of one aren't those of the other.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @exchange(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %a: !cache, %b: !cache) -> (!cache, !cache) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  // expected-note@+1 {{made of another cache here}}
  %p = kvc.positions %a of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{hint: use kvc.positions of %1#0}}
  %c:2 = scf.for %i = %0 to %3 step %1 iter_args(%x = %a, %y = %b) -> (!cache, !cache) {
    scf.yield %y, %x : !cache, !cache
  }
  // expected-error@+1 {{expected positions of the cache that the op takes, but got those of another cache}}
  %next = kvc.append %k, %k to %c#0 layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after, %c#1 : !cache, !cache
}

// -----

!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @other_branch(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %false = arith.constant false
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{this cache}}
  %next = scf.if %false -> !cache {
    %a = kvc.append %x, %x to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %a : !cache
  } else {
    scf.yield %cache : !cache
  }
  // expected-note@+2 {{hint: use what kvc.append to %1 at layer 0 gives}}
  // expected-error@+1 {{expected an append to each of the cache's 1 layers, so that all have one length, but got none to layer 0}}
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @open_step(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+2 {{appended to here}}
  // expected-note@+1 {{hint: use what kvc.advance of %1 gives}}
  %next = kvc.append %x, %x to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{'kvc.truncate' op expected a cache between two steps, but got one that was appended to and not advanced}}
  %after = kvc.truncate %next sequence %0 to %0 : !cache
  return %after : !cache
}

// -----

// Tokens of another set of sequences, at each op of a step.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{hint: use %arg1}}
func.func @append_others(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %others: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{made of other sequences here}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{expected positions of the op's own sequences, but got those of other tokens}}
  %next = kvc.append %x, %x to %cache layer %0 at %p of %others : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}
// expected-note@+1 {{the sequences of others}}
func.func @attend_others(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %others: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %o = kvc.positions %cache of %others : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{hint: use %arg1 of this append}}
  %next = kvc.append %x, %x to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected the tokens that were appended to layer 0, but got others}}
  %a = kvc.attend %x to %next layer %0 at %o of %others scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %a : tensor<?x4xf32>
}
// expected-note@+1 {{the sequences of others}}
func.func @advance_others(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %others: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{hint: use %arg1 of this append}}
  %next = kvc.append %x, %x to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{expected the sequences of the tokens that were appended, but got others}}
  %after = kvc.advance %next by %others : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

// The append to another layer is no hint.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{this cache}}
func.func @hint_of_layer(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+2 {{hint: use what kvc.append to %arg2 at layer 0 gives}}
  // expected-error@+1 {{expected the step's keys of layer 0 to be appended before they are read}}
  %a = kvc.attend %x to %cache layer %0 at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %next = kvc.append %x, %x to %cache layer %1 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}

// -----

// Of two caches, the hint names the positions of the one that is appended to.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{positions of another origin}}
func.func @hint_of_cache(%x: tensor<?x4xf32>, %z: tensor<?xi64>, %s: tensor<?xi32>, %a: !cache, %b: !cache) -> (!cache, !cache) {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{hint: use %0}}
  %p = kvc.positions %a of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %q = kvc.positions %b of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-error@+1 {{expected positions that kvc.positions made from the lengths of the cache}}
  %next = kvc.append %x, %x to %a layer %0 at %z of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after, %b : !cache, !cache
}

// -----

// Nothing is square in an argument or a part of the positions.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
// expected-note@+1 {{positions of another origin}}
func.func @no_mask(%q: tensor<?x4xf32>, %p: tensor<?xi64>, %s: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %0 = arith.constant 0 : index
  // expected-note@+2 {{hint: use kvc.positions of the cache that the step starts with}}
  // expected-error@+1 {{'kvc.attend' op expected positions that kvc.positions made from the lengths of the cache, but got an argument of @no_mask, which anyone may call}}
  %a = kvc.attend %q to %cache layer %0 at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %a : tensor<?x4xf32>
}
func.func @last_query(%n: index, %q: tensor<1x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> tensor<1x4xf32> {
  %0 = arith.constant 0 : index
  // expected-note@+1 {{hint: use %0}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{positions of another origin}}
  %p1 = tensor.extract_slice %p[%n] [1] [1] : tensor<?xi64> to tensor<1xi64>
  %s1 = tensor.extract_slice %s[%n] [1] [1] : tensor<?xi32> to tensor<1xi32>
  // expected-error@+1 {{'kvc.attend' op expected positions that kvc.positions made from the lengths of the cache, but got the result of tensor.extract_slice}}
  %a = kvc.attend %q to %cache layer %0 at %p1 of %s1 scale 0.5 : tensor<1x4xf32>, !cache, tensor<1xi64>, tensor<1xi32>
  return %a : tensor<1x4xf32>
}

// -----

// What nobody calls and can call never runs.
func.func private @uncalled(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  return %r : tensor<?x4xf32>
}

// -----

// Layers by arithmetic, of the cache and of weights.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @w : tensor<2x4x4xf32> from "{}.w"
func.func @arithmetic(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %last = scf.for %i = %0 to %2 step %1 iter_args(%c = %cache) -> !cache {
    %same = arith.addi %i, %0 : index
    %once = arith.muli %same, %1 : index
    %back = arith.subi %1, %once : index
    %k = kvc.linear %x by @w layer %back : tensor<?x4xf32> -> tensor<?x4xf32>
    %next = kvc.append %k, %x to %c layer %back at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %next : !cache
  }
  %after = kvc.advance %last by %s : !cache, tensor<?xi32>
  return %after : !cache
}

// -----

kvc.weight @w : tensor<2x4xf32> from "{}.w"
func.func @weight_outside(%x: tensor<?x4xf32>) {
  %0 = arith.constant 0 : index
  %2 = arith.constant 2 : index
  %4 = arith.constant 4 : index
  scf.for %i = %0 to %4 step %2 {
    // expected-error@+1 {{'kvc.rms_norm' op expected a layer from 0 to 1, but got 2}}
    %y = kvc.rms_norm %x by @w layer %i epsilon 1.0e-05 : tensor<?x4xf32>
  }
  return
}
