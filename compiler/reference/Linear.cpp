// Reference lowering of kvc.linear and kvc.gated_linear.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// bias[o], or 0, plus sum_i input[n, i] * weight[o, i], in the order of i with
// fused multiply-adds.
Value product(Emitter &b, Operation *op, Value input, RankedTensorType type,
              FlatSymbolRefAttr weight, FlatSymbolRefAttr bias, Value layer) {
  Type element = type.getElementType();
  Value init = rowsOf(b, input, type);
  if (bias)
    init = generic(
        b, init, readWeight(b, op, bias, layer), RowMaps(b).column, 0,
        [&](Emitter &b, ValueRange at) { return toFloat(b, at[0], element); });
  else
    init = linalg::FillOp::create(b, number(b, element, 0), init).getResult(0);
  AffineExpr n, o, i;
  bindDims(b.getContext(), n, o, i);
  SmallVector<AffineMap> maps{AffineMap::get(3, 0, {n, i}, b.getContext()),
                              AffineMap::get(3, 0, {o, i}, b.getContext())};
  return generic(b, init, {input, readWeight(b, op, weight, layer)}, maps,
                 /*reductions=*/1, [&](Emitter &b, ValueRange at) -> Value {
                   return math::FmaOp::create(
                       b, at[0], toFloat(b, at[1], element), at[2]);
                 });
}

// linear becomes a product, then activation and residual of each element.
struct LowerLinear : OpConversionPattern<LinearOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(LinearOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value input = adaptor.getInput(), residual = adaptor.getResidual();
    Value sum = product(b, op, input, op.getType(), op.getWeightAttr(),
                        op.getBiasAttr(), adaptor.getLayer());
    if (!op.getActivation() && !residual) {
      rewriter.replaceOp(op, sum);
      return success();
    }
    SmallVector<Value> inputs{sum};
    if (residual)
      inputs.push_back(residual);
    SmallVector<AffineMap> maps(inputs.size(), b.getMultiDimIdentityMap(2));
    rewriter.replaceOp(op, generic(b, rowsOf(b, input, op.getType()), inputs,
                                   maps, 0, [&](Emitter &b, ValueRange at) {
                                     Value x = at[0];
                                     if (op.getActivation())
                                       x = activate(b, *op.getActivation(), x);
                                     if (residual)
                                       x = arith::AddFOp::create(b, x, at[1]);
                                     return x;
                                   }));
    return success();
  }
};

// gated_linear becomes two products, and activation(gate) * up.
struct LowerGatedLinear : OpConversionPattern<GatedLinearOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(GatedLinearOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value input = adaptor.getInput(), layer = adaptor.getLayer();
    Value gate = product(b, op, input, op.getType(), op.getGateAttr(),
                         op.getGateBiasAttr(), layer);
    Value up = product(b, op, input, op.getType(), op.getUpAttr(),
                       op.getUpBiasAttr(), layer);
    SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(2));
    rewriter.replaceOp(
        op, generic(b, rowsOf(b, input, op.getType()), {gate, up}, maps, 0,
                    [&](Emitter &b, ValueRange at) -> Value {
                      Value open = activate(b, op.getActivation(), at[0]);
                      return arith::MulFOp::create(b, open, at[1]);
                    }));
    return success();
  }
};

} // namespace

void kvc::reference::populateLinearPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerLinear, LowerGatedLinear>(converter, patterns.getContext());
}
