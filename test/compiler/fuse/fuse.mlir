// RUN: kvc-opt %s --kvc-fuse | FileCheck %s

kvc.weight @up : tensor<8x4xf32> from "up"
kvc.weight @gate : tensor<8x4xf32> from "gate"
kvc.weight @bias : tensor<8xf32> from "bias"

// CHECK-LABEL: func.func @activation
// CHECK-SAME: (%[[X:[^:]*]]: tensor<?x4xf32>)
func.func @activation(%x: tensor<?x4xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: %[[A:.*]] = kvc.linear %[[X]] by @up bias @bias activation gelu
  // CHECK-NEXT: return %[[A]]
  %h = kvc.linear %x by @up bias @bias : tensor<?x4xf32> -> tensor<?x8xf32>
  %a = kvc.activate %h gelu : tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @activation_of_a_shared_value
func.func @activation_of_a_shared_value(%x: tensor<?x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK: kvc.linear {{.*}} by @up : 
  // CHECK: kvc.activate
  %h = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %a = kvc.activate %h gelu : tensor<?x8xf32>
  return %a, %h : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @residual
// CHECK-SAME: (%[[X:[^:]*]]: tensor<?x4xf32>, %[[Y:[^:]*]]: tensor<?x4xf32>, %[[R:[^:]*]]: tensor<?x8xf32>)
func.func @residual(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %r: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = kvc.linear %[[X]] by @up residual(%[[R]] : tensor<?x8xf32>)
  // CHECK-NEXT: %[[B:.*]] = kvc.linear %[[Y]] by @gate residual(%[[R]] : tensor<?x8xf32>)
  // CHECK-NEXT: return %[[A]], %[[B]]
  %0 = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %a = arith.addf %0, %r : tensor<?x8xf32>
  %1 = kvc.linear %y by @gate : tensor<?x4xf32> -> tensor<?x8xf32>
  %b = arith.addf %r, %1 : tensor<?x8xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
}

// A linear has one epilogue: activation first, then the residual.
// CHECK-LABEL: func.func @activation_and_residual
func.func @activation_and_residual(%x: tensor<?x4xf32>, %r: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: kvc.linear {{.*}} activation relu residual(
  // CHECK-NEXT: return
  %0 = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = kvc.activate %0 relu : tensor<?x8xf32>
  %2 = arith.addf %1, %r : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @activation_of_a_sum
func.func @activation_of_a_sum(%x: tensor<?x4xf32>, %r: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: kvc.linear {{.*}} by @up residual(
  // CHECK-NEXT: kvc.activate
  %0 = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %r : tensor<?x8xf32>
  %2 = kvc.activate %1 relu : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @gated
// CHECK-SAME: (%[[X:[^:]*]]: tensor<?x4xf32>, %[[Y:[^:]*]]: tensor<?x4xf32>)
func.func @gated(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: kvc.gated_linear %[[X]] by @gate, @up gate_bias @bias activation silu
  // CHECK-NEXT: kvc.gated_linear %[[Y]] by @gate, @up up_bias @bias activation gelu
  // CHECK-NEXT: return
  %0 = kvc.linear %x by @gate bias @bias : tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %2 = kvc.activate %0 silu : tensor<?x8xf32>
  %3 = arith.mulf %2, %1 : tensor<?x8xf32>
  %4 = kvc.linear %y by @gate : tensor<?x4xf32> -> tensor<?x8xf32>
  %5 = kvc.linear %y by @up bias @bias : tensor<?x4xf32> -> tensor<?x8xf32>
  %6 = kvc.activate %4 gelu : tensor<?x8xf32>
  %7 = arith.mulf %5, %6 : tensor<?x8xf32>
  return %3, %7 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @gate_of_other_input
func.func @gate_of_other_input(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x8xf32> {
  // CHECK-NOT: kvc.gated_linear
  // CHECK: arith.mulf
  %0 = kvc.linear %x by @gate : tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = kvc.linear %y by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %2 = kvc.activate %0 silu : tensor<?x8xf32>
  %3 = arith.mulf %2, %1 : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// What has one input and needs nothing of each other is dispatched together, where
// the first stood; each in the body keeps its epilogue.
// CHECK-LABEL: func.func @together
// CHECK-SAME: (%[[X:[^:]*]]: tensor<?x4xf32>, %[[R:[^:]*]]: tensor<?x8xf32>)
func.func @together(%x: tensor<?x4xf32>, %r: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: %[[ALL:.*]]:3 = kvc.together {
  // CHECK-NEXT:   %[[A:.*]] = kvc.linear %[[X]] by @up bias @bias
  // CHECK-NEXT:   %[[B:.*]] = kvc.gated_linear %[[X]] by @gate, @up activation silu
  // CHECK-NEXT:   %[[C:.*]] = kvc.linear %[[X]] by @gate residual(%[[R]] :
  // CHECK-NEXT:   kvc.yield %[[A]], %[[B]], %[[C]]
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[N:.*]] = arith.negf %[[ALL]]#0
  // CHECK-NEXT: return %[[N]], %[[ALL]]#1, %[[ALL]]#2
  %a = kvc.linear %x by @up bias @bias : tensor<?x4xf32> -> tensor<?x8xf32>
  %n = arith.negf %a : tensor<?x8xf32>
  %0 = kvc.linear %x by @gate : tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %2 = kvc.activate %0 silu : tensor<?x8xf32>
  %b = arith.mulf %2, %1 : tensor<?x8xf32>
  %3 = kvc.linear %x by @gate : tensor<?x4xf32> -> tensor<?x8xf32>
  %c = arith.addf %3, %r : tensor<?x8xf32>
  return %n, %b, %c : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// One that needs another's result, here as its residual, stays behind it; so do two
// that could stand together after it.
// CHECK-LABEL: func.func @not_together
func.func @not_together(%x: tensor<?x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = kvc.linear %{{.*}} by @up :
  // CHECK-NEXT: %[[H:.*]] = kvc.activate %[[A]] relu
  // CHECK-NEXT: %[[ALL:.*]]:2 = kvc.together {
  // CHECK-NEXT:   kvc.linear %{{.*}} by @gate residual(%[[A]] :
  // CHECK-NEXT:   kvc.linear %{{.*}} by @up residual(%[[H]] :
  // CHECK: return %[[ALL]]#0, %[[ALL]]#1
  %a = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %h = kvc.activate %a relu : tensor<?x8xf32>
  %0 = kvc.linear %x by @gate : tensor<?x4xf32> -> tensor<?x8xf32>
  %b = arith.addf %0, %a : tensor<?x8xf32>
  %1 = kvc.linear %x by @up : tensor<?x4xf32> -> tensor<?x8xf32>
  %c = arith.addf %1, %h : tensor<?x8xf32>
  return %b, %c : tensor<?x8xf32>, tensor<?x8xf32>
}
