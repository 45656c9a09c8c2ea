// A decoder on buffers: nothing allocates or copies a cache, and nothing changes
// its lengths, which the runtime commits.
// RUN: kvc-opt %s --kvc-reference-buffers-pipeline -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t --check-prefix=NOCOPY
// And down to LLVM, where nothing of kvc is left.
// RUN: kvc-opt %s --kvc-reference-pipeline | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

!cache = !kvc.cache<layers 2, kv_heads 3, capacity 20, key 8, value 8, bf16, #kvc.contiguous>
module @story attributes {kvc.weights = "random:1"} {
  kvc.weight @embed : tensor<19x24xf64> from "embed"
  kvc.weight @pos : tensor<20x24xf64> from "pos"
  kvc.weight @norm : tensor<2x24xf64> from "{}.norm"
  kvc.weight @norm.b : tensor<2x24xf64> from "{}.norm.b"
  kvc.weight @q : tensor<2x24x24xf64> from "{}.q"
  kvc.weight @up : tensor<2x96x24xf64> from "{}.up"
  kvc.weight @down : tensor<2x24x96xf64> from "{}.down"
  func.func private @layer(%layer: index, %x: tensor<?x24xf64>, %positions: tensor<?xi64>, %sequences: tensor<?xi32>, %cache: !cache) -> (tensor<?x24xf64>, !cache) {
    %h = kvc.layer_norm %x by @norm bias @norm.b layer %layer epsilon 1.0e-05 : tensor<?x24xf64>
    %q = kvc.linear %h by @q layer %layer : tensor<?x24xf64> -> tensor<?x24xf64>
    %r = kvc.rotary %q at %positions head_dim 8 dims 6 theta 1.0e+04 : tensor<?x24xf64>, tensor<?xi64>
    %next = kvc.append %r, %q to %cache layer %layer at %positions of %sequences : tensor<?x24xf64>, tensor<?x24xf64>, !cache, tensor<?xi64>, tensor<?xi32>
    %a = kvc.attend %r to %next layer %layer at %positions of %sequences scale 0.35355339059327373 : tensor<?x24xf64>, !cache, tensor<?xi64>, tensor<?xi32>
    %y = arith.addf %x, %a : tensor<?x24xf64>
    %u = kvc.linear %y by @up layer %layer activation gelu : tensor<?x24xf64> -> tensor<?x96xf64>
    %d = kvc.linear %u by @down layer %layer residual(%y : tensor<?x24xf64>) : tensor<?x96xf64> -> tensor<?x24xf64>
    return %d, %next : tensor<?x24xf64>, !cache
  }
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x19xf64>, !cache) {
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %t = kvc.embed %tokens in @embed : tensor<?xi32> -> tensor<?x24xf64>
    %p = kvc.embed %positions in @pos : tensor<?xi64> -> tensor<?x24xf64>
    %x = arith.addf %t, %p : tensor<?x24xf64>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %y, %last = scf.for %l = %c0 to %c2 step %c1 iter_args(%z = %x, %c = %cache) -> (tensor<?x24xf64>, !cache) {
      %w, %n = func.call @layer(%l, %z, %positions, %sequences, %c) : (index, tensor<?x24xf64>, tensor<?xi64>, tensor<?xi32>, !cache) -> (tensor<?x24xf64>, !cache)
      scf.yield %w, %n : tensor<?x24xf64>, !cache
    }
    %after = kvc.advance %last by %sequences : !cache, tensor<?xi32>
    %s = kvc.select %y rows %outputs : tensor<?x24xf64>, tensor<?xi64> -> tensor<?x24xf64>
    %logits = kvc.linear %s by @embed : tensor<?x24xf64> -> tensor<?x19xf64>
    return %logits, %after : tensor<?x19xf64>, !cache
  }
}

// One function: the layers are inlined, in one loop.
// CHECK-NOT: func.func private @layer
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%{{[^:]*}}: memref<?xi8>, %[[POOL:[^:]*]]: memref<?xi8>, %[[PAGES:[^:]*]]: memref<?xi64>, %[[LENGTHS:[^:]*]]: memref<?xi64>,
// The only writes to the pool are those of append, to views of it.
// CHECK: %[[PAGE:.*]] = memref.view %[[POOL]]
// CHECK: %[[KEYS:.*]] = memref.view %[[PAGE]]
// CHECK: memref.store %{{.*}}, %[[KEYS]]
// CHECK-NOT: memref.store %{{.*}}, %[[LENGTHS]]
// CHECK: return

// Buffers of bytes, and of the cache's type, are those of the caller only.
// NOCOPY-LABEL: func.func @forward
// NOCOPY-NOT: memref.alloc{{.*}} : memref<{{.*}}xi8>
// NOCOPY-NOT: memref.alloc{{.*}} : memref<{{.*}}xbf16>
// NOCOPY-NOT: memref.copy{{.*}}xi8
// NOCOPY-NOT: memref.copy{{.*}}xbf16
// NOCOPY: return

// LLVM-DAG: declare ptr @malloc(i64)
// LLVM-DAG: declare double @erf(double)
// LLVM-NOT: memrefCopy
// LLVM: define void @_mlir_ciface_forward(ptr %0, ptr %1, ptr %2, ptr %3, ptr %4, ptr %5, ptr %6, ptr %7, ptr %8, ptr %9)
