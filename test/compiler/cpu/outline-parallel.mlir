// RUN: kvc-opt %s --kvc-outline-parallel --split-input-file --verify-diagnostics | FileCheck %s

// The task: captured values come from the context, a constant is made again, and
// scratch memory is reserved once for all tasks of a call.
// CHECK-LABEL: llvm.func internal @task
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64) attributes {no_inline} {
// CHECK-NEXT: memref.alloca() : memref<16xf32>
// CHECK: llvm.getelementptr %[[CONTEXT]][0, 0]
// CHECK: llvm.load {{.*}} : !llvm.ptr -> f32
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[CONTEXT]][0, 1]
// CHECK: %[[BUFFER:.*]] = llvm.load %[[FIELD]] : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
// CHECK: %[[X:.*]] = builtin.unrealized_conversion_cast %[[BUFFER]] {{.*}} to memref<?xf32>
// CHECK-NOT: llvm.getelementptr
// CHECK: %[[FROM:.*]] = arith.index_cast %[[BEGIN]]
// CHECK: %[[TO:.*]] = arith.index_cast %[[END]]
// CHECK: scf.for %[[I:.*]] = %[[FROM]] to %[[TO]]
// CHECK: arith.constant 3.0
// CHECK: memref.store %{{.*}}, %[[X]][%[[I]]]
// An inner parallel loop is part of the task.
// CHECK: scf.parallel
// CHECK: llvm.return

// CHECK-LABEL: llvm.func internal @task_0
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr,

// The caller: a context on its stack, filled before each call of the executor.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[^:]*]]: memref<?xf32>, %{{[^:]*}}: memref<?xi8>, %[[EXECUTOR:[^:]*]]: !llvm.ptr)
func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  // CHECK: %[[STORAGE1:.*]] = llvm.alloca {{.*}} {alignment = 64 : i64}
  // CHECK: %[[STORAGE0:.*]] = llvm.alloca {{.*}} x !llvm.struct<(f32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)> {alignment = 64 : i64}
  // CHECK: %[[N:.*]] = memref.dim
  // CHECK-NOT: scf.parallel
  // CHECK: %[[TO0:.*]] = llvm.getelementptr %[[STORAGE0]][0, 0]
  // CHECK: llvm.store %{{.*}}, %[[TO0]]
  // CHECK: %[[AS_STRUCT:.*]] = builtin.unrealized_conversion_cast %[[X]]
  // CHECK: %[[TO1:.*]] = llvm.getelementptr %[[STORAGE0]][0, 1]
  // CHECK: llvm.store %[[AS_STRUCT]], %[[TO1]]
  // A single task is called.
  // CHECK: %[[COUNT:.*]] = arith.index_cast %[[N]] : index to i64
  // CHECK: %[[SINGLE:.*]] = arith.cmpi ule, %[[COUNT]], %{{.*}} : i64
  // CHECK: scf.if %[[SINGLE]] {
  // CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i64)
  // CHECK: llvm.call @task(%[[STORAGE0]], %[[ZERO]], %[[COUNT]])
  // CHECK: } else {
  // CHECK: %[[FOR:.*]] = llvm.load %[[EXECUTOR]]
  // CHECK: %[[TASK:.*]] = llvm.mlir.addressof @task
  // CHECK: llvm.call %[[FOR]](%[[EXECUTOR]], %[[TASK]], %[[STORAGE0]], %[[COUNT]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  %a = memref.load %logits[%c0] : memref<?xf32>
  %three = arith.constant 3.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %scratch = memref.alloca() : memref<16xf32>
    %b = arith.mulf %a, %three : f32
    memref.store %b, %scratch[%c0] : memref<16xf32>
    memref.store %b, %logits[%i] : memref<?xf32>
    scf.parallel (%j) = (%c0) to (%c1) step (%c1) {
      memref.store %b, %logits[%j] : memref<?xf32>
      scf.reduce
    }
    scf.reduce
  }
  // A loop in a loop over layers captures the layer.
  // Up to eight rows are called as well.
  // CHECK: scf.for %[[L:.*]] =
  // CHECK: llvm.store
  // CHECK: %[[FEW:.*]] = llvm.mlir.constant(8 : i64)
  // CHECK: arith.cmpi ule, %{{.*}}, %[[FEW]] : i64
  // CHECK: llvm.mlir.addressof @task_0
  // CHECK: llvm.call
  scf.for %l = %c0 to %n step %c1 {
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      memref.store %a, %logits[%l] : memref<?xf32>
      scf.reduce
    } {kvc.rows}
  }
  // CHECK: return
  return
}

// -----

func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  // expected-error@+1 {{'scf.parallel' op expected one dimension from 0 in steps of 1, without reductions}}
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    scf.reduce
  }
  return
}

// -----

func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  // expected-error@+1 {{'scf.parallel' op expected one dimension from 0 in steps of 1, without reductions}}
  scf.parallel (%i) = (%c1) to (%n) step (%c1) {
    scf.reduce
  }
  return
}

// -----

func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  %a = memref.load %logits[%c0] : memref<?xf32>
  // expected-error@+1 {{'scf.parallel' op expected one dimension from 0 in steps of 1, without reductions}}
  %s = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%a) -> f32 {
    scf.reduce(%a : f32) {
    ^bb0(%l: f32, %r: f32):
      %sum = arith.addf %l, %r : f32
      scf.reduce.return %sum : f32
    }
  }
  return
}

// -----

// expected-error@+1 {{expected @forward to have the parameters of kvc_forward_function (kvc/abi.h), but got '(!llvm.ptr) -> ()'}}
func.func @forward(%executor: !llvm.ptr) {
  return
}
