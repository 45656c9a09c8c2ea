// Finite weights whose keys overflow the cache's type, and whose scores, values and
// logits then are NaN in part: each NaN that is stored has the same bits, in one row
// and in many, at every CPU level, by either lowering; so have the finite numbers of
// a library.
// DEFINE: %{types} =
// DEFINE: %{check} = rm -rf %t && mkdir %t && sed "%{types}" %s > %t/m.mlir && \
// DEFINE:   kvc-opt %t/m.mlir -o %t/fast && kvc-opt %t/m.mlir --emit=reference -o %t/plain && \
// DEFINE:   env PYTHONPATH=%reference:%S/../compiler/reference %python %S/nan.py %t/fast %t/plain | FileCheck %s
// REDEFINE: %{types} = s/ARITHMETIC/f32/;s/STORED/f16/;s/DOUBLINGS/15/
// RUN: %{check}
// REDEFINE: %{types} = s/ARITHMETIC/f64/;s/STORED/f16/;s/DOUBLINGS/15/
// RUN: %{check}
// REDEFINE: %{types} = s/ARITHMETIC/f32/;s/STORED/bf16/;s/DOUBLINGS/127/
// RUN: %{check}
// REDEFINE: %{types} = s/ARITHMETIC/f64/;s/STORED/f64/;s/DOUBLINGS/1023/
// RUN: %{check}
// CHECK: NaN in {{[1-9][0-9]*}} of {{[0-9]+}} logits and {{[1-9][0-9]*}} of {{[0-9]+}} cells, all the same

!cache = !kvc.cache<layers 2, kv_heads 4, capacity 80, key 1, value 1, STORED, #kvc.contiguous>
!rows = tensor<?x4xARITHMETIC>
!logits = tensor<?x19xARITHMETIC>
module @overflow attributes {kvc.weights = "random:7"} {
  kvc.weight @table : tensor<19x4xARITHMETIC> from "table"
  kvc.weight @norm : tensor<4xARITHMETIC> from "norm"
  kvc.weight @q : tensor<2x4x4xARITHMETIC> from "{}.q"
  kvc.weight @k : tensor<2x4x4xARITHMETIC> from "{}.k"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (!logits, !cache) {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %2 = arith.constant 2 : index
    %doublings = arith.constant DOUBLINGS : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> !rows
    %all:2 = scf.for %layer = %0 to %2 step %1 iter_args(%a = %x, %c = %cache) -> (!rows, !cache) {
      %h = kvc.rms_norm %a by @norm epsilon 1.0e-05 : !rows
      %q = kvc.linear %h by @q layer %layer : !rows -> !rows
      %little = kvc.linear %h by @k layer %layer : !rows -> !rows
      %k = scf.for %i = %0 to %doublings step %1 iter_args(%d = %little) -> (!rows) {
        %double = arith.addf %d, %d : !rows
        scf.yield %double : !rows
      }
      %next = kvc.append %k, %h to %c layer %layer at %positions of %sequences : !rows, !rows, !cache, tensor<?xi64>, tensor<?xi32>
      %around = kvc.attend %q to %next layer %layer at %positions of %sequences scale 1.0 : !rows, !cache, tensor<?xi64>, tensor<?xi32>
      %more = arith.addf %a, %around : !rows
      scf.yield %more, %next : !rows, !cache
    }
    %after = kvc.advance %all#1 by %sequences : !cache, tensor<?xi32>
    %chosen = kvc.select %all#0 rows %outputs : !rows, tensor<?xi64> -> !rows
    %result = kvc.linear %chosen by @table : !rows -> !logits
    return %result, %after : !logits, !cache
  }
}
