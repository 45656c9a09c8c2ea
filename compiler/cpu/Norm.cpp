// kvc.rms_norm and kvc.layer_norm: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

// 1 / sqrt(sum / width + epsilon)
static Value inverseRoot(KernelBuilder &b, Value sum, int64_t width,
                         double epsilon) {
  Value mean = arith::DivFOp::create(b, sum, b.number(double(width)));
  Value shifted = arith::AddFOp::create(b, mean, b.number(epsilon));
  return arith::DivFOp::create(b, b.number(1.0),
                               math::SqrtOp::create(b, shifted));
}

void kvc::emitRMSNorm(KernelBuilder &b, Value input, Value weight,
                      double epsilon, Value output) {
  int64_t width = b.widthOf(input);
  b.forEachRow(b.rowsOf(input), [&](Value n) {
    Value squares = b.forEachRun(
        width, b.splat(0.0), [&](Value i, int64_t count, Value sum) {
          Value x = b.loadLanes(input, {n, i}, count);
          return b.fma(x, x, sum);
        });
    Value scale =
        b.splat(inverseRoot(b, b.reduceAdd(squares), width, epsilon));
    b.forEachRun(width, [&](Value i, int64_t count) {
      Value x = arith::MulFOp::create(b, b.loadLanes(input, {n, i}, count), scale);
      Value y = arith::MulFOp::create(b, x, b.loadLanes(weight, i, count));
      b.storeLanes(y, output, {n, i}, count);
    });
  });
}

void kvc::emitLayerNorm(KernelBuilder &b, Value input, Value weight, Value bias,
                        double epsilon, Value output) {
  int64_t width = b.widthOf(input);
  b.forEachRow(b.rowsOf(input), [&](Value n) {
    Value sum = b.forEachRun(
        width, b.splat(0.0), [&](Value i, int64_t count, Value sum) -> Value {
          return arith::AddFOp::create(b, sum,
                                       b.loadLanes(input, {n, i}, count));
        });
    Value mean = b.splat(
        arith::DivFOp::create(b, b.reduceAdd(sum), b.number(double(width))));
    auto centred = [&](Value i, int64_t count) -> Value {
      return arith::SubFOp::create(b, b.loadLanes(input, {n, i}, count), mean);
    };
    Value squares = b.forEachRun(
        width, b.splat(0.0), [&](Value i, int64_t count, Value sum) {
          Value x = centred(i, count);
          Value next = b.fma(x, x, sum);
          if (count == kLanes)
            return next;
          // The lanes behind the row hold 0 - mean: they keep their sums.
          SmallVector<bool> valid(kLanes);
          std::fill_n(valid.begin(), count, true);
          auto mask = arith::ConstantOp::create(
              b, DenseElementsAttr::get(
                     VectorType::get({kLanes}, b.getI1Type()), valid));
          return Value(arith::SelectOp::create(b, mask, next, sum));
        });
    Value scale =
        b.splat(inverseRoot(b, b.reduceAdd(squares), width, epsilon));
    b.forEachRun(width, [&](Value i, int64_t count) {
      Value x = arith::MulFOp::create(b, centred(i, count), scale);
      Value w = b.loadLanes(weight, i, count);
      Value y = bias ? b.fma(x, w, b.loadLanes(bias, i, count))
                     : Value(arith::MulFOp::create(b, x, w));
      b.storeLanes(y, output, {n, i}, count);
    });
  });
}
