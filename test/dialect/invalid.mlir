// One case or more for each numbered constraint Cn of an op over rows or a cache, in a
// function named <op>_c<n>. Caches and weights have files of their own.
// RUN: kvc-opt %s --split-input-file --verify-diagnostics

module @linear_c6_stack {
  kvc.weight @w.f32 : tensor<1x4x32xf32> from "{}.w" layers [0]
  kvc.weight @w.f16 : tensor<1x4x32xf16> from "{}.w" layers [1]
  kvc.stack @w of [@w.f32, @w.f16]
  func.func @f(%x: tensor<?x32xf32>, %layer: index) {
    // expected-error@+1 {{expected the weight @w of a rounded input to be stored in blocks, but got 'f32'}}
    %0 = kvc.linear %x rounded by @w layer %layer : tensor<?x32xf32> -> tensor<?x4xf32>
    return
  }
}

// -----

// Rows of every op.
func.func @activate_empty(%x: tensor<?x0xf32>) {
  // expected-error@+1 {{operand #0 must be rows of a known width above 0 of 64-bit float or 32-bit float values, but got 'tensor<?x0xf32>'}}
  %0 = kvc.activate %x silu : tensor<?x0xf32>
  return
}

// -----

func.func @activate_unknown(%x: tensor<?x?xf32>) {
  // expected-error@+1 {{operand #0 must be rows of a known width above 0 of 64-bit float or 32-bit float values, but got 'tensor<?x?xf32>'}}
  %0 = kvc.activate %x silu : tensor<?x?xf32>
  return
}

// -----

kvc.weight @v : tensor<16xf32> from "v"
func.func @rms_norm_c3(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{attribute 'epsilon' failed to satisfy constraint: 64-bit float attribute whose value is above 0 and finite, also in f32}}
  %0 = kvc.rms_norm %x by @v epsilon -1.0 : tensor<?x16xf32>
  return
}

// -----

// Above 0, but 0 as an f32.
kvc.weight @v : tensor<16xf32> from "v"
func.func @rms_norm_c3_tiny(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{attribute 'epsilon' failed to satisfy constraint}}
  %0 = kvc.rms_norm %x by @v epsilon 1.0e-60 : tensor<?x16xf32>
  return
}

// -----

kvc.weight @v : tensor<16xf32> from "v"
func.func @layer_norm_c3(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{attribute 'epsilon' failed to satisfy constraint}}
  %0 = kvc.layer_norm %x by @v epsilon 0.0 : tensor<?x16xf32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @attend_c4(%q: tensor<?x16xf32>, %cache: !cache, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error@+1 {{attribute 'scale' failed to satisfy constraint: 64-bit float attribute whose value is above 0 and finite, also in f32}}
  %0 = kvc.attend %q to %cache layer %layer at %p of %s scale 0x7FF0000000000000 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @attend_c5(%q: tensor<?x16xf32>, %cache: !cache, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error@+1 {{attribute 'window' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = kvc.attend %q to %cache layer %layer at %p of %s scale 1.0 window 0 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return
}

// -----

func.func @rotary_c1_positive(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{attribute 'head_dim' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = kvc.rotary %x at %p head_dim 0 dims 2 theta 1.0e+04 : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

func.func @rotary_c2_positive(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{attribute 'dims' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = kvc.rotary %x at %p head_dim 8 dims -2 theta 1.0e+04 : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

kvc.weight @w : tensor<4x16xf32> from "w"
func.func @embed_c3(%ids: tensor<3xi32>) {
  // expected-error@+1 {{expected one number of rows (tokens), but got 3 and 5}}
  %0 = kvc.embed %ids in @w : tensor<3xi32> -> tensor<5x16xf32>
  return
}

// -----

func.func @embed_c1_missing(%ids: tensor<?xi32>) {
  // expected-error@+1 {{expected @w (table) to be declared by a kvc.weight or a kvc.stack}}
  %0 = kvc.embed %ids in @w : tensor<?xi32> -> tensor<?x16xf32>
  return
}

// -----

kvc.weight @w : tensor<2x9x16xf32> from "{}.w"
func.func @embed_c1_stacked(%ids: tensor<?xi32>) {
  // expected-error@+1 {{expected the table @w to be a matrix [entries, width] that is not stacked over layers, but got 'tensor<2x9x16xf32>'}}
  %0 = kvc.embed %ids in @w : tensor<?xi32> -> tensor<?x16xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @w : tensor<9x16xf32> from "w"
func.func @embed_c2(%ids: tensor<?xi32>) {
  // expected-error@+1 {{expected the table @w to be [?, 8], but got [9, 16]}}
  %0 = kvc.embed %ids in @w : tensor<?xi32> -> tensor<?x8xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<8xf32> from "v"
func.func @rms_norm_c1(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the weight @v to be [16], but got [8]}}
  %0 = kvc.rms_norm %x by @v epsilon 1.0e-05 : tensor<?x16xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<2x16xf32> from "{}.v"
func.func @rms_norm_c2_stacked(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected a layer, since @v is stacked over layers}}
  %0 = kvc.rms_norm %x by @v epsilon 1.0e-05 : tensor<?x16xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<16xf32> from "v"
func.func @rms_norm_c2_single(%x: tensor<?x16xf32>, %layer: index) {
  // expected-error@+1 {{expected no layer, since @v is not stacked over layers}}
  %0 = kvc.rms_norm %x by @v layer %layer epsilon 1.0e-05 : tensor<?x16xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<8xf32> from "v"
func.func @layer_norm_c1_weight(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the weight @v to be [16], but got [8]}}
  %0 = kvc.layer_norm %x by @v epsilon 1.0e-05 : tensor<?x16xf32>
  return
}

// -----

kvc.weight @g : tensor<16xf32> from "g"
// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<8xf32> from "v"
func.func @layer_norm_c1_bias(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the bias @v to be [16], but got [8]}}
  %0 = kvc.layer_norm %x by @g bias @v epsilon 1.0e-05 : tensor<?x16xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<2x16xf32> from "{}.v"
func.func @layer_norm_c2_weight(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected a layer, since @v is stacked over layers}}
  %0 = kvc.layer_norm %x by @v epsilon 1.0e-05 : tensor<?x16xf32>
  return
}

// -----

kvc.weight @g : tensor<2x16xf32> from "{}.g"
// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<16xf32> from "v"
func.func @layer_norm_c2_bias(%x: tensor<?x16xf32>, %layer: index) {
  // expected-error@+1 {{expected no layer, since @v is not stacked over layers}}
  %0 = kvc.layer_norm %x by @g bias @v layer %layer epsilon 1.0e-05 : tensor<?x16xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @w : tensor<16x8xf32> from "w"
func.func @linear_c1(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the weight @w to be [8, 16], but got [16, 8]}}
  %0 = kvc.linear %x by @w : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @w : tensor<8x16xf32> from "w"
// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<16xf32> from "v"
func.func @linear_c2(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the bias @v to be [8], but got [16]}}
  %0 = kvc.linear %x by @w bias @v : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @w : tensor<2x8x16xf32> from "{}.w"
func.func @linear_c3_weight(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected a layer, since @w is stacked over layers}}
  %0 = kvc.linear %x by @w : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @w : tensor<2x8x16xf32> from "{}.w"
// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<8xf32> from "v"
func.func @linear_c3_bias(%x: tensor<?x16xf32>, %layer: index) {
  // expected-error@+1 {{expected no layer, since @v is not stacked over layers}}
  %0 = kvc.linear %x by @w bias @v layer %layer : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @w : tensor<8x16xf32> from "w"
func.func @linear_c4(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the residual to have the result's type ('tensor<?x8xf32>'), but got 'tensor<?x16xf32>'}}
  %0 = kvc.linear %x by @w residual(%x : tensor<?x16xf32>) : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @w : tensor<8x16xf32> from "w"
func.func @linear_c5(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the result to have the rows and the element type of the input ('tensor<?x16xf32>'), but got 'tensor<?x8xf64>'}}
  %0 = kvc.linear %x by @w : tensor<?x16xf32> -> tensor<?x8xf64>
  return
}

// -----

kvc.weight @w : tensor<8x32xf32> from "w"
func.func @linear_c6_weight(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{expected the weight @w of a rounded input to be stored in blocks, but got 'f32'}}
  %y = kvc.linear %x rounded by @w : tensor<?x32xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @w : tensor<8x32x!kvc.q8_0> from "w"
func.func @linear_c6_input(%x: tensor<?x32xf64>) {
  // expected-error@+1 {{expected a rounded input to be f32, but got 'f64'}}
  %y = kvc.linear %x rounded by @w : tensor<?x32xf64> -> tensor<?x8xf64>
  return
}

// -----

kvc.weight @w : tensor<8x32xf16> from "w"
func.func @linear_c6_narrowed_weight(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{expected the weight @w of a narrowed input to be stored in bf16, but got 'f16'}}
  %y = kvc.linear %x narrowed by @w : tensor<?x32xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @w : tensor<8x32xbf16> from "w"
func.func @linear_c6_narrowed_input(%x: tensor<?x32xf64>) {
  // expected-error@+1 {{expected a narrowed input to be f32, but got 'f64'}}
  %y = kvc.linear %x narrowed by @w : tensor<?x32xf64> -> tensor<?x8xf64>
  return
}

// -----

kvc.weight @gate : tensor<8x32xbf16> from "g"
kvc.weight @up : tensor<8x32xf32> from "u"
func.func @gated_linear_c5_narrowed(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{expected the up @up of a narrowed input to be stored in bf16, but got 'f32'}}
  %y = kvc.gated_linear %x narrowed by @gate, @up activation silu : tensor<?x32xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @gate : tensor<8x32x!kvc.q8_0> from "g"
kvc.weight @up : tensor<8x32xf32> from "u"
func.func @gated_linear_c5(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{expected the up @up of a rounded input to be stored in blocks, but got 'f32'}}
  %y = kvc.gated_linear %x rounded by @gate, @up activation silu : tensor<?x32xf32> -> tensor<?x8xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @w : tensor<16x8xf32> from "w"
kvc.weight @u : tensor<8x16xf32> from "u"
func.func @gated_linear_c1_gate(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the gate @w to be [8, 16], but got [16, 8]}}
  %0 = kvc.gated_linear %x by @w, @u activation silu : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @u : tensor<8x16xf32> from "u"
// expected-note@+1 {{declared here}}
kvc.weight @w : tensor<16x8xf32> from "w"
func.func @gated_linear_c1_up(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the up @w to be [8, 16], but got [16, 8]}}
  %0 = kvc.gated_linear %x by @u, @w activation silu : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @u : tensor<8x16xf32> from "u"
// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<16xf32> from "v"
func.func @gated_linear_c2_gate_bias(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the gate bias @v to be [8], but got [16]}}
  %0 = kvc.gated_linear %x by @u, @u gate_bias @v activation silu : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @u : tensor<8x16xf32> from "u"
// expected-note@+1 {{declared here}}
kvc.weight @v : tensor<16xf32> from "v"
func.func @gated_linear_c2_up_bias(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the up bias @v to be [8], but got [16]}}
  %0 = kvc.gated_linear %x by @u, @u up_bias @v activation silu : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

// expected-note@+1 {{declared here}}
kvc.weight @w : tensor<2x8x16xf32> from "{}.w"
kvc.weight @u : tensor<8x16xf32> from "u"
func.func @gated_linear_c3(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected a layer, since @w is stacked over layers}}
  %0 = kvc.gated_linear %x by @w, @u activation silu : tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

kvc.weight @u : tensor<8x16xf32> from "u"
func.func @gated_linear_c4(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the result to have the rows and the element type of the input ('tensor<?x16xf32>'), but got 'tensor<3x8xf32>'}}
  %0 = kvc.gated_linear %x by @u, @u activation silu : tensor<?x16xf32> -> tensor<3x8xf32>
  return
}

// -----

func.func @select_c1(%x: tensor<?x16xf32>, %rows: tensor<?xi64>) {
  // expected-error@+1 {{expected the result to have the width and the element type of the input ('tensor<?x16xf32>'), but got 'tensor<?x8xf32>'}}
  %0 = kvc.select %x rows %rows : tensor<?x16xf32>, tensor<?xi64> -> tensor<?x8xf32>
  return
}

// -----

func.func @select_c2(%x: tensor<?x16xf32>, %rows: tensor<3xi64>) {
  // expected-error@+1 {{expected one number of rows (tokens), but got 3 and 5}}
  %0 = kvc.select %x rows %rows : tensor<?x16xf32>, tensor<3xi64> -> tensor<5x16xf32>
  return
}

// -----

func.func @rotary_c5(%x: tensor<3x16xf32>, %p: tensor<5xi64>) {
  // expected-error@+1 {{expected one number of rows (tokens), but got 3 and 5}}
  %0 = kvc.rotary %x at %p head_dim 8 dims 8 theta 1.0e+04 : tensor<3x16xf32>, tensor<5xi64>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @positions_c1(%cache: !cache, %s: tensor<3xi32>) {
  // expected-error@+1 {{expected one number of rows (tokens), but got 3 and 5}}
  %0 = kvc.positions %cache of %s : !cache, tensor<3xi32> -> tensor<5xi64>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @append_c3(%cache: !cache, %k: tensor<3x8xf32>, %v: tensor<3x8xf32>, %layer: index, %p: tensor<3xi64>, %s: tensor<5xi32>) {
  // expected-error@+1 {{expected one number of rows (tokens), but got 3 and 5}}
  %0 = kvc.append %k, %v to %cache layer %layer at %p of %s : tensor<3x8xf32>, tensor<3x8xf32>, !cache, tensor<3xi64>, tensor<5xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @append_c4(%cache: !cache, %k: tensor<3x8xf32>, %layer: index, %p: tensor<3xi64>, %s: tensor<3xi32>) {
  // expected-error@+1 {{expected a group of the cache (0 to 0), but got 1}}
  %0 = kvc.append %k, %k to %cache group 1 layer %layer at %p of %s : tensor<3x8xf32>, tensor<3x8xf32>, !cache, tensor<3xi64>, tensor<3xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @attend_c6(%cache: !cache, %q: tensor<3x8xf32>, %layer: index, %p: tensor<3xi64>, %s: tensor<3xi32>) {
  // expected-error@+1 {{expected a group of the cache (0 to 0), but got 2}}
  %0 = kvc.attend %q to %cache group 2 layer %layer at %p of %s scale 1.0 : tensor<3x8xf32>, !cache, tensor<3xi64>, tensor<3xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @attend_c3(%cache: !cache, %q: tensor<3x8xf32>, %layer: index, %p: tensor<5xi64>, %s: tensor<3xi32>) {
  // expected-error@+1 {{expected one number of rows (tokens), but got 3 and 5}}
  %0 = kvc.attend %q to %cache layer %layer at %p of %s scale 1.0 : tensor<3x8xf32>, !cache, tensor<5xi64>, tensor<3xi32>
  return
}

// -----

func.func @rotary_c1(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{expected the row's width to be a multiple of head_dim (6), but got 16}}
  %0 = kvc.rotary %x at %p head_dim 6 dims 6 theta 1.0e+04 : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

func.func @rotary_c2_odd(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{expected dims to be even and at most head_dim (8), but got 3}}
  %0 = kvc.rotary %x at %p head_dim 8 dims 3 theta 1.0e+04 : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

func.func @rotary_c2_wide(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{expected dims to be even and at most head_dim (8), but got 10}}
  %0 = kvc.rotary %x at %p head_dim 8 dims 10 theta 1.0e+04 : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

func.func @rotary_c3(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{expected 1 or 4 (dims / 2) divisors, but got 2}}
  %0 = kvc.rotary %x at %p head_dim 8 dims 8 theta 1.0e+04 divisors [1.0, 2.0] : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

func.func @rotary_c4_theta(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{attribute 'theta' failed to satisfy constraint: 64-bit float attribute whose value is above 0 and finite, also in f32}}
  %0 = kvc.rotary %x at %p head_dim 8 dims 8 theta -1.0 : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

func.func @rotary_c4_divisor(%x: tensor<?x16xf32>, %p: tensor<?xi64>) {
  // expected-error@+1 {{attribute 'divisors' failed to satisfy constraint: f64 dense array attribute whose values are above 0 and finite, also in f32}}
  %0 = kvc.rotary %x at %p head_dim 8 dims 8 theta 1.0e+04 divisors [0.0] : tensor<?x16xf32>, tensor<?xi64>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @append_c1(%cache: !cache, %k: tensor<?x8xf32>, %x: tensor<?x16xf32>, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error@+1 {{expected the keys' width to be 8 (KV heads times key width of the cache), but got 16}}
  %0 = kvc.append %x, %k to %cache layer %layer at %p of %s : tensor<?x16xf32>, tensor<?x8xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @append_c2(%cache: !cache, %k: tensor<?x8xf32>, %x: tensor<?x16xf32>, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error@+1 {{expected the values' width to be 8 (KV heads times value width of the cache), but got 16}}
  %0 = kvc.append %k, %x to %cache layer %layer at %p of %s : tensor<?x8xf32>, tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 3, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @attend_c1(%cache: !cache, %k: tensor<?x8xf32>, %x: tensor<?x16xf32>, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error@+1 {{expected the queries' width to be a multiple of 12 (KV heads times key width of the cache), but got 16}}
  %0 = kvc.attend %x to %cache layer %layer at %p of %s scale 1.0 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 6, f16, #kvc.contiguous>
func.func @attend_c2(%cache: !cache, %k: tensor<?x8xf32>, %x: tensor<?x16xf32>, %layer: index, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error@+1 {{expected the key and value widths of the cache to be equal, but got 4 and 6}}
  %0 = kvc.attend %x to %cache layer %layer at %p of %s scale 1.0 : tensor<?x16xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @reorder_c1(%cache: !cache) {
  %order = arith.constant dense<[0, -2]> : tensor<2xi32>
  // expected-error@+1 {{expected the entries of the order to be sequences from 0 on, but got -2}}
  %0 = kvc.reorder %cache by %order : !cache, tensor<2xi32>
  return
}

// -----

kvc.weight @square : tensor<16x16xf32> from "square"
func.func @together_c1(%x: tensor<?x16xf32>) {
  %0 = kvc.together {
    // expected-error@+1 {{expected an op of the interface RowTasks in kvc.together}}
    %1 = kvc.activate %x relu : tensor<?x16xf32>
    kvc.yield %1 : tensor<?x16xf32>
  } : tensor<?x16xf32>
  return
}

// -----

kvc.weight @square : tensor<16x16xf32> from "square"
func.func @together_c2(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>) {
  %0:2 = kvc.together {
    %1 = kvc.linear %x by @square : tensor<?x16xf32> -> tensor<?x16xf32>
    // expected-error@+1 {{expected the input of the first op in kvc.together}}
    %2 = kvc.linear %y by @square : tensor<?x16xf32> -> tensor<?x16xf32>
    kvc.yield %1, %2 : tensor<?x16xf32>, tensor<?x16xf32>
  } : tensor<?x16xf32>, tensor<?x16xf32>
  return
}

// -----

kvc.weight @square : tensor<16x16xf32> from "square"
func.func @together_c3(%x: tensor<?x16xf32>) {
  %0:2 = kvc.together {
    %1 = kvc.linear %x by @square : tensor<?x16xf32> -> tensor<?x16xf32>
    // expected-error@+1 {{expected no result of another op in kvc.together}}
    %2 = kvc.linear %x by @square residual(%1 : tensor<?x16xf32>) : tensor<?x16xf32> -> tensor<?x16xf32>
    kvc.yield %1, %2 : tensor<?x16xf32>, tensor<?x16xf32>
  } : tensor<?x16xf32>, tensor<?x16xf32>
  return
}

// -----

kvc.weight @square : tensor<16x16xf32> from "square"
func.func @together_c4(%x: tensor<?x16xf32>) {
  %0 = kvc.together {
    %1 = kvc.linear %x by @square : tensor<?x16xf32> -> tensor<?x16xf32>
    %2 = kvc.linear %x by @square : tensor<?x16xf32> -> tensor<?x16xf32>
    // expected-error@+1 {{expected the result of each op, in their order}}
    kvc.yield %2 : tensor<?x16xf32>
  } : tensor<?x16xf32>
  return
}

// -----

kvc.weight @square : tensor<16x16xf32> from "square"
func.func @together_c4_types(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{expected the types of what kvc.yield gives}}
  %0 = kvc.together {
    %1 = kvc.linear %x by @square : tensor<?x16xf32> -> tensor<?x16xf32>
    kvc.yield %1 : tensor<?x16xf32>
  } : tensor<?x8xf32>
  return
}
