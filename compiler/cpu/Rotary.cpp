// kvc.rotary: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

// The frequencies of a rotary embedding as a constant of the module, padded to
// whole vectors: memref<Pxf64>.
static Value frequencies(KernelBuilder &b, RotaryOp op) {
  SmallVector<double> values = op.getFrequencies();
  values.resize(llvm::alignTo(values.size(), kLanes), 0.0);
  return b.table("rotary_frequencies",
                 DenseElementsAttr::get(RankedTensorType::get(values.size(),
                                                              b.getF64Type()),
                                        ArrayRef<double>(values)));
}

void kvc::emitRotary(KernelBuilder &b, RotaryOp op, Value input,
                     Value positions, Value output) {
  int64_t headDim = op.getHeadDim(), pairs = op.getDims() / 2;
  int64_t heads = b.widthOf(input) / headDim;
  Value table = frequencies(b, op);
  auto wide = VectorType::get({kLanes}, b.getF64Type());
  b.forEachRow(b.rowsOf(input), [&](Value n) {
    Value position = arith::SIToFPOp::create(
        b, b.getF64Type(), memref::LoadOp::create(b, positions, n));
    Value turns = vector::BroadcastOp::create(b, wide, position);
    b.forEachRun(pairs, [&](Value i, int64_t count) {
      // Angles in f64: a position times a frequency has more digits than f32.
      Value angle = arith::MulFOp::create(
          b, turns, vector::LoadOp::create(b, wide, table, i));
      Value cos = b.convert(math::CosOp::create(b, angle), b.arithmetic);
      Value sin = b.convert(math::SinOp::create(b, angle), b.arithmetic);
      b.forLoop("head", b.index(0), b.index(heads), 1, [&](Value head) {
        Value first = b.add(b.mul(head, headDim), i);
        Value second = b.add(first, pairs);
        Value x = b.loadLanes(input, {n, first}, count);
        Value y = b.loadLanes(input, {n, second}, count);
        Value ySin = arith::MulFOp::create(b, y, sin);
        Value xSin = arith::MulFOp::create(b, x, sin);
        b.storeLanes(b.fma(x, cos, arith::NegFOp::create(b, ySin)), output,
                     {n, first}, count);
        b.storeLanes(b.fma(y, cos, xSin), output, {n, second}, count);
      });
    });
    if (output != input && 2 * pairs != headDim)
      b.forLoop("head", b.index(0), b.index(heads), 1, [&](Value head) {
        Value rest = b.add(b.mul(head, headDim), 2 * pairs);
        b.forEachRun(headDim - 2 * pairs, [&](Value i, int64_t count) {
          Value at = b.add(rest, i);
          b.storeLanes(b.loadLanes(input, {n, at}, count), output, {n, at},
                       count);
        });
      });
  });
}
