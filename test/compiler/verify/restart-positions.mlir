// Positions that restart in every step, a mistake that only a test makes: they
// don't pass the check, and are compiled all the same without it.
// RUN: kvc-test-opt %s --kvc-test-restart-positions | FileCheck %s
// RUN: not kvc-test-opt %s --kvc-test-restart-positions --kvc-verify-cache-contract 2>&1 | FileCheck %s --check-prefix=REJECTED
// RUN: kvc-test-opt %s --kvc-test-restart-positions --kvc-lower-to-linalg | FileCheck %s --check-prefix=COMPILED

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 4, value 4, f16, #kvc.contiguous>

// CHECK-LABEL: func.func @step
func.func @step(%k: tensor<?x4xf32>, %layer: index, %s: tensor<?xi32>, %cache: !cache) -> !cache {
  // CHECK-NOT: kvc.positions
  // CHECK: %[[P:.*]] = scf.for
  // CHECK: kvc.append {{.*}} at %[[P]]
  // REJECTED: 'kvc.append' op expected positions that kvc.positions made from the lengths of the cache, but got the result of scf.for
  // COMPILED-NOT: kvc.append
  %p = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
  %next = kvc.append %k, %k to %cache layer %layer at %p of %s : tensor<?x4xf32>, tensor<?x4xf32>, !cache, tensor<?xi64>, tensor<?xi32>
  return %next : !cache
}
