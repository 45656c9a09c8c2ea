// RUN: kvc-opt %s --kvc-defer-advance | FileCheck %s

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[CACHE:[^:]*]]: !cache, %[[S:[^:]*]]: tensor<?xi32>)
func.func @forward(%cache: !cache, %s: tensor<?xi32>) -> !cache {
  // The step's advance goes; one inside of the step stays.
  // CHECK-NEXT: %[[INSIDE:.*]] = kvc.advance %[[CACHE]] by %[[S]]
  // CHECK-NEXT: return %[[INSIDE]]
  %0 = kvc.advance %cache by %s : !cache, tensor<?xi32>
  %1 = kvc.advance %0 by %s : !cache, tensor<?xi32>
  return %1 : !cache
}

// CHECK-LABEL: func.func @other
func.func @other(%cache: !cache, %s: tensor<?xi32>) -> !cache {
  // CHECK: kvc.advance
  %0 = kvc.advance %cache by %s : !cache, tensor<?xi32>
  return %0 : !cache
}
