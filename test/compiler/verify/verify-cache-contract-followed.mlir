// Programs that can't be followed, or for too long, are errors that say what
// can't; and what is near to them is accepted.
// RUN: kvc-opt %s --kvc-inline --kvc-verify-cache-contract --split-input-file --verify-diagnostics

// A cache of an op without a rule.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @extracted(%t: tensor<1x!cache>) -> !cache {
  %0 = arith.constant 0 : index
  // expected-error@+1 {{'tensor.extract' op expected a cache that comes from an argument of a function through kvc ops, scf.for and scf.if, so that it can be followed, but got one of this op}}
  %c = tensor.extract %t[%0] : tensor<1x!cache>
  return %c : !cache
}
func.func @poisoned(%cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %last = scf.for %i = %0 to %1 step %1 iter_args(%c = %cache) -> !cache {
    // expected-error@+1 {{'ub.poison' op expected a cache that comes from an argument of a function through kvc ops, scf.for and scf.if, so that it can be followed, but got one of this op}}
    %x = ub.poison : !cache
    scf.yield %x : !cache
  }
  return %last : !cache
}
func.func private @elsewhere() -> !cache
func.func @of_elsewhere() -> !cache {
  // expected-error@+1 {{'func.call' op expected a cache that comes from an argument of a function through kvc ops, scf.for and scf.if, so that it can be followed, but got one of this op}}
  %c = call @elsewhere() : () -> !cache
  return %c : !cache
}

// -----

// An op without a rule that takes one.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @elsewhere(!cache) -> !cache
func.func @unknown_callee(%cache: !cache) -> !cache {
  // expected-error@+1 {{'func.call' op expected a cache to be used by kvc ops, scf.for and scf.if, so that its newest value can be followed, but got this op}}
  %next = call @elsewhere(%cache) : (!cache) -> !cache
  return %next : !cache
}
func.func @choose(%which: i1, %a: !cache, %b: !cache) -> !cache {
  // expected-error@+1 {{'arith.select' op expected a cache to be used by kvc ops}}
  %c = arith.select %which, %a, %b : !cache
  return %c : !cache
}

// -----

// A call that wasn't inlined, which is of a cache, too.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @blocks(%cache: !cache) -> !cache {
  // expected-error@+1 {{'cf.br' op expected ops of a step in a func.func of one block that returns}}
  cf.br ^next(%cache : !cache)
^next(%c: !cache):
  return %c : !cache
}
func.func @calls(%cache: !cache) -> !cache {
  // expected-error@+1 {{'func.call' op expected calls to be inlined before (kvc-inline), so that steps can be followed, but got one of @blocks}}
  %next = call @blocks(%cache) : (!cache) -> !cache
  return %next : !cache
}

// -----

// Blocks that branch, and functions of another kind.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @branch(%cache: !cache) -> !cache {
  // expected-error@+1 {{'cf.br' op expected ops of a step in a func.func of one block that returns, so that it can be followed, but got one elsewhere}}
  cf.br ^next(%cache : !cache)
^next(%c: !cache):
  return %c : !cache
}
func.func private @blocks(%x: tensor<?x4xf32>, %p: tensor<?xi64>) -> tensor<?x4xf32> {
  cf.br ^next
^next:
  // expected-error@+1 {{'kvc.rotary' op expected ops of a step in a func.func of one block that returns}}
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  return %r : tensor<?x4xf32>
}
ml_program.func @other_function(%s: tensor<?xi32>, %cache: !cache) -> tensor<?xi64> {
  // expected-error@+1 {{'kvc.positions' op expected ops of a step in a func.func of one block that returns}}
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  ml_program.return %p : tensor<?xi64>
}

// -----

// Calls of functions that weren't inlined.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func private @blocks(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  cf.br ^next
^next:
  return %x : tensor<?x4xf32>
}
func.func @calls(%x: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %r = kvc.rotary %x at %p head_dim 4 dims 4 theta 1.0e+04 : tensor<?x4xf32>, tensor<?xi64>
  // expected-error@+1 {{'func.call' op expected calls to be inlined before (kvc-inline), so that steps can be followed, but got one of @blocks}}
  %y = call @blocks(%r) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// Regions that may run or not, or often.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @position_table : tensor<20x4xf32> from "positions"
func.func @region(%s: tensor<?xi32>, %cache: !cache) -> tensor<?x4xf32> {
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{under this one}}
  %x = scf.execute_region -> tensor<?x4xf32> {
    // expected-error@+1 {{'kvc.embed' op expected ops of a step under scf.for and scf.if whose numbers are constants or made of them, so that the step can be followed, but got one under another op}}
    %y = kvc.embed %p in @position_table : tensor<?xi64> -> tensor<?x4xf32>
    scf.yield %y : tensor<?x4xf32>
  }
  return %x : tensor<?x4xf32>
}
func.func @some_branch(%which: i1, %k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  // expected-note@+1 {{under this one}}
  %next = scf.if %which -> !cache {
    // expected-error@+1 {{'kvc.append' op expected ops of a step under scf.for and scf.if whose numbers are constants or made of them}}
    %a = kvc.append %k, %k to %cache layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    scf.yield %a : !cache
  } else {
    scf.yield %cache : !cache
  }
  %after = kvc.advance %next by %s : !cache, tensor<?xi32>
  return %after : !cache
}
func.func @some_steps(%n: index, %k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-note@+1 {{under this one}}
  %last = scf.for %i = %0 to %n step %1 iter_args(%c = %cache) -> !cache {
    // expected-error@+1 {{'kvc.positions' op expected ops of a step under scf.for and scf.if whose numbers are constants or made of them}}
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    %next = kvc.append %k, %k to %c layer %0 at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}
func.func @unsigned(%s: tensor<?xi32>, %cache: !cache) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-note@+1 {{under this one}}
  scf.for unsigned %i = %0 to %1 step %1 {
    // expected-error@+1 {{'kvc.positions' op expected ops of a step under scf.for and scf.if whose numbers are constants or made of them}}
    %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  }
  return
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

// A step may stay open from iteration to iteration.
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @rotated(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %n = arith.constant 10 : index
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

// Long loops; a cache of more layers than could be counted is no loop.
!cache = !kvc.cache<layers 80, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
func.func @decode(%k: tensor<?x4xf32>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %layers = arith.constant 80 : index
  %steps = arith.constant 1000000 : index
  %last = scf.for %i = %0 to %steps step %1 iter_args(%c = %cache) -> !cache {
    %p = kvc.positions %c of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    // expected-error@+1 {{'scf.for' op expected 1048576 ops at most where loops are followed, but got more}}
    %appended = scf.for %layer = %0 to %layers step %1 iter_args(%d = %c) -> !cache {
      %next = kvc.append %k, %k to %d layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
      scf.yield %next : !cache
    }
    %after = kvc.advance %appended by %s : !cache, tensor<?xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}
func.func @empty_iterations() {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %end = arith.constant 9223372036854775807 : index
  // expected-error@+1 {{'scf.for' op expected 1048576 ops at most where loops are followed, but got more}}
  scf.for %i = %0 to %end step %1 {
  }
  return
}
func.func @many_layers(%cache: !kvc.cache<layers 562949953421312, kv_heads 1, capacity 1, key 1, value 1, f32, #kvc.contiguous>) {
  return
}

// -----

// Loops that would never end: their variable wraps.
func.func @wraps() {
  %0 = arith.constant 0 : index
  %step = arith.constant 4611686018427387904 : index
  %end = arith.constant 9223372036854775807 : index
  // expected-error@+1 {{'scf.for' op expected a loop that ends before its variable leaves 64 bits, but got a step of 4611686018427387904}}
  scf.for %i = %0 to %end step %step {
  }
  return
}
func.func @stays() {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op expected a step of 1 or more, but got 0}}
  scf.for %i = %0 to %1 step %0 {
  }
  return
}

// -----

func.func @overflow() -> index {
  %end = arith.constant 9223372036854775807 : index
  // expected-error@+1 {{'arith.muli' op expected a number of 64 bits, but got more}}
  %square = arith.muli %end, %end : index
  return %square : index
}
