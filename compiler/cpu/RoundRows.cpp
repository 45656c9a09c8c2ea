// What is multiplied with a matrix in blocks, rounded to bytes: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

// For 32 inputs at a time: scale = max |x| / 127, and scale * roundeven(x / scale),
// at most 127 scales. A scale of 0 makes 0, and an input that isn't finite makes
// none of the 32 a number.
void kvc::emitRoundRows(KernelBuilder &b, Value input, Value output) {
  b.parallel("n", b.rowsOf(input), [&](Value n) {
    b.forLoop("i", b.index(0), b.index(b.widthOf(input)), 2 * kLanes, [&](Value i) {
      SmallVector<Value, 2> x, at{i, b.add(i, kLanes)};
      for (Value column : at)
        x.push_back(b.loadLanes(input, {n, column}));
      auto magnitude = [&](Value v) -> Value { return math::AbsFOp::create(b, v); };
      Value largest = b.reduceMax(b.max(magnitude(x[0]), magnitude(x[1])));
      // 0, or NaN where a number is infinite or NaN
      auto nothing = [&](Value v) -> Value {
        return arith::MulFOp::create(b, v, b.splat(0.0));
      };
      Value finite = b.reduceAdd(
          arith::AddFOp::create(b, nothing(x[0]), nothing(x[1])));
      Value scale = b.splat(arith::AddFOp::create(
          b, arith::DivFOp::create(b, largest, b.number(127)), finite));
      Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, scale,
                                         b.splat(0.0));
      for (auto [v, column] : llvm::zip_equal(x, at)) {
        Value whole = math::RoundEvenOp::create(
            b, arith::DivFOp::create(b, v, scale));
        whole = arith::MinimumFOp::create(b, whole, b.splat(127));
        whole = arith::MaximumFOp::create(b, whole, b.splat(-127));
        Value rounded = arith::SelectOp::create(
            b, none, b.splat(0.0), arith::MulFOp::create(b, whole, scale));
        b.storeLanes(rounded, output, {n, column});
      }
    });
  });
}
