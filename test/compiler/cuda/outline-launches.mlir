// A parallel loop becomes a kernel and a launch: its tasks two a block, its parameters
// behind each other where the launcher reads them.
// RUN: kvc-opt %s --kvc-outline-launches --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: memref.global "private" constant @table
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[WEIGHTS:[^:]*]]: memref<?xi8>
// CHECK-SAME: %[[LAUNCHER:[^:]*]]: !llvm.ptr
memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %launcher: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  %table = memref.get_global @table : memref<2xf32>
  // CHECK: llvm.store %{{.*}}, %{{.*}} : i64, !llvm.ptr
  // CHECK: %[[BLOCKS:.*]] = arith.ceildivui %[[N:.*]], %c2
  // CHECK: %[[COUNT:.*]] = arith.index_cast %[[BLOCKS]]
  // CHECK: %[[LAUNCH:.*]] = llvm.load %[[LAUNCHER]]
  // CHECK: %[[FIRST:.*]] = llvm.mlir.constant(0 : i64)
  // CHECK: llvm.call %[[LAUNCH]](%[[LAUNCHER]], %[[FIRST]], %[[COUNT]], %{{.*}}, %{{.*}})
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %table[%c1] : memref<2xf32>
    memref.store %x, %logits[%i] : memref<?xf32>
    scf.reduce
  } loc(#kernel)
  // CHECK: %[[SECOND:.*]] = llvm.mlir.constant(1 : i64)
  // CHECK: llvm.call %{{.*}}(%[[LAUNCHER]], %[[SECOND]]
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    %x = memref.load %logits[%i] : memref<?xf32>
    memref.store %x, %logits[%i] : memref<?xf32>
    scf.reduce
  }
  return
}
#line = loc("model.mlir":7:3)
#kernel = loc("fill.logits"(#line))

// CHECK: gpu.module @kernels
// CHECK: memref.global "private" constant @table
// CHECK: gpu.func @fill_logits(%[[TASKS:.*]]: index, %[[OUT:.*]]: memref<?xf32>) kernel
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[IS:.*]] = arith.cmpi ult, %[[TASK:.*]], %[[TASKS]]
// CHECK: scf.if %[[IS]]
// CHECK: memref.get_global @table
// CHECK: memref.store %{{.*}}, %[[OUT]][%[[TASK]]]
// CHECK: gpu.func @task(

// -----

// The host reads none of the device's memory.
func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %launcher: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{expected the device's memory to be touched by tasks alone}}
  %x = memref.load %lengths[%c0] : memref<?xi64>
  memref.store %x, %lengths[%c0] : memref<?xi64>
  return
}
