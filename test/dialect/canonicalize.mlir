// RUN: kvc-opt %s --canonicalize | FileCheck %s

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>

// CHECK-LABEL: func.func @truncate_twice
// CHECK-SAME: (%[[CACHE:[^:]*]]: !cache, %[[S:[^:]*]]: index)
func.func @truncate_twice(%cache: !cache, %s: index) -> !cache {
  // CHECK: %[[SHORTER:.*]] = arith.constant 3 : index
  %3 = arith.constant 3 : index
  %7 = arith.constant 7 : index
  // CHECK-NEXT: %[[RESULT:.*]] = kvc.truncate %[[CACHE]] sequence %[[S]] to %[[SHORTER]]
  %0 = kvc.truncate %cache sequence %s to %3 : !cache
  %1 = kvc.truncate %0 sequence %s to %7 : !cache
  // CHECK-NEXT: return %[[RESULT]]
  return %1 : !cache
}

// CHECK-LABEL: func.func @truncate_other_sequence
func.func @truncate_other_sequence(%cache: !cache, %s: index, %t: index) -> !cache {
  // CHECK-COUNT-2: kvc.truncate
  %3 = arith.constant 3 : index
  %0 = kvc.truncate %cache sequence %s to %3 : !cache
  %1 = kvc.truncate %0 sequence %t to %3 : !cache
  return %1 : !cache
}

// CHECK-LABEL: func.func @truncate_to_unknown
func.func @truncate_to_unknown(%cache: !cache, %s: index, %n: index) -> !cache {
  // CHECK-COUNT-2: kvc.truncate
  %3 = arith.constant 3 : index
  %0 = kvc.truncate %cache sequence %s to %n : !cache
  %1 = kvc.truncate %0 sequence %s to %3 : !cache
  return %1 : !cache
}

// CHECK-LABEL: func.func @fork_onto_itself
// CHECK-SAME: (%[[CACHE:[^:]*]]: !cache
func.func @fork_onto_itself(%cache: !cache, %s: index) -> !cache {
  // CHECK-NEXT: return %[[CACHE]]
  %0 = kvc.fork %cache from %s to %s : !cache
  return %0 : !cache
}

// CHECK-LABEL: func.func @fork_to_another
func.func @fork_to_another(%cache: !cache, %s: index, %t: index) -> !cache {
  // CHECK-NEXT: kvc.fork
  %0 = kvc.fork %cache from %s to %t : !cache
  return %0 : !cache
}

// CHECK-LABEL: func.func @reorder_keeps
// CHECK-SAME: (%[[CACHE:[^:]*]]: !cache)
func.func @reorder_keeps(%cache: !cache) -> !cache {
  // CHECK-NEXT: return %[[CACHE]]
  %order = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %0 = kvc.reorder %cache by %order : !cache, tensor<3xi32>
  return %0 : !cache
}

// CHECK-LABEL: func.func @reorder_swaps
func.func @reorder_swaps(%cache: !cache) -> !cache {
  // CHECK: kvc.reorder
  %order = arith.constant dense<[1, 0]> : tensor<2xi32>
  %0 = kvc.reorder %cache by %order : !cache, tensor<2xi32>
  return %0 : !cache
}
