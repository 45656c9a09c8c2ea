// RUN: kvc-opt %s --kvc-expand-math -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t --check-prefix=BFLOAT
// RUN: kvc-opt %s --kvc-expand-math=scalef | FileCheck %s --check-prefix=SCALEF
// Numbers: expand-math.test.

// Only arithmetic is left, multiply-adds that are fused by name, and the same for
// a scalar and for lanes.
// CHECK-NOT: math.{{exp|exp2|tanh|erfc|sin|cos}} 
// CHECK-LABEL: func.func @exp_f32
// CHECK: math.fma {{.*}} : f32
// CHECK: arith.shrui {{.*}} : i32
// CHECK-LABEL: func.func @exp_lanes
// CHECK: math.fma {{.*}} : vector<16xf64>
// CHECK: arith.shrui {{.*}} : vector<16xi64>
func.func @exp_f32(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}
func.func @exp_lanes(%x: vector<16xf64>) -> vector<16xf64> {
  %y = math.exp %x : vector<16xf64>
  return %y : vector<16xf64>
}

// 16 of f32 alone end in the instruction.
// SCALEF-LABEL: func.func @exp_f32
// SCALEF-NOT: scalef
// SCALEF-LABEL: func.func @exp2
// SCALEF: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// SCALEF-NOT: arith.mulf
// SCALEF-LABEL: func.func @tanh

// A power of two's argument is its own reduction: no product before the polynomial.
// CHECK-LABEL: func.func @exp2
// CHECK-COUNT-6: math.fma
// CHECK-NOT: math.{{fma|exp2}}
// CHECK: return
func.func @exp2(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp2 %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @tanh
// CHECK: arith.divf
// CHECK: math.copysign
func.func @tanh(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @erfc
// CHECK: math.absf
// CHECK-NOT: math.erfc
func.func @erfc(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.erfc %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @turn
// CHECK-NOT: math.{{sin|cos}}
// CHECK: return
func.func @turn(%x: vector<16xf64>) -> (vector<16xf64>, vector<16xf64>) {
  %s = math.sin %x : vector<16xf64>
  %c = math.cos %x : vector<16xf64>
  return %s, %c : vector<16xf64>, vector<16xf64>
}

// Correctly rounded everywhere as they are.
// CHECK-LABEL: func.func @kept
// CHECK: math.sqrt
// CHECK: math.fma
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: arith.extf {{.*}} : f16 to f32
func.func @kept(%x: f32) -> f32 {
  %s = math.sqrt %x : f32
  %f = math.fma %s, %x, %x : f32
  %h = arith.truncf %f : f32 to f16
  %y = arith.extf %h : f16 to f32
  return %y : f32
}

// bf16 in integers.
// BFLOAT-LABEL: func.func @bfloat
// BFLOAT-NOT: arith.truncf
// BFLOAT: arith.trunci {{.*}} : vector<16xi32> to vector<16xi16>
// BFLOAT: arith.bitcast {{.*}} : vector<16xi16> to vector<16xbf16>
// BFLOAT-NOT: arith.extf
// BFLOAT: arith.extui {{.*}} : vector<16xi16> to vector<16xi32>
// BFLOAT: return
func.func @bfloat(%x: vector<16xf32>) -> vector<16xf32> {
  %b = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  %y = arith.extf %b : vector<16xbf16> to vector<16xf32>
  return %y : vector<16xf32>
}

// BFLOAT-LABEL: func.func @bfloat_to_double
// BFLOAT: arith.extui {{.*}} : vector<16xi16> to vector<16xi32>
// BFLOAT: arith.extf {{.*}} : vector<16xf32> to vector<16xf64>
func.func @bfloat_to_double(%x: vector<16xbf16>) -> vector<16xf64> {
  %y = arith.extf %x : vector<16xbf16> to vector<16xf64>
  return %y : vector<16xf64>
}
