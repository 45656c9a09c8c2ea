// RUN: kvc-opt %s --kvc-assign-packing=panels=false --kvc-lower-to-linalg --kvc-export-reference --split-input-file --verify-diagnostics | FileCheck %s

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f16, #kvc.contiguous>

// CHECK-NOT: kvc.weight
kvc.weight @table : tensor<9x4xf32> from "table"

// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[WEIGHTS:[^:]*]]: memref<?xi8>, %{{[^:]*}}: memref<?xi8>, %{{[^:]*}}: memref<?xi64>, %{{[^:]*}}: memref<?xi64>,
// CHECK-SAME: %[[TOKENS:[^:]*]]: memref<?xi32>, %{{[^:]*}}: memref<?xi32>, %[[OUTPUTS:[^:]*]]: memref<?xi64>,
// CHECK-SAME: %[[LOGITS:[^:]*]]: memref<?xf32>, %{{[^:]*}}: memref<?xi8>, %{{[^:]*}}: !llvm.ptr) attributes {llvm.emit_c_interface}
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x4xf32>, !cache) {
  // CHECK: bufferization.to_tensor %[[TOKENS]] restrict
  // CHECK: %[[ROWS:.*]] = linalg.generic
  // Every NaN is the same one.
  // CHECK: %[[RESULT:.*]] = linalg.generic {{.*}} ins(%[[ROWS]] :
  // CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[X:.*]], %[[X]] : f32
  // CHECK: arith.select %[[NAN]], %{{.*}}, %[[X]] : f32
  %logits = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x4xf32>
  // CHECK: %[[M:.*]] = memref.dim %[[OUTPUTS]]
  // CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[LOGITS]] to offset: [0], sizes: [%[[M]], 4], strides: [4, 1]
  // CHECK: bufferization.materialize_in_destination %[[RESULT]] in restrict writable %[[ROWS]]
  // CHECK-NEXT: return{{$}}
  return %logits, %cache : tensor<?x4xf32>, !cache
}

// -----

// expected-error@+1 {{expected a function @forward to export, but found none}}
module {}

// -----

// expected-error@+1 {{expected @forward to take weights, tokens, sequences, outputs and a cache, and to give logits and a cache, but got '(tensor<?xi32>) -> tensor<?xi32>'}}
func.func @forward(%tokens: tensor<?xi32>) -> tensor<?xi32> {
  return %tokens : tensor<?xi32>
}
