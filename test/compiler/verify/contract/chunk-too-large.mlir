// RUN: kvc-opt %s --kvc-verify-cache-contract --verify-diagnostics

// Mistake 8: a chunk larger than capacity.
// Here the third chunk of a loop has no room. Found are the tokens that a program
// gives to one sequence for certain, by constants and splats, in step after step.
// Where lengths, counts or sequences are known to the caller alone, the plan of
// each call finds it (KVC_OUT_OF_CAPACITY).
!cache = !kvc.cache<layers 1, kv_heads 1, capacity 7, key 4, value 4, f32, #kvc.contiguous>
func.func @prompt(%k: tensor<3x4xf32>, %cache: !cache) -> !cache {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  // expected-note@+1 {{the tokens' sequences}}
  %s = arith.constant dense<0> : tensor<3xi32>
  // expected-note@+1 {{hint: use a capacity of 9 at least for %arg3, or at most 1 of these tokens here}}
  %last = scf.for %chunk = %0 to %3 step %1 iter_args(%c = %cache) -> !cache {
    %p = kvc.positions %c of %s : !cache, tensor<3xi32> -> tensor<3xi64>
    // expected-error@+1 {{expected a chunk that fits into the capacity of 7 positions, but got 3 tokens of sequence 0 after 6}}
    %next = kvc.append %k, %k to %c layer %0 at %p of %s : tensor<3x4xf32>, tensor<3x4xf32>, !cache, tensor<3xi64>, tensor<3xi32>
    %after = kvc.advance %next by %s : !cache, tensor<3xi32>
    scf.yield %after : !cache
  }
  return %last : !cache
}
