// Rows rounded for products with blocks of small integers, and with bf16: a task is a
// row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

// For 32 inputs at a time: scale = max |x| / 127, and roundeven(x / scale), from
// -127 to 127, as bytes; 0 where the scale is 0. Where an input isn't finite the
// scale is NaN, and so is what it scales.
void kvc::emitRoundRows(KernelBuilder &b, Value input, Value output) {
  auto words = VectorType::get({kLanes}, b.getI32Type());
  auto bytes = VectorType::get({kLanes}, b.getI8Type());
  auto word = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  auto asWord = [&](Value number) -> Value {
    return arith::BitcastOp::create(b, b.getI32Type(), number);
  };
  b.forEachRow(b.rowsOf(input), [&](Value n) {
    int64_t blocks = b.widthOf(output);
    b.forLoop("block", b.index(0), b.index(blocks), 1, [&](Value block) {
      SmallVector<Value, 2> x, magnitudes, quants;
      for (int64_t half : {0, 1}) {
        Value column = b.add(b.mul(block, 2 * kLanes), half * kLanes);
        x.push_back(b.loadLanes(input, {n, column}));
        // In the order of integers, in which NaN is above infinity.
        magnitudes.push_back(arith::BitcastOp::create(
            b, words, math::AbsFOp::create(b, x.back())));
      }
      Value largest = vector::ReductionOp::create(
          b, vector::CombiningKind::MAXSI,
          arith::MaxSIOp::create(b, magnitudes[0], magnitudes[1]));
      Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                             largest, word(0x7f800000));
      Value scale = arith::DivFOp::create(
          b, arith::BitcastOp::create(b, b.arithmetic, largest), b.number(127));
      scale = arith::SelectOp::create(
          b, isFinite, scale,
          b.number(std::numeric_limits<double>::quiet_NaN()));
      Value isScaled = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, scale,
                                             b.number(0.0));
      for (int64_t half : {0, 1}) {
        Value whole = math::RoundEvenOp::create(
            b, arith::DivFOp::create(b, x[half], b.splat(scale)));
        whole = b.max(b.splat(-127), whole);
        Value isMost = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, whole,
                                             b.splat(127));
        whole = arith::SelectOp::create(b, isMost, b.splat(127), whole);
        whole = arith::SelectOp::create(b, isScaled, whole, b.splat(0.0));
        quants.push_back(arith::FPToSIOp::create(b, words, whole));
        vector::StoreOp::create(
            b,
            vector::BitCastOp::create(
                b, VectorType::get({kLanes / 4}, b.getI32Type()),
                arith::TruncIOp::create(b, bytes, quants.back())),
            output, ValueRange{n, block, b.index(half * kLanes / 4)});
      }
      auto sumOf = [&](Value integers) -> Value {
        return vector::ReductionOp::create(b, vector::CombiningKind::ADD, integers);
      };
      Value lowSum = sumOf(quants[0]);
      Value sum = arith::AddIOp::create(b, lowSum, sumOf(quants[1]));
      auto store = [&](Value value, int64_t at) {
        memref::StoreOp::create(b, value, output,
                                ValueRange{n, block, b.index(at)});
      };
      store(asWord(scale), RoundedRow::Scale);
      auto times = [&](Value sum) -> Value {
        return arith::MulIOp::create(b, sum, word(-RoundedRow::kSumScale));
      };
      store(times(sum), RoundedRow::NegatedSum);
      store(times(lowSum), RoundedRow::NegatedLowSum);
      store(asWord(arith::MulFOp::create(
                b, scale, arith::SIToFPOp::create(b, b.arithmetic, sum))),
            RoundedRow::ScaledSum);
    });
  });
}

void kvc::emitNarrowRows(KernelBuilder &b, Value input, Value output) {
  b.forEachRow(b.rowsOf(input), [&](Value n) {
    b.forEachRun(b.widthOf(input), [&](Value i, int64_t count) {
      Value numbers = b.loadLanes(input, {n, i}, count);
      b.storeLanes(b.convert(b.convert(numbers, b.getBF16Type()), b.arithmetic), output,
                   {n, i}, count);
    });
  });
}
