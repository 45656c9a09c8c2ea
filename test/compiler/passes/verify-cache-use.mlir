// RUN: kvc-opt %s --kvc-verify-cache-use --split-input-file --verify-diagnostics

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

// Each branch consumes the value: only one of them runs.
func.func @branches(%which: i1, %s: index, %cache: !cache) -> !cache {
  %next = scf.if %which -> !cache {
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
  scf.for %i = %n to %n step %n {
    %p = func.call @reads(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
  }
  %p = call @reads(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
  %next = kvc.advance %cache by %s : !cache, tensor<?xi32>
  return %next : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @attend_to_stale(%x: tensor<?x4xf32>, %layer: index, %s: tensor<?xi32>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{consumed here; the cache that this op gives is the newer value}}
  %next = kvc.append %x, %x to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  // expected-error@+1 {{'kvc.attend' op expected the newest value of the cache, but got one that was consumed before}}
  %a = kvc.attend %x to %cache layer %layer at %p of %s scale 0.5 : tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %a, %next : tensor<?x4xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @return_stale(%s: tensor<?xi32>, %cache: !cache) -> !cache {
  // expected-note@+1 {{consumed here}}
  %next = kvc.advance %cache by %s : !cache, tensor<?xi32>
  // expected-error@+1 {{'func.return' op expected the newest value}}
  return %cache : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @consume_twice(%s: tensor<?xi32>, %i: index, %cache: !cache) -> !cache {
  // expected-note@+1 {{consumed here}}
  %a = kvc.advance %cache by %s : !cache, tensor<?xi32>
  // expected-error@+1 {{'kvc.truncate' op expected the newest value}}
  %b = kvc.truncate %cache sequence %i to %i : !cache
  // expected-error@+1 {{'kvc.fork' op expected the newest value}}
  %c = kvc.fork %cache from %i to %i : !cache
  return %c : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @consumes(%s: tensor<?xi32>, %cache: !cache) {
  %0 = kvc.advance %cache by %s : !cache, tensor<?xi32>
  return
}
func.func private @consumes_by_call(%s: tensor<?xi32>, %cache: !cache) {
  call @consumes(%s, %cache) : (tensor<?xi32>, !cache) -> ()
  return
}
func.func @stale_after_call(%s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  // expected-note@+1 {{consumed here}}
  call @consumes_by_call(%s, %cache) : (tensor<?xi32>, !cache) -> ()
  // expected-error@+1 {{'kvc.positions' op expected the newest value}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  return %p : tensor<?xi64>
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @two(%a: !cache, %b: !cache) -> (!cache, !cache) {
  return %a, %b : !cache, !cache
}
func.func @one_cache_twice(%cache: !cache) -> !cache {
  // expected-note@+2 {{consumed here}}
  // expected-error@+1 {{'func.call' op expected the newest value of the cache, but got one that the same op consumes}}
  %0:2 = call @two(%cache, %cache) : (!cache, !cache) -> (!cache, !cache)
  return %0#0 : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @stale_in_loop(%n: index, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  // expected-note@+1 {{consumed here}}
  %last = scf.for %i = %n to %n step %n iter_args(%c = %cache) -> !cache {
    // expected-error@+1 {{'kvc.positions' op expected the newest value}}
    %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    scf.yield %c : !cache
  }
  return %last : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @yield_stale(%n: index, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %last = scf.for %i = %n to %n step %n iter_args(%c = %cache) -> !cache {
    // expected-note@+1 {{consumed here}}
    %next = kvc.advance %c by %s : !cache, tensor<?xi32>
    // expected-error@+1 {{'scf.yield' op expected the newest value}}
    scf.yield %c : !cache
  }
  return %last : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @consumed_each_iteration(%n: index, %s: tensor<?xi32>, %cache: !cache) {
  // expected-note@+1 {{consumed in each iteration of this loop}}
  scf.for %i = %n to %n step %n {
    // expected-error@+1 {{'kvc.advance' op expected a cache that a loop consumes to be carried by the loop}}
    %next = kvc.advance %cache by %s : !cache, tensor<?xi32>
  }
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @stale_after_branch(%which: i1, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  scf.if %which {
    // expected-note@+1 {{consumed here}}
    %next = kvc.advance %cache by %s : !cache, tensor<?xi32>
  }
  // expected-error@+1 {{'func.return' op expected the newest value}}
  return %cache : !cache
}

// -----

// What can't be followed is an error, never accepted.
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @elsewhere(!cache) -> !cache
func.func @unknown_callee(%cache: !cache) -> !cache {
  // expected-error@+1 {{'func.call' op expected a cache to be used by kvc ops, calls of functions with a body, scf.for and scf.if, so that its newest value can be followed, but got this op}}
  %next = call @elsewhere(%cache) : (!cache) -> !cache
  return %next : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @branch(%cache: !cache) -> !cache {
  // expected-error@+1 {{'cf.br' op expected a cache to be used by kvc ops}}
  cf.br ^next(%cache : !cache)
^next(%c: !cache):
  // expected-error@+1 {{'func.return' op expected a cache in structured control flow (scf.for, scf.if), so that its newest value can be followed, but got blocks that branch}}
  return %c : !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @stale_in_another_block(%s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  // expected-error@+1 {{'kvc.advance' op expected a cache in structured control flow}}
  %next = kvc.advance %cache by %s : !cache, tensor<?xi32>
  cf.br ^next
^next:
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  return %p : tensor<?xi64>
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @choose(%which: i1, %a: !cache, %b: !cache) -> !cache {
  // expected-error@+1 {{'arith.select' op expected a cache to be used by kvc ops}}
  %c = arith.select %which, %a, %b : !cache
  return %c : !cache
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
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %last:2 = scf.for %layer = %n to %n step %n iter_args(%q = %p, %c = %cache) -> (tensor<?xi64>, !cache) {
    %next = func.call @append_at(%x, %layer, %q, %s, %c) : (tensor<?x4xf32>, index, tensor<?xi64>, tensor<?xi32>, !cache) -> !cache
    scf.yield %zero, %next : tensor<?xi64>, !cache
  }
  return %last#1 : !cache
}

// -----

func.func @positions_from_outside(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  // expected-note@-1 {{positions of another origin}}
  // expected-error@+1 {{'kvc.rotary' op expected positions that kvc.positions made from the lengths of the cache, but got an argument of @positions_from_outside, which anyone may call}}
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  return %r : tensor<?x4xf32>
}

// -----

func.func private @called_by_address(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  // expected-note@-1 {{positions of another origin}}
  // expected-error@+1 {{but got an argument of @called_by_address, which anyone may call}}
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  return %r : tensor<?x4xf32>
}
func.func @address() -> ((tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>) {
  %f = constant @called_by_address : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  return %f : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
}

// -----

kvc.weight @position_table : tensor<20x4xf32> from "positions"
func.func @learned_positions() -> tensor<3x4xf32> {
  // expected-note@+1 {{positions of another origin}}
  %p = arith.constant dense<[0, 1, 2]> : tensor<3xi64>
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
func.func @followed(%which: i1, %x: tensor<3x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> tensor<3x4xf32> {
  %p = scf.if %which -> tensor<?xi64> {
    %0 = func.call @from_cache(%s, %cache) : (tensor<?xi32>, !cache) -> tensor<?xi64>
    scf.yield %0 : tensor<?xi64>
  } else {
    %0 = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    scf.yield %0 : tensor<?xi64>
  }
  %three = tensor.cast %p : tensor<?xi64> to tensor<3xi64>
  %r = kvc.rotary %x at %three head_dim 4 dims 4 theta 1.0e+04 : tensor<3x4xf32>, tensor<3xi64>
  return %r : tensor<3x4xf32>
}
