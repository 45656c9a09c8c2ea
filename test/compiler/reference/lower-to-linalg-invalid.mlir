// RUN: kvc-opt %s --kvc-lower-to-linalg --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a row-major packing (kvc-assign-packing{panels=false}), but got none}}
kvc.weight @not_packed : tensor<9x4xf32> from "w"

// -----

// expected-error@+1 {{expected a row-major packing (kvc-assign-packing{panels=false}), but got panels of 16}}
kvc.weight @panels : tensor<9x4xf32> from "w" packed <offset 0, panel 16>

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f16, #kvc.contiguous>
func.func @unknown_op(%which: i1, %a: !cache, %b: !cache) -> !cache {
  // expected-error@+1 {{failed to legalize operation 'arith.select'}}
  %c = arith.select %which, %a, %b : !cache
  return %c : !cache
}
