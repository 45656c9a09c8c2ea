// RUN: kvc-opt %s --kvc-assign-packing=panels=false --kvc-lower-to-linalg --canonicalize | FileCheck %s

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f16, #kvc.contiguous>

kvc.weight @table : tensor<9x4xf32> from "table"
kvc.weight @square : tensor<2x4x4xf16> from "{}.square"

// A weight is a view of the packed file: the table stands at 0, and layer l of
// the square at 192 + 32 l.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[FILE:[^:]*]]: memref<?xi8>, %[[X:[^:]*]]: tensor<?x4xf32>, %[[LAYER:[^:]*]]: index)
func.func private @layer(%x: tensor<?x4xf32>, %layer: index) -> tensor<?x4xf32> {
  // CHECK-DAG: %[[C192:.*]] = arith.constant 192 : index
  // CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
  // CHECK: %[[L:.*]] = arith.muli %[[LAYER]], %[[C32]]
  // CHECK: %[[OFFSET:.*]] = arith.addi %[[L]], %[[C192]]
  // CHECK: %[[VIEW:.*]] = memref.view %[[FILE]][%[[OFFSET]]][] : memref<?xi8> to memref<4x4xf16>
  // CHECK: %[[W:.*]] = bufferization.to_tensor %[[VIEW]] restrict
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[W]]
  // CHECK: arith.extf
  // CHECK: math.fma
  %y = kvc.linear %x by @square layer %layer : tensor<?x4xf32> -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// What is dispatched together is computed one after the other.
// CHECK-LABEL: func.func private @together
// CHECK-COUNT-2: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-NOT: kvc.
// CHECK: return
func.func private @together(%x: tensor<?x4xf32>, %layer: index) -> (tensor<?x4xf32>, tensor<?x9xf32>) {
  %y, %z = kvc.together {
    %0 = kvc.linear %x by @square layer %layer : tensor<?x4xf32> -> tensor<?x4xf32>
    %1 = kvc.linear %x by @table : tensor<?x4xf32> -> tensor<?x9xf32>
    kvc.yield %0, %1 : tensor<?x4xf32>, tensor<?x9xf32>
  } : tensor<?x4xf32>, tensor<?x9xf32>
  return %y, %z : tensor<?x4xf32>, tensor<?x9xf32>
}

// The file is passed along; who reads no weights gets none.
// CHECK-LABEL: func.func @calls
// CHECK-SAME: (%[[FILE:[^:]*]]: memref<?xi8>, %[[X:[^:]*]]: tensor<?x4xf32>, %[[LAYER:[^:]*]]: index)
func.func @calls(%x: tensor<?x4xf32>, %layer: index) -> tensor<?x4xf32> {
  // CHECK-NEXT: call @layer(%[[FILE]], %[[X]], %[[LAYER]])
  %y = call @layer(%x, %layer) : (tensor<?x4xf32>, index) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// A cache becomes its three buffers, in signatures, loops and branches; they are
// the same before and after, since updates happen in place.
// CHECK-LABEL: func.func @through_control_flow
// CHECK-SAME: (%{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: i1, %[[POOL:[^:]*]]: memref<?xi8>, %[[PAGES:[^:]*]]: memref<?xi64>, %[[LENGTHS:[^:]*]]: memref<?xi64>)
// CHECK-SAME: -> (memref<?xi8>, memref<?xi64>, memref<?xi64>)
func.func @through_control_flow(%m: index, %n: index, %which: i1, %cache: !cache) -> !cache {
  // CHECK: scf.for
  // CHECK-NOT: iter_args
  %last = scf.for %i = %m to %n step %n iter_args(%c = %cache) -> !cache {
    // CHECK: scf.if
    %next = scf.if %which -> !cache {
      %0 = kvc.truncate %c sequence %i to %i : !cache
      scf.yield %0 : !cache
    } else {
      scf.yield %c : !cache
    }
    scf.yield %next : !cache
  }
  // CHECK: return %[[POOL]], %[[PAGES]], %[[LENGTHS]]
  return %last : !cache
}

// The address of a cell comes from the page table and the layout: pages of 32
// positions, 1 a sequence.
// CHECK-LABEL: func.func @append
func.func @append(%k: tensor<?x4xf32>, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  // CHECK: %[[POSITION:.*]] = tensor.extract
  // CHECK: %[[NUMBER:.*]] = arith.divui %{{.*}}, %c32
  // CHECK: %[[ENTRY:.*]] = arith.addi %{{.*}}, %[[NUMBER]]
  // CHECK: %[[BYTES:.*]] = memref.load %{{.*}}[%[[ENTRY]]] : memref<?xi64>
  // CHECK: %[[PAGE:.*]] = memref.view %{{.*}}[%{{.*}}][] : memref<?xi8> to memref<1024xi8>
  // CHECK: %[[KEYS:.*]] = memref.view %[[PAGE]]{{.*}} to memref<2x2x4x16xf16>
  // CHECK: memref.store %{{.*}}, %[[KEYS]]
  // CHECK: %[[VALUES:.*]] = memref.view %[[PAGE]]{{.*}} to memref<2x32x4xf16>
  // CHECK: memref.store %{{.*}}, %[[VALUES]]
  %next = kvc.append %k, %k to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}
