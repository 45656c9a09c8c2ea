// What a loop hands on stays apart, whatever it is: one value twice, a value in
// another's place, one from outside. Both lowerings give the same numbers.
// DEFINE: %{yield} = %new, %old
// DEFINE: %{check} = rm -rf %t && mkdir %t && sed "s/scf.yield %new, %old,/scf.yield %{yield},/" %s > %t/m.mlir && \
// DEFINE:   kvc-opt %t/m.mlir --target=cpu:x86-64-v3 -o %t/fast && kvc-run %t/fast --ids 1,2,3,4,0 -n 0 --logits %t/fast.npy && \
// DEFINE:   kvc-opt %t/m.mlir --target=cpu:x86-64-v3 --emit=reference -o %t/plain && kvc-run %t/plain --ids 1,2,3,4,0 -n 0 --logits %t/plain.npy && \
// DEFINE:   %python %reference/compare.py %t/plain.npy %t/fast.npy --relative-to-largest --tolerance 1e-12
// RUN: %{check}
// REDEFINE: %{yield} = %new, %new
// RUN: %{check}
// REDEFINE: %{yield} = %mid, %mid
// RUN: %{check}
// REDEFINE: %{yield} = %b, %a
// RUN: %{check}
// REDEFINE: %{yield} = %new, %a
// RUN: %{check}
// REDEFINE: %{yield} = %x, %x
// RUN: %{check}
// REDEFINE: %{yield} = %inner#1, %inner#0
// RUN: %{check}

// A carried row stays in the buffer that it came in: no loop gives a new one.
// RUN: kvc-opt %s --kvc-reference-buffers-pipeline | FileCheck %s
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4xf64>
// CHECK-NOT: iter_args({{.*}}memref<?x4xf64>
// CHECK-NOT: dealloc_helper

!cache = !kvc.cache<layers 3, kv_heads 1, capacity 16, key 4, value 4, f64, #kvc.contiguous>
!rows = tensor<?x4xf64>
module @carried attributes {kvc.weights = "random:7"} {
  kvc.weight @table : tensor<5x4xf64> from "table"
  kvc.weight @w : tensor<4x4xf64> from "w"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x5xf64>, !cache) {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %2 = arith.constant 2 : index
    %3 = arith.constant 3 : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> !rows
    %y = kvc.linear %x by @w : !rows -> !rows
    %all:3 = scf.for %layer = %0 to %3 step %1 iter_args(%a = %x, %b = %y, %c = %cache) -> (!rows, !rows, !cache) {
      %old = kvc.linear %a by @w : !rows -> !rows
      // The last use of %b, which may be written over, before one of %a.
      %mid = arith.addf %b, %old : !rows
      %next = kvc.append %a, %a to %c layer %layer at %positions of %sequences : !rows, !rows, !cache, tensor<?xi64>, tensor<?xi32>
      %seen = kvc.attend %a to %next layer %layer at %positions of %sequences scale 0.5 : !rows, !cache, tensor<?xi64>, tensor<?xi32>
      %inner:2 = scf.for %i = %0 to %2 step %1 iter_args(%d = %seen, %e = %mid) -> (!rows, !rows) {
        %both = arith.addf %e, %d : !rows
        %more = kvc.linear %d by @w : !rows -> !rows
        scf.yield %more, %more : !rows, !rows
      }
      %mixed = arith.addf %mid, %inner#1 : !rows
      %new = kvc.linear %mixed by @w : !rows -> !rows
      scf.yield %new, %old, %next : !rows, !rows, !cache
    }
    %after = kvc.advance %all#2 by %sequences : !cache, tensor<?xi32>
    %result = arith.addf %all#0, %all#1 : !rows
    %chosen = kvc.select %result rows %outputs : !rows, tensor<?xi64> -> !rows
    %logits = kvc.linear %chosen by @table : !rows -> tensor<?x5xf64>
    return %logits, %after : tensor<?x5xf64>, !cache
  }
}
