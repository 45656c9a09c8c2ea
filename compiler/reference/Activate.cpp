// Reference lowering of kvc.activate.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

Value reference::activate(Emitter &b, Activation activation, Value x) {
  Type type = x.getType();
  auto constant = [&](double value) { return number(b, type, value); };
  auto mul = [&](Value l, Value r) -> Value {
    return arith::MulFOp::create(b, l, r);
  };
  auto add = [&](Value l, Value r) -> Value {
    return arith::AddFOp::create(b, l, r);
  };
  switch (activation) {
  case Activation::GELU: {
    Value erf =
        math::ErfOp::create(b, mul(x, constant(0.70710678118654752440)));
    return mul(mul(x, add(constant(1), erf)), constant(0.5));
  }
  case Activation::GELUTanh: {
    Value cube = mul(mul(x, x), x);
    Value inner = mul(constant(0.79788456080286535588), // sqrt(2 / pi)
                      add(x, mul(constant(0.044715), cube)));
    Value tanh = math::TanhOp::create(b, inner);
    return mul(mul(x, add(constant(1), tanh)), constant(0.5));
  }
  case Activation::SiLU: {
    Value exp = math::ExpOp::create(b, arith::NegFOp::create(b, x));
    return arith::DivFOp::create(b, x, add(constant(1), exp));
  }
  case Activation::ReLU:
    return arith::MaximumFOp::create(b, x, constant(0));
  }
  llvm_unreachable("every activation is handled above");
}

namespace {

// activate becomes the function of each element.
struct LowerActivate : OpConversionPattern<ActivateOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(ActivateOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value input = adaptor.getInput();
    Value init = emptyRows(b, op.getType(), rowCount(b, input));
    rewriter.replaceOp(
        op, generic(b, init, input, rewriter.getMultiDimIdentityMap(2), 0,
                    [&](Emitter &b, ValueRange x) {
                      return activate(b, op.getActivation(), x[0]);
                    }));
    return success();
  }
};

} // namespace

void kvc::reference::populateActivatePatterns(const TypeConverter &converter,
                                              RewritePatternSet &patterns) {
  patterns.add<LowerActivate>(converter, patterns.getContext());
}
