// RUN: kvc-opt %s --kvc-assign-packing | FileCheck %s --check-prefix=PANELS
// RUN: kvc-opt %s --kvc-assign-packing=panels=false | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/19x3xf32/1125899906842624x16xf32/' %s > %t.mlir
// RUN: not kvc-opt %t.mlir --kvc-assign-packing 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: expected weights of at most 2^56 bytes in all, but got more with this one

// A matrix of 19 rows is stored as 2 panels of 16; a vector is padded to 16s.
// PANELS: @table {{.*}} packed <offset 0, panel 16>
// ROWS: @table {{.*}} packed <offset 0, panel 0>
kvc.weight @table : tensor<19x3xf32> from "table"
// 2 * 3 * 16 * 4 = 384; 19 * 3 * 4 = 228, and 256 is the next multiple of 64.
// PANELS: @norm {{.*}} packed <offset 384, panel 16>
// ROWS: @norm {{.*}} packed <offset 256, panel 0>
kvc.weight @norm : tensor<5x17xf64> from "{}.norm"
// 384 + 5 * 32 * 8 = 1664; 256 + 5 * 17 * 8 = 936, and then 960.
// PANELS: @stack {{.*}} packed <offset 1664, panel 16>
// ROWS: @stack {{.*}} packed <offset 960, panel 0>
kvc.weight @stack : tensor<5x17x2xbf16> from "{}.stack"
// 1664 + 5 * 2 * 2 * 16 * 2 = 2304; 960 + 5 * 17 * 2 * 2 = 1300, and then 1344.
// PANELS: @last {{.*}} packed <offset 2304, panel 16>
// ROWS: @last {{.*}} packed <offset 1344, panel 0>
kvc.weight @last : tensor<1xf32> from "last"
