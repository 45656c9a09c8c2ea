// Reference lowering of kvc.linear and kvc.gated_linear.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// What a row's weights are multiplied with: inputs as they are, and rounded or null.
struct Inputs {
  Value exact, bytes, narrow;
  Value of(Rounding rounding) const {
    Value rounded = rounding == Rounding::Bytes  ? bytes
                    : rounding == Rounding::BF16 ? narrow
                                                 : Value();
    return rounded ? rounded : exact;
  }
};

// Rounds 32 inputs of a row at a time to whole numbers from -127 to 127 times a
// scale. A scale of 0 makes no number of 0 / 0, and one of infinity or NaN one of
// each input.
Value roundRows(Emitter &b, Value input) {
  constexpr int64_t kBlock = 32;
  auto type = cast<RankedTensorType>(input.getType());
  Type element = type.getElementType();
  auto scales = RankedTensorType::get(
      {ShapedType::kDynamic, type.getDimSize(1) / kBlock}, element);
  Value largest = number(b, element, 127), zero = number(b, element, 0);
  Value scale = generate(
      b, scales, rowCount(b, input), [&](Emitter &b, Value n, Value block) {
        Value magnitude = accumulate(
            b, index(b, kBlock), zero, [&](Emitter &b, Value i, Value most) -> Value {
              Value at = add(b, mul(b, block, kBlock), i);
              Value x = tensor::ExtractOp::create(b, input, ValueRange{n, at});
              return arith::MaximumFOp::create(b, most,
                                               math::AbsFOp::create(b, x));
            });
        return arith::DivFOp::create(b, magnitude, largest);
      });
  return generate(
      b, type, rowCount(b, input), [&](Emitter &b, Value n, Value i) -> Value {
        Value x = tensor::ExtractOp::create(b, input, ValueRange{n, i});
        Value s = tensor::ExtractOp::create(b, scale,
                                            ValueRange{n, div(b, i, kBlock)});
        Value whole = math::RoundEvenOp::create(b, arith::DivFOp::create(b, x, s));
        whole = arith::MinimumFOp::create(b, whole, largest);
        whole = arith::MaximumFOp::create(b, whole,
                                          arith::NegFOp::create(b, largest));
        Value none =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, s, zero);
        return arith::SelectOp::create(b, none, zero,
                                       arith::MulFOp::create(b, whole, s));
      });
}

Value narrowRows(Emitter &b, Value input) {
  return generic(b, rowsOf(b, input, cast<RankedTensorType>(input.getType())), {input},
                 b.getMultiDimIdentityMap(2), 0, [&](Emitter &b, ValueRange at) {
                   Value narrow =
                       arith::TruncFOp::create(b, b.getBF16Type(), at[0]);
                   return toFloat(b, narrow, at[0].getType());
                 });
}

template <typename Op> Inputs inputsOf(Emitter &b, Op op, Value input) {
  return {input, op.getRounded() ? roundRows(b, input) : Value(),
          op.getNarrowed() ? narrowRows(b, input) : Value()};
}

// bias[o], or 0, plus sum_i input[n, i] * weight[o, i], in the order of i with
// fused multiply-adds.
Value product(Emitter &b, Operation *op, const Inputs &inputs, RankedTensorType type,
              FlatSymbolRefAttr weight, FlatSymbolRefAttr bias, Value layer) {
  Type element = type.getElementType();
  Value init = rowsOf(b, inputs.exact, type);
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
  return ofWeight(b, op, weight, layer, [&](Emitter &b, const WeightView &view) {
    return generic(b, init, {inputs.of(view.rounding()), view.numbers(b)}, maps,
                   /*reductions=*/1, [&](Emitter &b, ValueRange at) -> Value {
                     return math::FmaOp::create(
                         b, at[0], toFloat(b, at[1], element), at[2]);
                   });
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
    Value sum = product(b, op, inputsOf(b, op, input), op.getType(),
                        op.getWeightAttr(), op.getBiasAttr(), adaptor.getLayer());
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
    Inputs inputs = inputsOf(b, op, input);
    Value gate = product(b, op, inputs, op.getType(), op.getGateAttr(),
                         op.getGateBiasAttr(), layer);
    Value up = product(b, op, inputs, op.getType(), op.getUpAttr(),
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
