// Each setting of a rotary embedding has one table of frequencies, whose name is
// nobody else's.
// RUN: kvc-opt %s --kvc-assign-packing --kvc-lower-to-kernels | FileCheck %s

// CHECK-DAG: memref.global "private" constant @[[SLOW:rotary_frequencies_[0-9]+]] : memref<16xf64> = dense<[1.000000e+00, 1.000000e-03,
// CHECK-DAG: memref.global "private" constant @[[FAST:rotary_frequencies_[0-9]+]] : memref<16xf64> = dense<[1.000000e+00, 1.000000e-02,
// CHECK-NOT: memref.global
// CHECK-LABEL: func.func @forward
// CHECK: memref.get_global @[[FAST]]
// CHECK: memref.get_global @[[SLOW]]
// CHECK: memref.get_global @[[FAST]]
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 16, key 4, value 4, f32, #kvc.contiguous>
!rows = tensor<?x4xf32>
module @m attributes {kvc.weights = "random:7"} {
  kvc.weight @rotary_frequencies : tensor<5x4xf32> from "table"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf32>, !cache) {
    %0 = arith.constant 0 : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @rotary_frequencies : tensor<?xi32> -> !rows
    %k = kvc.rotary %x at %positions head_dim 4 dims 4 theta 1.0e+04 : !rows, tensor<?xi64>
    %q = kvc.rotary %k at %positions head_dim 4 dims 4 theta 1.0e+06 : !rows, tensor<?xi64>
    %r = kvc.rotary %q at %positions head_dim 4 dims 4 theta 1.0e+04 : !rows, tensor<?xi64>
    %next = kvc.append %k, %x to %cache layer %0 at %positions of %sequences : !rows, !rows, !cache, tensor<?xi64>, tensor<?xi32>
    %seen = kvc.attend %r to %next layer %0 at %positions of %sequences scale 0.5 : !rows, !cache, tensor<?xi64>, tensor<?xi32>
    %chosen = kvc.select %seen rows %outputs : !rows, tensor<?xi64> -> !rows
    %logits = kvc.linear %chosen by @rotary_frequencies : !rows -> tensor<?x5xf32>
    return %logits, %next : tensor<?x5xf32>, !cache
  }
}
