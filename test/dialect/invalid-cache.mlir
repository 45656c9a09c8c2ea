// One case or more for each numbered constraint Cn of the cache type and its layouts,
// in a function named <type>_c<n>.
// RUN: kvc-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected the number of layers of a cache to be positive, but got 0}}
func.func private @cache_c1_layers(!kvc.cache<layers 0, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous>)

// -----

// expected-error@+1 {{expected the number of KV heads of a cache to be positive, but got -1}}
func.func private @cache_c1_kv_heads(!kvc.cache<layers 2, kv_heads -1, capacity 20, key 4, value 4, f16, #kvc.contiguous>)

// -----

// expected-error@+1 {{expected the capacity of a cache to be positive, but got 0}}
func.func private @cache_c1_capacity(!kvc.cache<layers 2, kv_heads 2, capacity 0, key 4, value 4, f16, #kvc.contiguous>)

// -----

// expected-error@+1 {{expected the key width of a cache to be positive, but got 0}}
func.func private @cache_c1_key(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 0, value 4, f16, #kvc.contiguous>)

// -----

// expected-error@+1 {{expected the value width of a cache to be positive, but got 0}}
func.func private @cache_c1_value(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 0, f16, #kvc.contiguous>)

// -----

// expected-error@+1 {{expected the element type of a cache to be f64, f32, f16 or bf16, but got 'i8'}}
func.func private @cache_c2(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, i8, #kvc.contiguous>)

// -----

// expected-error@+1 {{expected the layout of a cache to be a layout attribute such as #kvc.contiguous, but got "paged"}}
func.func private @cache_c3(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, "paged">)

// -----

// expected-error@+1 {{expected a page to have a positive multiple of 16 positions, but got 20}}
func.func private @paged_c1(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.paged<20>>)

// -----

// expected-error@+1 {{expected a page of a cache to have at most 2^56 bytes, but its 1152921504606846976 positions have more}}
func.func private @cache_c5(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.paged<1152921504606846976>>)

// -----

// expected-error@+1 {{expected the groups of a cache to have one capacity (20), but got 21}}
func.func private @cache_c6(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.contiguous, layers 1, kv_heads 2, capacity 21, key 4, value 4, f16, #kvc.contiguous>)

// -----

// expected-error@+1 {{expected a cache to have a group of layers, but got none}}
func.func private @cache_c6_none(!kvc.cache<>)

// -----

// expected-error@+1 {{expected the window and the slice of a ring to be above 0 and their sum at most 2^56, but got 0 and 4}}
func.func private @ring_c1_window(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.ring<0, 4>>)

// -----

// expected-error@+1 {{expected the window and the slice of a ring to be above 0 and their sum at most 2^56, but got 4 and 72057594037927936}}
func.func private @ring_c1_sum(!kvc.cache<layers 2, kv_heads 2, capacity 20, key 4, value 4, f16, #kvc.ring<4, 72057594037927936>>)

// -----

// expected-error@+1 {{expected a sequence of a cache to have at most 2^56 bytes}}
func.func private @cache_c4(!kvc.cache<layers 2, kv_heads 4611686018427387904, capacity 20, key 8, value 8, f16, #kvc.contiguous>)
