// RUN: kvc-opt %s --kvc-plan-workspace=max-tokens=10 --split-input-file --verify-diagnostics | FileCheck %s

// Buffers share bytes where their lives don't overlap. Sizes are those of 10 rows.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[WORKSPACE:[^:]*]]: memref<?xi8>, %{{[^:]*}}: !llvm.ptr) attributes {kvc.workspace_bytes = 1280 : i64}
func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  // CHECK: %c0 = arith.constant 0 : index
  %c0 = arith.constant 0 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  %zero = arith.constant 0.0 : f32
  // CHECK-NOT: memref.alloc
  // %a: 10 * 16 * 4 bytes from 0 on.
  // CHECK: %[[AT:.*]] = arith.constant 0 : index
  // CHECK: %[[A:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?x16xf32>
  %a = memref.alloc(%n) : memref<?x16xf32>
  // CHECK: memref.store %{{.*}}, %[[A]]
  memref.store %zero, %a[%c0, %c0] : memref<?x16xf32>
  // %b lives at the same time as %a.
  // CHECK: %[[AT:.*]] = arith.constant 640 : index
  // CHECK: %[[B:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?x8xf64>
  %b = memref.alloc(%n) : memref<?x8xf64>
  // CHECK: memref.load %[[A]]
  %v = memref.load %a[%c0, %c0] : memref<?x16xf32>
  %w = arith.extf %v : f32 to f64
  // CHECK: memref.store %{{.*}}, %[[B]]
  memref.store %w, %b[%c0, %c0] : memref<?x8xf64>
  // %a has had its last use: %c takes its place. 10 * 8 bytes, and %d follows at
  // the next cache line.
  // CHECK: %[[AT:.*]] = arith.constant 0 : index
  // CHECK: memref.view %[[WORKSPACE]][%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?xi64>
  %c = memref.alloc(%n) : memref<?xi64>
  // CHECK: %[[AT:.*]] = arith.constant 128 : index
  // CHECK: memref.view %[[WORKSPACE]][%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?xf32>
  %d = memref.alloc(%n) : memref<?xf32>
  %u = memref.load %b[%c0, %c0] : memref<?x8xf64>
  %i = arith.fptosi %u : f64 to i64
  memref.store %i, %c[%c0] : memref<?xi64>
  memref.store %v, %d[%c0] : memref<?xf32>
  return
}

// -----

// A buffer that is read in a loop lives as long as the loop, since the next
// iteration reads it again; one of the loop's own lives in one iteration. A view
// prolongs a life.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: kvc.workspace_bytes = 192 : i64
func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  // CHECK: %c0 = arith.constant 0 : index
  %c0 = arith.constant 0 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[AT:.*]] = arith.constant 0 : index
  // CHECK: %[[OUTER:.*]] = memref.view %{{.*}}[%[[AT]]][
  %outer = memref.alloc(%n) : memref<?xf32>
  %all = memref.reinterpret_cast %outer to offset: [0], sizes: [1, %n], strides: [1, 1] : memref<?xf32> to memref<1x?xf32>
  // CHECK: scf.for
  scf.for %l = %c0 to %n step %c1 {
    %v = memref.load %all[%c0, %c0] : memref<1x?xf32>
    // CHECK: %[[AT:.*]] = arith.constant 64 : index
    // CHECK: memref.view %{{.*}}[%[[AT]]][
    %first = memref.alloc(%n) : memref<?xf32>
    // CHECK: %[[AT:.*]] = arith.constant 128 : index
    // CHECK: memref.view %{{.*}}[%[[AT]]][
    %second = memref.alloc(%n) : memref<?xf32>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      memref.store %v, %first[%i] : memref<?xf32>
      memref.store %v, %second[%i] : memref<?xf32>
      scf.reduce
    }
    // %second is free after the parallel loop, %first is not.
    // CHECK: %[[AT:.*]] = arith.constant 128 : index
    // CHECK: memref.view %{{.*}}[%[[AT]]][
    %third = memref.alloc(%n) : memref<?xf32>
    memref.copy %first, %third : memref<?xf32> to memref<?xf32>
    // Now %first is.
    // CHECK: %[[AT:.*]] = arith.constant 64 : index
    // CHECK: memref.view %{{.*}}[%[[AT]]][
    %fourth = memref.alloc(%n) : memref<?xf32>
    memref.copy %third, %fourth : memref<?xf32> to memref<?xf32>
  }
  // CHECK: %[[AT:.*]] = arith.constant 0 : index
  // CHECK: memref.view %{{.*}}[%[[AT]]][
  %last = memref.alloc(%n) : memref<?xf32>
  memref.store %zero, %last[%c0] : memref<?xf32>
  return
}

// -----

// Only @forward has a workspace.
// CHECK-LABEL: func.func @other
func.func @other(%n: index) {
  // CHECK: memref.alloc
  %a = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

// expected-error@+1 {{expected @forward to have the parameters of kvc_forward_function (kvc/abi.h), but got '() -> ()'}}
func.func @forward() {
  return
}

// -----

// A large buffer stands in the place of a smaller one before it, and what lives
// beside both stands behind the large one: 10 * (48 + 8) * 4 bytes.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: kvc.workspace_bytes = 2240 : i64
func.func @forward(%weights: memref<?xi8>, %pool: memref<?xi8>, %pages: memref<?xi64>, %lengths: memref<?xi64>, %tokens: memref<?xi32>, %sequences: memref<?xi32>, %outputs: memref<?xi64>, %logits: memref<?xf32>, %workspace: memref<?xi8>, %executor: !llvm.ptr) {
  // CHECK: %c0 = arith.constant 0 : index
  %c0 = arith.constant 0 : index
  %n = memref.dim %tokens, %c0 : memref<?xi32>
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[AT:.*]] = arith.constant 0 : index
  // CHECK: memref.view %{{.*}}[%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?x16xf32>
  %small = memref.alloc(%n) : memref<?x16xf32>
  memref.store %zero, %small[%c0, %c0] : memref<?x16xf32>
  // CHECK: %[[AT:.*]] = arith.constant 1920 : index
  // CHECK: memref.view %{{.*}}[%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?x8xf32>
  %beside = memref.alloc(%n) : memref<?x8xf32>
  %v = memref.load %small[%c0, %c0] : memref<?x16xf32>
  memref.store %v, %beside[%c0, %c0] : memref<?x8xf32>
  // CHECK: %[[AT:.*]] = arith.constant 0 : index
  // CHECK: memref.view %{{.*}}[%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?x48xf32>
  %large = memref.alloc(%n) : memref<?x48xf32>
  %w = memref.load %beside[%c0, %c0] : memref<?x8xf32>
  memref.store %w, %large[%c0, %c0] : memref<?x48xf32>
  return
}
