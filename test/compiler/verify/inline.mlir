// RUN: kvc-opt %s --kvc-inline --symbol-dce --split-input-file --verify-diagnostics | FileCheck %s

// @forward is the entry, whoever else could be called; calls inside of calls, in a
// loop and in an op's region.
// CHECK-NOT: @twice
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>
// CHECK: %[[A:.*]] = kvc.activate %[[X]] relu
// CHECK: %[[B:.*]] = kvc.activate %[[A]] relu
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = %[[B]])
// CHECK: %[[C:.*]] = kvc.activate %[[H]] relu
// CHECK: %[[D:.*]] = kvc.activate %[[C]] relu
// CHECK: scf.yield %[[D]]
// CHECK: call @elsewhere
// CHECK-NOT: call
func.func @once(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = kvc.activate %x relu : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
func.func @twice(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = call @once(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %z = call @once(%y) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %z : tensor<?x4xf32>
}
func.func private @elsewhere()
func.func private @forward(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %y = call @twice(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %z = scf.for %i = %0 to %1 step %1 iter_args(%h = %y) -> tensor<?x4xf32> {
    %w = func.call @twice(%h) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %w : tensor<?x4xf32>
  }
  call @elsewhere() : () -> ()
  return %z : tensor<?x4xf32>
}

// -----

// Functions of several entries stay; what has more than one block stays a call.
// CHECK-LABEL: func.func @first
// CHECK: kvc.activate
// CHECK-LABEL: func.func private @blocks
// CHECK-LABEL: func.func @second
// CHECK-NEXT: kvc.activate
// CHECK-NEXT: call @blocks
func.func @first(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = kvc.activate %x relu : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
func.func private @blocks() {
  cf.br ^next
^next:
  return
}
func.func @second(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = call @first(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  call @blocks() : () -> ()
  return %y : tensor<?x4xf32>
}

// -----

func.func @itself() {
  // expected-error@+1 {{'func.call' op expected a call that can be inlined, but @itself calls itself}}
  call @itself() : () -> ()
  return
}

// -----

func.func private @one() {
  call @other() : () -> ()
  return
}
func.func private @other() {
  // expected-error@+1 {{'func.call' op expected a call that can be inlined, but @one calls itself}}
  call @one() : () -> ()
  return
}
func.func @calls() {
  call @one() : () -> ()
  return
}

// -----

// What a text of the fused stage dispatches together is a matter of that stage.
// CHECK-LABEL: func.func @fused
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>
// CHECK-NEXT: %[[A:.*]] = kvc.linear %[[X]] by @square
// CHECK-NEXT: %[[B:.*]] = kvc.linear %[[X]] by @square
// CHECK-NEXT: %[[C:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: return %[[C]]
kvc.weight @square : tensor<4x4xf32> from "square"
func.func @fused(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %a, %b = kvc.together {
    %0 = kvc.linear %x by @square : tensor<?x4xf32> -> tensor<?x4xf32>
    %1 = kvc.linear %x by @square : tensor<?x4xf32> -> tensor<?x4xf32>
    kvc.yield %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
  } : tensor<?x4xf32>, tensor<?x4xf32>
  %c = arith.addf %a, %b : tensor<?x4xf32>
  return %c : tensor<?x4xf32>
}
