// A vector is a number of each of 16 threads; what crosses lanes is a shuffle, and what
// is stored and read by others stands between barriers.
// RUN: kvc-opt %s --pass-pipeline='builtin.module(gpu.module(kvc-distribute-lanes,canonicalize,cse))' --split-input-file --verify-diagnostics | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @sum
  // CHECK-SAME: (%[[ROWS:.*]]: memref<?x24xf32>, %[[OUT:.*]]: memref<?xf32>, %[[TASK:.*]]: index)
  gpu.func @sum(%rows: memref<?x24xf32>, %out: memref<?xf32>, %task: index) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    // CHECK: %[[LANE:.*]] = arith.remui %{{.*}}, %c16
    // CHECK: %[[MASK:.*]] = arith.shli %c65535_i32
    // CHECK: %[[WHOLE:.*]] = memref.load %[[ROWS]][%[[TASK]], %[[LANE]]]
    %whole = vector.load %rows[%task, %c0] : memref<?x24xf32>, vector<16xf32>
    // CHECK: %[[IS8:.*]] = arith.cmpi ult, %[[LANE]], %c8
    // CHECK: %[[PART:.*]] = scf.if %[[IS8]] -> (f32)
    // CHECK:   memref.load %[[ROWS]][%[[TASK]], %{{.*}}]
    // CHECK: arith.select %[[IS8]], %[[PART]], %cst
    %part = vector.load %rows[%task, %c16] : memref<?x24xf32>, vector<8xf32>
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %rest = vector.insert_strided_slice %part, %zero {offsets = [0], strides = [1]} : vector<8xf32> into vector<16xf32>
    // CHECK: %[[FMA:.*]] = math.fma %[[WHOLE]]
    %both = math.fma %whole, %rest, %whole : vector<16xf32>
    // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %c8_i32
    // CHECK: %[[HIGH:.*]] = nvvm.shfl.sync idx %[[MASK]], %[[FMA]], %[[AT]], %c4127_i32
    %low = vector.extract_strided_slice %both {offsets = [0], sizes = [8], strides = [1]} : vector<16xf32> to vector<8xf32>
    %high = vector.extract_strided_slice %both {offsets = [8], sizes = [8], strides = [1]} : vector<16xf32> to vector<8xf32>
    // CHECK: %[[SUM:.*]] = arith.addf %[[FMA]], %[[HIGH]]
    %sum = arith.addf %low, %high : vector<8xf32>
    // CHECK: %[[ONE:.*]] = nvvm.shfl.sync idx %[[MASK]], %[[SUM]], %c3_i32, %c4127_i32
    %one = vector.extract %sum[3] : f32 from vector<8xf32>
    // The lanes know it all; the first one stores it.
    // CHECK: %[[IS0:.*]] = arith.cmpi ult, %[[LANE]], %c1
    // CHECK: scf.if %[[IS0]]
    // CHECK:   memref.store %[[ONE]], %[[OUT]]
    memref.store %one, %out[%task] : memref<?xf32>
    gpu.return
  }

  // What lanes exchange is shared memory, for each of a block's tasks; what each uses by
  // itself is its own.
  // CHECK-LABEL: gpu.func @scratch
  // CHECK-SAME: workgroup(%[[SHARED:.*]] : memref<2x2x16xf32, #gpu.address_space<workgroup>>)
  gpu.func @scratch(%rows: memref<?x16xf32>, %task: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    // CHECK: memref.alloca() : memref<2xf32>
    %shared = memref.alloca() : memref<2x16xf32>
    %own = memref.alloca() : memref<2x16xf32>
    %x = vector.load %rows[%task, %c0] : memref<?x16xf32>, vector<16xf32>
    // CHECK: memref.store %{{.*}}, %{{.*}}[%c1] : memref<2xf32>
    vector.store %x, %own[%c1, %c0] : memref<2x16xf32>, vector<16xf32>
    // CHECK: nvvm.bar.warp.sync
    // CHECK-NEXT: memref.store %{{.*}}, %[[SHARED]][%{{.*}}, %c1, %{{.*}}]
    // CHECK-NEXT: nvvm.bar.warp.sync
    vector.store %x, %shared[%c1, %c0] : memref<2x16xf32>, vector<16xf32>
    %y = vector.load %own[%c1, %c0] : memref<2x16xf32>, vector<16xf32>
    // CHECK: memref.load %[[SHARED]][%{{.*}}, %c1, %c5]
    %z = memref.load %shared[%c1, %c5] : memref<2x16xf32>
    %zs = vector.broadcast %z : f32 to vector<16xf32>
    %sum = arith.addf %y, %zs : vector<16xf32>
    vector.store %sum, %rows[%task, %c0] : memref<?x16xf32>, vector<16xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @loops
  gpu.func @loops(%rows: memref<?x16xf32>, %task: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : vector<16xf32>
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %cst) -> (f32)
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%before = %zero) -> (vector<16xf32>) {
      %x = vector.load %rows[%i, %c0] : memref<?x16xf32>, vector<16xf32>
      %next = arith.addf %before, %x : vector<16xf32>
      scf.yield %next : vector<16xf32>
    }
    // CHECK: arith.shrui %c5_i32
    // CHECK: arith.trunci
    %mask = arith.constant dense<[true, false, true, false, false, false, false, false, false, false, false, false, false, false, false, false]> : vector<16xi1>
    %some = arith.select %mask, %sum, %zero : vector<16xi1>, vector<16xf32>
    vector.store %some, %rows[%task, %c0] : memref<?x16xf32>, vector<16xf32>
    gpu.return
  }
}

// -----

// Four bytes a lane, and a word of four of each fourth.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @bytes
  gpu.func @bytes(%rows: memref<?x64xi8>, %out: memref<?x4xi32>, %task: index) kernel {
    %c0 = arith.constant 0 : index
    // CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c4
    // CHECK: %[[FOUR:.*]] = vector.load %{{.*}}[%{{.*}}, %[[FIRST]]] {alignment = 4 : i64} : memref<?x64xi8>, vector<4xi8>
    %x = vector.load %rows[%task, %c0] : memref<?x64xi8>, vector<64xi8>
    // CHECK: %[[WORD:.*]] = vector.bitcast %[[FOUR]] : vector<4xi8> to vector<1xi32>
    // CHECK: %[[OWN:.*]] = vector.extract %[[WORD]][0]
    %words = vector.bitcast %x : vector<64xi8> to vector<16xi32>
    // CHECK: %[[DOT:.*]] = nvvm.dot.accumulate.4way %[[FOUR]] <unsigned>, %[[FOUR]] <signed>, %[[OWN]]
    %dot = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%words, %x, %x) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
    // CHECK: %[[BYTE:.*]] = arith.trunci %[[DOT]] : i32 to i8
    %bytes = arith.trunci %dot : vector<16xi32> to vector<16xi8>
    // CHECK-COUNT-4: nvvm.shfl.sync idx
    // CHECK: arith.ori
    %packed = vector.bitcast %bytes : vector<16xi8> to vector<4xi32>
    vector.store %packed, %out[%task, %c0] : memref<?x4xi32>, vector<4xi32>
    // CHECK-COUNT-4: arith.maxsi
    %most = vector.reduction <maxsi>, %dot : vector<16xi32> into i32
    memref.store %most, %out[%task, %c0] : memref<?x4xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @shuffled(%rows: memref<?x16xf32>, %task: index) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %rows[%task, %c0] : memref<?x16xf32>, vector<16xf32>
    // expected-error @+1 {{'vector.shuffle' op expected an op that a lane can do by itself}}
    %y = vector.shuffle %x, %x [0, 2] : vector<16xf32>, vector<16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @other(%rows: memref<?x64xi8>, %task: index) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %rows[%task, %c0] : memref<?x64xi8>, vector<64xi8>
    // expected-error @+1 {{expected an intrinsic that a device has, but got llvm.x86.avx2.psign.b}}
    %y = llvm.call_intrinsic "llvm.x86.avx2.psign.b"(%x, %x) : (vector<64xi8>, vector<64xi8>) -> vector<64xi8>
    gpu.return
  }
}
