// RUN: rm -rf %t && split-file %s %t
// RUN: kvc-opt %t/step.mlir --kvc-lower-to-kernels --canonicalize --cse -o %t/kernels.mlir
// RUN: FileCheck %s --input-file=%t/kernels.mlir
// RUN: FileCheck %s --input-file=%t/kernels.mlir --check-prefix=REDUCE
// RUN: FileCheck %s --input-file=%t/kernels.mlir --check-prefix=PLACE
// RUN: kvc-opt %t/step.mlir --kvc-lower-to-kernels="float-shapes=2,2,3,2" --canonicalize --cse | FileCheck %s --check-prefix=TILE
// RUN: kvc-opt %t/step.mlir --kvc-fuse --kvc-lower-to-kernels --canonicalize --cse | FileCheck %s --check-prefix=TOGETHER
// RUN: kvc-opt %t/carried.mlir --kvc-lower-to-kernels --canonicalize --cse | FileCheck %s --check-prefix=CARRIED
// RUN: kvc-opt %t/invalid.mlir --kvc-lower-to-kernels --split-input-file --verify-diagnostics

// Layers that are dispatched together have one region for a row, one for a few and one
// for more: first the tasks of the first, here one, then those of the next.
// TOGETHER: scf.for %[[LAYER:.*]] = %c0 to %c2 step %c1 {
// TOGETHER: scf.if
// TOGETHER: scf.parallel (%[[TASK:.*]]) = (%c0) to (%c2) step (%c1) {
// TOGETHER: %[[FIRST:.*]] = arith.cmpi ult, %[[TASK]], %c1
// TOGETHER: scf.if %[[FIRST]] {
// TOGETHER: math.fma
// TOGETHER: } else {
// TOGETHER: arith.subi %[[TASK]], %c1
// TOGETHER: math.fma
// TOGETHER: scf.reduce
// TOGETHER: scf.parallel (%{{.*}}) = (%c0) to (%c2) step (%c1) {
// TOGETHER: scf.reduce
// TOGETHER: %[[ALL:.*]] = arith.addi %{{.*}}, %{{.*}} : index{{[[:space:]]+}}scf.parallel (%{{.*}}) = (%c0) to (%[[ALL]]) step (%c1) {

// The signature is kvc_forward_function's.
// CHECK-NOT: kvc.
// CHECK: func.func @forward(%[[WEIGHTS:[^:]*]]: memref<?xi8>, %[[POOL:[^:]*]]: memref<?xi8>, %[[PAGES:[^:]*]]: memref<?xi64>, %[[LENGTHS:[^:]*]]: memref<?xi64>,
// CHECK-SAME: %[[TOKENS:[^:]*]]: memref<?xi32>, %[[SEQUENCES:[^:]*]]: memref<?xi32>, %[[OUTPUTS:[^:]*]]: memref<?xi64>, %[[LOGITS:[^:]*]]: memref<?xf32>,
// CHECK-SAME: %{{[^:]*}}: memref<?xi8>, %{{[^:]*}}: !llvm.ptr) attributes {llvm.emit_c_interface}
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[LOGITS]] to offset: [0], sizes: [%{{.*}}, 40], strides: [40, 1]
// Positions: the length, and one more for each token of the same sequence.
// CHECK: %[[POSITIONS:.*]] = memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK: scf.for
// CHECK: memref.load %[[LENGTHS]]
// CHECK: memref.store %{{.*}}, %[[POSITIONS]]
// A row of the table is a lane of its panel.
// CHECK: %[[TABLE:.*]] = memref.view %[[WEIGHTS]]{{.*}} to memref<3x24x16xf32>
// CHECK: %[[X:.*]] = memref.alloc(%{{.*}}) : memref<?x24xf32>
// CHECK: scf.parallel
// CHECK: memref.store %{{.*}}, %[[X]]

// One loop over the layers, which reads its layer of the weights.
// CHECK: scf.for %[[LAYER:.*]] = %c0 to %c2 step %c1 {
// CHECK: %[[SKIP:.*]] = arith.muli %[[LAYER]], %c3072
// CHECK: %[[FROM:.*]] = arith.addi %[[SKIP]], %c4864
// CHECK: memref.view %[[WEIGHTS]][%[[FROM]]][] : memref<?xi8> to memref<2x24x16xf32>
// One row alone reads four panels of a matrix at once, here two; narrow weights
// are widened as they are read.
// CHECK: scf.if
// CHECK: math.fma
// CHECK: vector.load {{.*}} : memref<1x24x16xbf16>, vector<16xbf16>
// CHECK: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// Keys and values are narrowed into the sequence's page.
// CHECK: %[[PAGE:.*]] = memref.view %[[POOL]]
// CHECK: %[[NARROW:.*]] = arith.truncf {{.*}} : f32 to f16
// CHECK: %[[KEY:.*]] = arith.select {{.*}}, %[[NARROW]] : f16
// CHECK: %[[KEYS:.*]] = memref.view %[[PAGE]]{{.*}} to memref<2x2x8x16xf16>
// CHECK: memref.store %[[KEY]], %[[KEYS]]
// CHECK: %[[NARROWED:.*]] = arith.truncf {{.*}} : vector<8xf32> to vector<8xf16>
// CHECK: %[[VALUE:.*]] = arith.select {{.*}}, %[[NARROWED]]
// CHECK: %[[VALUES:.*]] = memref.view %[[PAGE]][%c1024][] {{.*}} to memref<2x32x8xf16>
// CHECK: vector.store %[[VALUE]], %[[VALUES]]
// A tile of keys: all rows that see the whole of it share what is read of it.
// CHECK: scf.parallel
// CHECK: scf.for {{.*}} step %c64
// CHECK: scf.if
// CHECK: arith.extf {{.*}} : vector<16xf16> to vector<16xf32>
// CHECK: math.fma
// CHECK-COUNT-5: math.exp2
// CHECK: math.fma
// Else a token after the other, where scores of what it doesn't see are -inf.
// CHECK: } else {
// CHECK: memref.prefetch
// CHECK: %[[SEEN:.*]] = arith.andi
// CHECK: arith.select %[[SEEN]], %{{.*}}, %[[LOWEST:.*]] : vector<16xi1>, vector<16xf32>
// CHECK-COUNT-5: math.exp2
// Without any key the sum of weights is 0, and the result 0 and not NaN.
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: %[[TOTAL:.*]] = arith.select %[[NONE]], %{{.*}}, %{{.*}} : f32
// CHECK: vector.broadcast %[[TOTAL]] : f32 to vector<16xf32>
// The residual is added where it stands.
// CHECK: %[[OLD:.*]] = vector.load %[[X]]
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]]
// CHECK: vector.store %[[NEW]], %[[X]]
// The rows that were asked for, and their logits in the caller's buffer.
// CHECK: memref.load %[[OUTPUTS]]
// CHECK: vector.load %[[X]]
// CHECK: vector.store %{{.*}}, %[[ROWS]]
// CHECK: return

// A row's sum: 16 lanes that walk the row, and halves of them added down to one.
// REDUCE: scf.for %{{.*}} = %c0 to %c2
// REDUCE: scf.parallel
// REDUCE: %[[A:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>
// REDUCE: %[[SUM:.*]] = math.fma %{{.*}}, %{{.*}}, %[[A]] : vector<16xf32>
// REDUCE: %[[L8:.*]] = vector.extract_strided_slice %[[SUM]] {offsets = [0], sizes = [8]
// REDUCE: %[[H8:.*]] = vector.extract_strided_slice %[[SUM]] {offsets = [8], sizes = [8]
// REDUCE: %[[S8:.*]] = arith.addf %[[L8]], %[[H8]] : vector<8xf32>
// REDUCE: %[[L4:.*]] = vector.extract_strided_slice %[[S8]] {offsets = [0], sizes = [4]
// REDUCE: %[[H4:.*]] = vector.extract_strided_slice %[[S8]] {offsets = [4], sizes = [4]
// REDUCE: %[[S4:.*]] = arith.addf %[[L4]], %[[H4]] : vector<4xf32>
// REDUCE: arith.addf {{.*}} : vector<2xf32>
// REDUCE: %[[S1:.*]] = arith.addf {{.*}} : vector<1xf32>
// REDUCE: vector.extract %[[S1]][0]
// And no other way of adding up anywhere.
// REDUCE-NOT: vector.{{reduction|multi_reduction|contract|fma}}
// REDUCE: return

// Beside positions and x there are h, q, k, the attended rows and the chosen ones,
// none of the cache, and nothing is copied.
// PLACE-NOT: memref.copy
// PLACE: memref.alloc({{.*}} : memref<?xi64>
// PLACE-NOT: memref.{{copy|alloc\(}}
// PLACE: memref.alloc({{.*}} : memref<?x24xf32>
// PLACE: scf.for %{{.*}} = %c0 to %c2
// PLACE-NOT: memref.{{copy|alloc\(}}
// PLACE: memref.alloc({{.*}} : memref<?x24xf32>
// PLACE-NOT: memref.{{copy|alloc\(}}
// PLACE: memref.alloc({{.*}} : memref<?x24xf32>
// PLACE-NOT: memref.{{copy|alloc\(}}
// PLACE: memref.alloc({{.*}} : memref<?x8xf32>
// PLACE-NOT: memref.{{copy|alloc\(}}
// PLACE: memref.alloc({{.*}} : memref<?x24xf32>
// PLACE-NOT: memref.{{copy|alloc\(}}
// PLACE: memref.alloc({{.*}} : memref<?x24xf32>
// PLACE-NOT: memref.{{copy|alloc\(}}
// PLACE: return

// Two rows at most, as few: 2 rows by 2 panels. More: 3 rows by 2 panels, each row's
// number times 2 vectors of weights, 6 sums in registers that a block of 256 inputs
// starts at 0 and adds to its totals; a task is 74 tiles, 222 rows, which share what
// they ask memory for.
// TILE: memref<2x24x16xf32>
// TILE: %[[H:.*]] = memref.alloc
// TILE: } else {
// TILE: scf.if
// TILE: memref.alloca() {{.*}} : memref<1x1x4x16xf32>
// TILE: } else {
// TILE: arith.divui %{{.*}}, %c222
// TILE: scf.parallel
// TILE: %[[TOTALS:.*]] = memref.alloca() {{.*}} : memref<1x74x6x16xf32>
// TILE: scf.for {{.*}} step %c1 {
// TILE: %[[SUMS:.*]]:6 = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO:.*]], %{{.*}} = %[[ZERO]],
// TILE: scf.for
// TILE: memref.prefetch
// TILE-NEXT: memref.prefetch
// TILE-NEXT: }
// TILE-NEXT: vector.load
// TILE-NEXT: vector.load
// TILE-NEXT: memref.load
// TILE-NEXT: vector.broadcast
// TILE-NEXT: math.fma
// TILE-NEXT: math.fma
// TILE-NEXT: memref.load
// TILE-NEXT: vector.broadcast
// TILE-NEXT: math.fma
// TILE-NEXT: math.fma
// TILE-NEXT: memref.load
// TILE-NEXT: vector.broadcast
// TILE-NEXT: math.fma
// TILE-NEXT: math.fma
// TILE: scf.yield
// TILE: %[[OLD:.*]] = vector.load %[[TOTALS]]
// TILE-NEXT: %[[NEW:.*]] = arith.addf %[[OLD]], %[[SUMS]]#0
// TILE-NEXT: vector.store %[[NEW]], %[[TOTALS]]

// A loop whose values change places: the first is set aside before it is written
// over. The initial value, read inside, is not worked on in place.
// CARRIED: %[[R:.*]] = memref.alloc
// CARRIED: %[[A:.*]] = memref.alloc
// CARRIED-NEXT: memref.copy %[[R]], %[[A]]
// CARRIED: %[[B:.*]] = memref.alloc
// CARRIED-NEXT: memref.copy %[[R]], %[[B]]
// CARRIED: scf.for
// CARRIED: vector.load %[[R]]
// CARRIED: %[[ASIDE:.*]] = memref.alloc
// CARRIED-NEXT: memref.copy %[[B]], %[[ASIDE]]
// CARRIED: memref.copy %[[ASIDE]], %[[A]]
// CARRIED: memref.copy %{{.*}}, %[[B]]
// CARRIED-NEXT: }

//--- step.mlir
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 8, value 8, f16, #kvc.contiguous>
kvc.weight @table : tensor<40x24xf32> from "table" packed <offset 0, panel 16>
kvc.weight @norm : tensor<2x24xf32> from "{}.norm" packed <offset 4608, panel 16>
kvc.weight @q : tensor<2x24x24xf32> from "{}.q" packed <offset 4864, panel 16>
kvc.weight @k : tensor<2x8x24xbf16> from "{}.k" packed <offset 11008, panel 16>
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x40xf32>, !cache) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x24xf32>
  %y:2 = scf.for %l = %c0 to %c2 step %c1 iter_args(%z = %x, %c = %cache) -> (tensor<?x24xf32>, !cache) {
    %h = kvc.rms_norm %z by @norm layer %l epsilon 1.0e-05 : tensor<?x24xf32>
    %q = kvc.linear %h by @q layer %l : tensor<?x24xf32> -> tensor<?x24xf32>
    %k = kvc.linear %h by @k layer %l : tensor<?x24xf32> -> tensor<?x8xf32>
    %next = kvc.append %k, %k to %c layer %l at %positions of %sequences : tensor<?x8xf32>, tensor<?x8xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %a = kvc.attend %q to %next layer %l at %positions of %sequences scale 0.35 : tensor<?x24xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %o = kvc.linear %a by @q layer %l residual(%z : tensor<?x24xf32>) : tensor<?x24xf32> -> tensor<?x24xf32>
    scf.yield %o, %next : tensor<?x24xf32>, !cache
  }
  %chosen = kvc.select %y#0 rows %outputs : tensor<?x24xf32>, tensor<?xi64> -> tensor<?x24xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x24xf32> -> tensor<?x40xf32>
  return %logits, %y#1 : tensor<?x40xf32>, !cache
}

//--- carried.mlir
!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 8, value 8, f16, #kvc.contiguous>
kvc.weight @table : tensor<16x16xf32> from "table" packed <offset 0, panel 16>
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x16xf32>, !cache) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x16xf32>
  %y:2 = scf.for %l = %c0 to %c2 step %c1 iter_args(%a = %r, %b = %r) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
    %n = arith.addf %r, %a : tensor<?x16xf32>
    scf.yield %b, %n : tensor<?x16xf32>, tensor<?x16xf32>
  }
  %chosen = kvc.select %y#0 rows %outputs : tensor<?x16xf32>, tensor<?xi64> -> tensor<?x16xf32>
  %logits = kvc.linear %chosen by @table : tensor<?x16xf32> -> tensor<?x16xf32>
  return %logits, %cache : tensor<?x16xf32>, !cache
}

//--- invalid.mlir
// expected-error@+1 {{expected a function @forward}}
module {}

// -----

// expected-error@+1 {{expected panels of 16 from kvc-assign-packing}}
kvc.weight @not_packed : tensor<16x16xf32> from "w"
func.func @forward() {
  return
}

// -----

// expected-error@+1 {{expected panels of 16 from kvc-assign-packing}}
kvc.weight @by_rows : tensor<16x16xf32> from "w" packed <offset 0, panel 0>
func.func @forward() {
  return
}

// -----

// expected-error@+1 {{expected @forward to take tokens (tensor<?xi32>), sequences (tensor<?xi32>), outputs (tensor<?xi64>) and a cache}}
func.func @forward() {
  return
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 8, value 8, f16, #kvc.contiguous>
// expected-error@+1 {{expected @forward to take tokens (tensor<?xi32>)}}
func.func @forward(%tokens: tensor<3xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %x: tensor<?x16xf32>, %cache: !cache) -> (tensor<?x16xf32>, !cache) {
  return %x, %cache : tensor<?x16xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 8, value 8, f16, #kvc.contiguous>
kvc.weight @table : tensor<16x16xf32> from "table" packed <offset 0, panel 16>
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x16xf32>, !cache) {
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x16xf32>
  %chosen = kvc.select %x rows %outputs : tensor<?x16xf32>, tensor<?xi64> -> tensor<?x16xf32>
  %y = kvc.linear %chosen by @table : tensor<?x16xf32> -> tensor<?x16xf32>
  // expected-error@+1 {{'kvc.advance' op expected an op that @forward may use in its fused form}}
  %after = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
  return %y, %after : tensor<?x16xf32>, !cache
}

// -----

!cache = !kvc.cache<layers 2, kv_heads 1, capacity 20, key 8, value 8, f16, #kvc.contiguous>
kvc.weight @table : tensor<16x16xf32> from "table" packed <offset 0, panel 16>
func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x16xf32>, !cache) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op expected an op that @forward may use in its fused form}}
  %i = scf.for %l = %c0 to %c1 step %c1 iter_args(%j = %c0) -> (index) {
    scf.yield %j : index
  }
  %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x16xf32>
  return %x, %cache : tensor<?x16xf32>, !cache
}
