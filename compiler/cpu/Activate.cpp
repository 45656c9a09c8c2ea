// kvc.activate and the ops of arith that work element by element: a task is a
// row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

Value KernelBuilder::activate(Value x, Activation activation) {
  auto constant = [&](double value) -> Value {
    return isa<VectorType>(x.getType()) ? splat(value) : number(value);
  };
  auto times = [&](Value a, Value b) -> Value {
    return arith::MulFOp::create(*this, a, b);
  };
  auto whereNegative = [&](Value a, Value b) -> Value {
    Value negative = arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, x,
                                           constant(0.0));
    return arith::SelectOp::create(*this, negative, a, b);
  };
  // x times the logistic function of t, which has the sign of x:
  // x / (1 + e) above 0 and x e / (1 + e) below, e = exp(-|t|), which never overflows.
  auto logistic = [&](Value t) -> Value {
    Value e = math::ExpOp::create(
        *this, arith::NegFOp::create(*this, math::AbsFOp::create(*this, t)));
    return arith::DivFOp::create(*this, whereNegative(times(x, e), x),
                                 arith::AddFOp::create(*this, constant(1.0), e));
  };
  switch (activation) {
  case Activation::ReLU:
    return whereNegative(constant(0.0), x);
  case Activation::SiLU:
    return logistic(x);
  case Activation::GELUTanh: {
    // (1 + tanh u) / 2 is the logistic function of 2u, with
    // u = sqrt(2/pi) (x + 0.044715 x^3).
    Value cubic = fma(times(constant(0.044715), times(x, x)), x, x);
    return logistic(times(constant(2 * 0.79788456080286535588), cubic));
  }
  case Activation::GELU: {
    // x times h = erfc(|x| / sqrt 2) / 2 below 0 and x (1 - h) above; h is in [0, 1/2],
    // and nothing cancels.
    Value z = times(math::AbsFOp::create(*this, x),
                    constant(0.70710678118654752440));
    Value h = times(constant(0.5), math::ErfcOp::create(*this, z));
    return times(x, whereNegative(
                        h, arith::SubFOp::create(*this, constant(1.0), h)));
  }
  }
  llvm_unreachable("all activations are handled");
}

void kvc::emitElementwise(KernelBuilder &b, ArrayRef<Value> inputs,
                          Value output,
                          function_ref<Value(ValueRange)> combine) {
  b.forEachRow(b.rowsOf(output), [&](Value n) {
    b.forEachRun(b.widthOf(output), [&](Value i, int64_t count) {
      SmallVector<Value> loaded;
      for (Value input : inputs)
        loaded.push_back(b.loadLanes(input, {n, i}, count));
      b.storeLanes(combine(loaded), output, {n, i}, count);
    });
  });
}
