// Every op, type and attribute is parsed, printed, parsed and printed the same;
// from the generic form too.
// RUN: kvc-opt %s > %t.1
// RUN: kvc-opt %t.1 > %t.2
// RUN: diff %t.1 %t.2
// RUN: kvc-opt %s --mlir-print-op-generic | kvc-opt -o %t.3.mlir
// RUN: diff %t.1 %t.3.mlir
// RUN: FileCheck %s --input-file=%t.1
// One blank between words.
// RUN: not grep -E "[^ ] {2,}[^ ]" %t.1

// CHECK: !cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
!groups = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.ring<7, 3>, layers 1, kv_heads 1, capacity 20, key 8, value 8, bf16, #kvc.paged<16>>

// CHECK: capacity 16, key 1, value 1, f64, #kvc.contiguous>
// CHECK: capacity 16, key 1, value 1, f32, #kvc.contiguous>
// CHECK: capacity 16, key 1, value 1, bf16, #kvc.contiguous>
// CHECK: capacity 40, key 1, value 1, f32, #kvc.paged<16>>
// CHECK: !cache{{[0-9]+}} = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.ring<7, 3>, layers 1, kv_heads 1, capacity 20, key 8, value 8, bf16, #kvc.paged<16>>
// CHECK: kvc.weights = "random:1"
module attributes {kvc.weights = "random:1"} {
  // CHECK: kvc.weight @table : tensor<9x16xf64> from "table"
  kvc.weight @table : tensor<9x16xf64> from "table"
  // CHECK: kvc.weight @norm : tensor<16xf32> from "norm" packed <offset 1152, panel 16>
  kvc.weight @norm : tensor<16xf32> from "norm" packed <offset 1152, panel 16>
  // CHECK: kvc.weight @norm.bias : tensor<16xf32> from "norm.bias"
  kvc.weight @norm.bias : tensor<16xf32> from "norm.bias"
  // CHECK: kvc.weight @square : tensor<2x16x16xf16> from "{}.square" transposed first_row 32 paired_heads 4
  kvc.weight @square : tensor<2x16x16xf16> from "{}.square" transposed first_row 32 paired_heads 4
  // CHECK: kvc.weight @bias : tensor<2x16xbf16> from "{}.bias"
  kvc.weight @bias : tensor<2x16xbf16> from "{}.bias"

  // CHECK: kvc.weight @bytes : tensor<8x32x!kvc.q8_0> from "bytes" packed <offset 0, panel 32>
  kvc.weight @bytes : tensor<8x32x!kvc.q8_0> from "bytes" packed <offset 0, panel 32>
  // CHECK: kvc.weight @nibbles : tensor<2x8x32x!kvc.q4_0> from "{}.nibbles"
  kvc.weight @nibbles : tensor<2x8x32x!kvc.q4_0> from "{}.nibbles"
  // CHECK: kvc.weight @minima : tensor<2x8x32x!kvc.q4_1> from "{}.minima"
  kvc.weight @minima : tensor<2x8x32x!kvc.q4_1> from "{}.minima"

  // CHECK: kvc.weight @mixed.q8_0 : tensor<2x8x32x!kvc.q8_0> from "{}.mixed" layers [0, 2]
  kvc.weight @mixed.q8_0 : tensor<2x8x32x!kvc.q8_0> from "{}.mixed" layers [0, 2]
  // CHECK: kvc.weight @mixed.f16 : tensor<1x8x32xf16> from "{}.mixed" layers [1]
  kvc.weight @mixed.f16 : tensor<1x8x32xf16> from "{}.mixed" layers [1]
  // CHECK: kvc.stack @mixed of [@mixed.q8_0, @mixed.f16]
  kvc.stack @mixed of [@mixed.q8_0, @mixed.f16]
  kvc.weight @narrow.q8_0 : tensor<1x8x32x!kvc.q8_0> from "{}.narrow" layers [0]
  kvc.weight @narrow.bf16 : tensor<1x8x32xbf16> from "{}.narrow" layers [1]
  kvc.stack @narrow of [@narrow.q8_0, @narrow.bf16]

  // CHECK-LABEL: func.func @blocks
  func.func @blocks(%x: tensor<?x32xf32>, %layer: index) {
    // CHECK: kvc.linear %{{.*}} rounded by @bytes : tensor<?x32xf32> -> tensor<?x8xf32>
    %0 = kvc.linear %x rounded by @bytes : tensor<?x32xf32> -> tensor<?x8xf32>
    // CHECK: kvc.linear %{{.*}} by @nibbles layer
    %1 = kvc.linear %x by @nibbles layer %layer : tensor<?x32xf32> -> tensor<?x8xf32>
    // CHECK: kvc.gated_linear %{{.*}} rounded by @nibbles, @minima layer %{{.*}} activation silu : tensor<?x32xf32> -> tensor<?x8xf32>
    %2 = kvc.gated_linear %x rounded by @nibbles, @minima layer %layer activation silu : tensor<?x32xf32> -> tensor<?x8xf32>
    // CHECK: kvc.linear %{{.*}} rounded by @mixed layer %{{.*}} : tensor<?x32xf32> -> tensor<?x8xf32>
    %3 = kvc.linear %x rounded by @mixed layer %layer : tensor<?x32xf32> -> tensor<?x8xf32>
    // CHECK: kvc.linear %{{.*}} rounded narrowed by @narrow layer %{{.*}} : tensor<?x32xf32> -> tensor<?x8xf32>
    %4 = kvc.linear %x rounded narrowed by @narrow layer %layer : tensor<?x32xf32> -> tensor<?x8xf32>
    // CHECK: kvc.gated_linear %{{.*}} narrowed by @narrow, @narrow layer %{{.*}} activation silu : tensor<?x32xf32> -> tensor<?x8xf32>
    %5 = kvc.gated_linear %x narrowed by @narrow, @narrow layer %layer activation silu : tensor<?x32xf32> -> tensor<?x8xf32>
    return
  }

  // CHECK-LABEL: func.func @rows
  func.func @rows(%tokens: tensor<?xi32>, %rows: tensor<?xi64>, %layer: index) -> tensor<?x16xf32> {
    // CHECK: %[[X:.*]] = kvc.embed %{{.*}} in @table : tensor<?xi32> -> tensor<?x16xf32>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x16xf32>
    // CHECK: kvc.rms_norm %[[X]] by @norm epsilon 1.000000e-05 : tensor<?x16xf32>
    %0 = kvc.rms_norm %x by @norm epsilon 1.0e-05 : tensor<?x16xf32>
    // CHECK: kvc.rms_norm %{{.*}} by @bias layer %{{.*}} epsilon
    %1 = kvc.rms_norm %0 by @bias layer %layer epsilon 1.0e-05 : tensor<?x16xf32>
    // CHECK: kvc.layer_norm %{{.*}} by @norm epsilon
    %2 = kvc.layer_norm %1 by @norm epsilon 1.0e-05 : tensor<?x16xf32>
    // CHECK: kvc.layer_norm %{{.*}} by @bias bias @bias layer %{{.*}} epsilon
    %3 = kvc.layer_norm %2 by @bias bias @bias layer %layer epsilon 1.0e-05 : tensor<?x16xf32>
    // CHECK: kvc.linear %{{.*}} by @square layer %{{.*}} : tensor<?x16xf32> -> tensor<?x16xf32>
    %4 = kvc.linear %3 by @square layer %layer : tensor<?x16xf32> -> tensor<?x16xf32>
    // CHECK: kvc.linear %{{.*}} by @square bias @bias layer %{{.*}} activation gelu residual(%{{.*}} : tensor<?x16xf32>) : tensor<?x16xf32> -> tensor<?x16xf32>
    %5 = kvc.linear %4 by @square bias @bias layer %layer activation gelu residual(%x : tensor<?x16xf32>) : tensor<?x16xf32> -> tensor<?x16xf32>
    // CHECK: kvc.linear %{{.*}} by @table : tensor<?x16xf32> -> tensor<?x9xf32>
    %logits = kvc.linear %5 by @table : tensor<?x16xf32> -> tensor<?x9xf32>
    // CHECK: kvc.gated_linear %{{.*}} by @square, @square layer %{{.*}} activation silu : tensor<?x16xf32> -> tensor<?x16xf32>
    %6 = kvc.gated_linear %5 by @square, @square layer %layer activation silu : tensor<?x16xf32> -> tensor<?x16xf32>
    // CHECK: kvc.gated_linear %{{.*}} by @square, @square gate_bias @bias up_bias @bias layer %{{.*}} activation gelu_tanh
    %7 = kvc.gated_linear %6 by @square, @square gate_bias @bias up_bias @bias layer %layer activation gelu_tanh : tensor<?x16xf32> -> tensor<?x16xf32>
    // CHECK: %{{.*}}:2 = kvc.together {
    // CHECK-NEXT: %[[A:.*]] = kvc.linear
    // CHECK-NEXT: %[[B:.*]] = kvc.gated_linear
    // CHECK-NEXT: kvc.yield %[[A]], %[[B]] : tensor<?x9xf32>, tensor<?x16xf32>
    // CHECK-NEXT: } : tensor<?x9xf32>, tensor<?x16xf32>
    %both:2 = kvc.together {
      %a = kvc.linear %5 by @table : tensor<?x16xf32> -> tensor<?x9xf32>
      %b = kvc.gated_linear %5 by @square, @square layer %layer activation silu : tensor<?x16xf32> -> tensor<?x16xf32>
      kvc.yield %a, %b : tensor<?x9xf32>, tensor<?x16xf32>
    } : tensor<?x9xf32>, tensor<?x16xf32>
    // CHECK: kvc.activate %{{.*}} relu : tensor<?x16xf32>
    %8 = kvc.activate %7 relu : tensor<?x16xf32>
    // CHECK: kvc.activate %{{.*}} silu : tensor<?x16xf32>
    %9 = kvc.activate %8 silu : tensor<?x16xf32>
    // CHECK: kvc.activate %{{.*}} gelu : tensor<?x16xf32>
    %10 = kvc.activate %9 gelu : tensor<?x16xf32>
    // CHECK: kvc.activate %{{.*}} gelu_tanh : tensor<?x16xf32>
    %11 = kvc.activate %10 gelu_tanh : tensor<?x16xf32>
    // CHECK: kvc.rotary %{{.*}} at %{{.*}} head_dim 4 dims 4 theta 1.000000e+04 : tensor<?x16xf32>, tensor<?xi64>
    %12 = kvc.rotary %11 at %rows head_dim 4 dims 4 theta 1.0e+04 : tensor<?x16xf32>, tensor<?xi64>
    // CHECK: kvc.rotary %{{.*}} at %{{.*}} head_dim 8 dims 4 theta 1.000000e+04 divisors [1.000000e+00, 3.2995391225345636]
    %13 = kvc.rotary %12 at %rows head_dim 8 dims 4 theta 1.0e+04 divisors [1.0, 3.2995391225345636] : tensor<?x16xf32>, tensor<?xi64>
    // CHECK: kvc.select %{{.*}} rows %{{.*}} : tensor<?x16xf32>, tensor<?xi64> -> tensor<?x16xf32>
    %14 = kvc.select %13 rows %rows : tensor<?x16xf32>, tensor<?xi64> -> tensor<?x16xf32>
    return %14 : tensor<?x16xf32>
  }

  // CHECK-LABEL: func.func @cache
  func.func @cache(%cache: !cache, %q: tensor<?x16xf32>, %k: tensor<?x8xf32>, %sequences: tensor<?xi32>, %order: tensor<3xi32>, %a: index, %b: index) -> (tensor<?x16xf32>, !cache) {
    // CHECK: %[[P:.*]] = kvc.positions %{{.*}} of %{{.*}} : !cache, tensor<?xi32> -> tensor<?xi64>
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    // CHECK: %[[NEXT:.*]] = kvc.append %{{.*}}, %{{.*}} to %{{.*}} layer %{{.*}} at %[[P]] of %{{.*}} : tensor<?x8xf32>, tensor<?x8xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %0 = kvc.append %k, %k to %cache layer %a at %positions of %sequences : tensor<?x8xf32>, tensor<?x8xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    // CHECK: kvc.attend %{{.*}} to %[[NEXT]] layer %{{.*}} at %[[P]] of %{{.*}} scale 5.000000e-01 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %y = kvc.attend %q to %0 layer %a at %positions of %sequences scale 0.5 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    // CHECK: kvc.attend %{{.*}} to %[[NEXT]] layer %{{.*}} at %[[P]] of %{{.*}} scale 5.000000e-01 window 7 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %w = kvc.attend %q to %0 layer %a at %positions of %sequences scale 0.5 window 7 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    // CHECK: kvc.advance %[[NEXT]] by %{{.*}} : !cache, tensor<?xi32>
    %1 = kvc.advance %0 by %sequences : !cache, tensor<?xi32>
    // CHECK: kvc.truncate %{{.*}} sequence %{{.*}} to %{{.*}} : !cache
    %2 = kvc.truncate %1 sequence %a to %b : !cache
    // CHECK: kvc.fork %{{.*}} from %{{.*}} to %{{.*}} : !cache
    %3 = kvc.fork %2 from %a to %b : !cache
    // CHECK: kvc.reorder %{{.*}} by %{{.*}} : !cache, tensor<3xi32>
    %4 = kvc.reorder %3 by %order : !cache, tensor<3xi32>
    return %y, %4 : tensor<?x16xf32>, !cache
  }

  // The other element types of a cache.
  func.func private @element_types(
    !kvc.cache<layers 1, kv_heads 1, capacity 16, key 1, value 1, f64, #kvc.contiguous>,
    !kvc.cache<layers 1, kv_heads 1, capacity 16, key 1, value 1, f32, #kvc.contiguous>,
    !kvc.cache<layers 1, kv_heads 1, capacity 16, key 1, value 1, bf16, #kvc.contiguous>,
    !kvc.cache<layers 1, kv_heads 1, capacity 40, key 1, value 1, f32, #kvc.paged<16>>)

  // An attribute outside of the op that elides its name.
  // CHECK: #kvc.packing<offset 64, panel 16>
  func.func private @packing() attributes {test.packing = #kvc.packing<offset 64, panel 16>}

  // CHECK-LABEL: func.func @groups
  func.func @groups(%cache: !groups, %q: tensor<?x16xf32>, %k: tensor<?x8xf32>, %positions: tensor<?xi64>, %sequences: tensor<?xi32>, %layer: index) -> (tensor<?x16xf32>, !groups) {
    // CHECK: %[[FIRST:.*]] = kvc.append %{{.*}}, %{{.*}} to %{{.*}} layer %{{.*}} at
    %first = kvc.append %k, %k to %cache group 0 layer %layer at %positions of %sequences : tensor<?x8xf32>, tensor<?x8xf32>, !groups, tensor<?xi64>, tensor<?xi32>
    // CHECK: kvc.append %{{.*}}, %{{.*}} to %[[FIRST]] group 1 layer %{{.*}} at
    %second = kvc.append %k, %k to %first group 1 layer %layer at %positions of %sequences : tensor<?x8xf32>, tensor<?x8xf32>, !groups, tensor<?xi64>, tensor<?xi32>
    // CHECK: kvc.attend %{{.*}} to %{{.*}} group 1 layer %{{.*}} at {{.*}} scale 5.000000e-01 :
    %y = kvc.attend %q to %second group 1 layer %layer at %positions of %sequences scale 0.5 : tensor<?x16xf32>, !groups, tensor<?xi64>, tensor<?xi32>
    return %y, %second : tensor<?x16xf32>, !groups
  }
}
