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
  // x / (1 + exp(-t)): x times the logistic function of t.
  auto logistic = [&](Value t) -> Value {
    Value e = math::ExpOp::create(*this, arith::NegFOp::create(*this, t));
    return arith::DivFOp::create(*this, x,
                                 arith::AddFOp::create(*this, constant(1.0), e));
  };
  switch (activation) {
  case Activation::ReLU: {
    Value negative = arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, x,
                                           constant(0.0));
    return arith::SelectOp::create(*this, negative, constant(0.0), x);
  }
  case Activation::SiLU:
    return logistic(x);
  case Activation::GELUTanh: {
    // (1 + tanh u) / 2 is the logistic function of 2u, with
    // u = sqrt(2/pi) (x + 0.044715 x^3).
    Value cubic = fma(times(constant(0.044715), times(x, x)), x, x);
    return logistic(times(constant(2 * 0.79788456080286535588), cubic));
  }
  case Activation::GELU: {
    // With c = erfc(|x| / sqrt 2) / 2 in [0, 1/2]: x c below 0, x - x c above;
    // no cancellation on either side.
    Value z = times(math::AbsFOp::create(*this, x),
                    constant(0.70710678118654752440));
    Value c = times(x, times(constant(0.5), math::ErfcOp::create(*this, z)));
    Value negative = arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, x,
                                           constant(0.0));
    return arith::SelectOp::create(*this, negative, c,
                                   arith::SubFOp::create(*this, x, c));
  }
  }
  llvm_unreachable("all activations are handled");
}

void kvc::emitElementwise(KernelBuilder &b, ArrayRef<Value> inputs,
                          Value output,
                          function_ref<Value(ValueRange)> combine) {
  b.parallel("n", b.rowsOf(output), [&](Value n) {
    b.forEachRun(b.widthOf(output), [&](Value i, int64_t count) {
      SmallVector<Value> loaded;
      for (Value input : inputs)
        loaded.push_back(b.loadLanes(input, {n, i}, count));
      b.storeLanes(combine(loaded), output, {n, i}, count);
    });
  });
}
