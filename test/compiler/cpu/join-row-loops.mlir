// RUN: kvc-opt %s --kvc-join-row-loops | FileCheck %s

// Loops over the rows of one call become one, row by row, where what stands in between
// has no effect: allocations stay before it. The first loop is of fewer rows, and the
// last isn't a loop over rows.
// CHECK-LABEL: func.func @forward
func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %few = memref.dim %outputs, %c0 : memref<?xi64>
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  // CHECK: %[[FEW:.*]] = memref.dim %{{.*}} : memref<?xi64>
  // CHECK: %[[N:.*]] = memref.dim %{{.*}} : memref<?xi32>
  // CHECK: scf.parallel (%{{.*}}) = (%c0) to (%[[FEW]])
  // CHECK: {kvc.rows}
  scf.parallel (%i) = (%c0) to (%few) step (%c1) {
    memref.store %one, %logits[%i] : memref<?xf32>
    scf.reduce
  } {kvc.rows}
  // CHECK-NEXT: %[[A:.*]] = memref.alloc
  // CHECK-NEXT: %[[B:.*]] = memref.alloc
  // CHECK-NEXT: scf.parallel (%[[I:.*]]) = (%c0) to (%[[N]])
  // CHECK-NEXT: memref.store %{{.*}}, %[[A]][%[[I]]]
  // CHECK-NEXT: memref.load %[[A]][%[[I]]]
  // CHECK-NEXT: memref.store %{{.*}}, %[[B]][%[[I]]]
  // CHECK-NEXT: memref.load %[[B]][%[[I]]]
  // CHECK-NEXT: memref.store %{{.*}}, %[[A]][%[[I]]]
  // CHECK-NEXT: scf.reduce
  // CHECK-NEXT: {kvc.rows}
  %a = memref.alloc(%n) : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %one, %a[%i] : memref<?xf32>
    scf.reduce
  } {kvc.rows}
  %b = memref.alloc(%n) : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %a[%i] : memref<?xf32>
    memref.store %x, %b[%i] : memref<?xf32>
    scf.reduce
  } {kvc.rows}
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %b[%i] : memref<?xf32>
    memref.store %x, %a[%i] : memref<?xf32>
    scf.reduce
  } {kvc.rows}
  // What has an effect stays between them.
  // CHECK-NEXT: memref.store %{{.*}}, %[[A]][%c0]
  // CHECK-NEXT: scf.parallel
  // CHECK-NEXT: memref.store
  // CHECK-NEXT: scf.reduce
  // CHECK-NEXT: {kvc.rows}
  memref.store %one, %a[%c0] : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %one, %b[%i] : memref<?xf32>
    scf.reduce
  } {kvc.rows}
  // CHECK-NEXT: scf.parallel
  // CHECK-NEXT: memref.load %[[B]][%c0]
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %b[%c0] : memref<?xf32>
    memref.store %x, %a[%i] : memref<?xf32>
    scf.reduce
  }
  return
}
