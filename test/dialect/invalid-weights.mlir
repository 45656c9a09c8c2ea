// One case or more for each numbered constraint Cn of weights, stacks and packings, in
// what is named <op>_c<n>.
// RUN: kvc-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected the offset and the panel of a packing not to be negative, but got -64 and 16}}
kvc.weight @packing_c1_offset : tensor<4xf32> from "w" packed #kvc.packing<offset -64, panel 16>

// -----

// expected-error@+1 {{expected the offset and the panel of a packing not to be negative, but got 0 and -1}}
kvc.weight @packing_c1_panel : tensor<4xf32> from "w" packed #kvc.packing<offset 0, panel -1>

// -----

// expected-error@+1 {{expected a static vector or matrix of extents above 0 after the axis of layers, but got 'tensor<2xf32>'}}
kvc.weight @weight_c1_rank : tensor<2xf32> from "{}.w"

// -----

// expected-error@+1 {{expected a static vector or matrix of extents above 0, but got 'tensor<?x4xf32>'}}
kvc.weight @weight_c1_dynamic : tensor<?x4xf32> from "w"

// -----

// expected-error@+1 {{expected the element type to be f64, f32, f16, bf16 or one of blocks such as !kvc.q8_0, but got 'i8'}}
kvc.weight @weight_c2 : tensor<4x4xi8> from "w"

// -----

// expected-error@+1 {{expected a transposed weight to be a matrix, but got 'tensor<4xf32>'}}
kvc.weight @weight_c3 : tensor<4xf32> from "w" transposed

// -----

// expected-error@+1 {{expected the width of paired heads to be even and to divide the rows (12), but got 8}}
kvc.weight @weight_c4_divisor : tensor<12x4xf32> from "w" paired_heads 8

// -----

// expected-error@+1 {{expected the width of paired heads to be even and to divide the rows (12), but got 3}}
kvc.weight @weight_c4_odd : tensor<12x4xf32> from "w" paired_heads 3

// -----

// expected-error@+1 {{expected the source to have {} once at most, but got "l.{}.{}.w"}}
kvc.weight @weight_c5 : tensor<2x4x4xf32> from "l.{}.{}.w"

// -----

// expected-error@+1 {{expected a static vector or matrix of extents above 0, but got 'tensor<4x0xf32>'}}
kvc.weight @weight_c1_empty : tensor<4x0xf32> from "w"

// -----

// expected-error@+1 {{attribute 'paired_heads' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
kvc.weight @weight_c4_positive : tensor<12x4xf32> from "w" paired_heads 0

// -----

// expected-error@+1 {{attribute 'first_row' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
kvc.weight @weight_c6 : tensor<4x4xf32> from "w" first_row -1

// -----

// expected-error@+1 {{expected at most 2^56 bytes, but got 'tensor<2147483648x2147483648x16xf32>'}}
kvc.weight @weight_c7 : tensor<2147483648x2147483648x16xf32> from "{}.w"

// -----

module @weight_c8 {
  // expected-error@+1 {{expected a symbol in UTF-8 that doesn't begin with __ (the packed file's own entries do), but got "__metadata__"}}
  kvc.weight @__metadata__ : tensor<4x4xf32> from "w"
}

// -----

module @weight_c8_bytes {
  // expected-error@+1 {{expected a symbol in UTF-8 that doesn't begin with __ (the packed file's own entries do), but got "\FF"}}
  kvc.weight @"\FF" : tensor<4x4xf32> from "w"
}

// -----

// expected-error@+1 {{expected a weight in blocks to be a matrix with rows of a multiple of 32 elements, not transposed, but got 'tensor<4x48x!kvc.q4_0>'}}
kvc.weight @weight_c9_rows : tensor<4x48x!kvc.q4_0> from "w"

// -----

// expected-error@+1 {{expected a weight in blocks to be a matrix with rows of a multiple of 32 elements, not transposed, but got 'tensor<64x!kvc.q8_0>'}}
kvc.weight @weight_c9_vector : tensor<64x!kvc.q8_0> from "w"

// -----

// expected-error@+1 {{expected a weight in blocks to be a matrix with rows of a multiple of 32 elements, not transposed, but got 'tensor<64x64x!kvc.q4_1>'}}
kvc.weight @weight_c9_transposed : tensor<64x64x!kvc.q4_1> from "w" transposed

// -----

// expected-error@+1 {{expected the numbers of its 2 layers, from 0 up, each above the one before, but got [0]}}
kvc.weight @weight_c10_count : tensor<2x4x4xf32> from "{}.w" layers [0]

// -----

// expected-error@+1 {{expected the numbers of its 2 layers, from 0 up, each above the one before, but got [3, 3]}}
kvc.weight @weight_c10_order : tensor<2x4x4xf32> from "{}.w" layers [3, 3]

// -----

// expected-error@+1 {{expected the numbers of its 2 layers, from 0 up, each above the one before, but got [-1, 0]}}
kvc.weight @weight_c10_negative : tensor<2x4x4xf32> from "{}.w" layers [-1, 0]

// -----

// expected-error@+1 {{expected the numbers of its 1 layers, from 0 up, each above the one before, but got [0]}}
kvc.weight @weight_c10_stacked : tensor<4x4xf32> from "w" layers [0]

// -----

module @stack_c1_unknown {
  // expected-error@+1 {{expected @nothing to be a matrix that says its layers}}
  kvc.stack @w of [@nothing]
}

// -----

module @stack_c1_layers {
  kvc.weight @w.f32 : tensor<2x4x4xf32> from "{}.w"
  // expected-error@+1 {{expected @w.f32 to be a matrix that says its layers}}
  kvc.stack @w of [@w.f32]
}

// -----

module @stack_c1_vector {
  kvc.weight @w.f32 : tensor<2x4xf32> from "{}.w" layers [0, 1]
  // expected-error@+1 {{expected @w.f32 to be a matrix that says its layers}}
  kvc.stack @w of [@w.f32]
}

// -----

module @stack_c1_shape {
  kvc.weight @w.f32 : tensor<1x4x4xf32> from "{}.w" layers [0]
  kvc.weight @w.f16 : tensor<1x4x8xf16> from "{}.w" layers [1]
  // expected-error@+1 {{expected matrices of one shape, but got 'tensor<1x4x8xf16>' and 'tensor<1x4x4xf32>'}}
  kvc.stack @w of [@w.f32, @w.f16]
}

// -----

module @stack_c2_twice {
  kvc.weight @w.f32 : tensor<2x4x4xf32> from "{}.w" layers [0, 1]
  kvc.weight @w.f16 : tensor<1x4x4xf16> from "{}.w" layers [1]
  // expected-error@+1 {{expected each layer in one of its weights, but got 1 again in @w.f16}}
  kvc.stack @w of [@w.f32, @w.f16]
}

// -----

module @stack_c2_hole {
  kvc.weight @w.f32 : tensor<1x4x4xf32> from "{}.w" layers [0]
  kvc.weight @w.f16 : tensor<1x4x4xf16> from "{}.w" layers [2]
  // expected-error@+1 {{expected the layers from 0 to as many as there are, but got 2 of them, the last one 2}}
  kvc.stack @w of [@w.f32, @w.f16]
}

// -----

module @stack_c2_none {
  // expected-error@+1 {{expected the layers from 0 to as many as there are, but got 0 of them}}
  kvc.stack @w of []
}
