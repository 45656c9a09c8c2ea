// Reference lowering of kvc.rms_norm and kvc.layer_norm.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// sum_i of term(input[n, i], row[n]) / width, for each n; `row` may be absent.
Value meanOfRows(Emitter &b, Value input, Value row,
                 function_ref<Value(Emitter &, Value x, Value row)> term) {
  auto type = cast<RankedTensorType>(input.getType());
  Type element = type.getElementType();
  auto perRow = RankedTensorType::get(type.getDimSize(0), element);
  Value zero =
      linalg::FillOp::create(b, number(b, element, 0), rowsOf(b, input, perRow))
          .getResult(0);
  RowMaps maps(b);
  SmallVector<Value> inputs{input};
  SmallVector<AffineMap> inputMaps{maps.element};
  if (row) {
    inputs.push_back(row);
    inputMaps.push_back(maps.row);
  }
  Value sum = generic(b, zero, inputs, inputMaps, /*reductions=*/1,
                      [&](Emitter &b, ValueRange at) -> Value {
                        Value x = term(b, at[0], row ? at[1] : Value());
                        return arith::AddFOp::create(b, at.back(), x);
                      });
  return generic(b, rowsOf(b, input, perRow), sum, b.getMultiDimIdentityMap(1),
                 0, [&](Emitter &b, ValueRange at) -> Value {
                   Value width = number(b, element, type.getDimSize(1));
                   return arith::DivFOp::create(b, at[0], width);
                 });
}

// x / sqrt(variance + epsilon)
Value normalise(Emitter &b, Value x, Value variance, const APFloat &epsilon) {
  Type type = x.getType();
  Value sum = arith::AddFOp::create(b, variance,
                                    number(b, type, epsilon.convertToDouble()));
  return arith::DivFOp::create(b, x, math::SqrtOp::create(b, sum));
}

// rms_norm becomes a reduction to the mean square of each row, and its formula.
struct LowerRMSNorm : OpConversionPattern<RMSNormOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(RMSNormOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value input = adaptor.getInput();
    Type type = op.getType().getElementType();
    Value weight = readWeight(b, op, op.getWeightAttr(), adaptor.getLayer());
    Value square =
        meanOfRows(b, input, Value(), [](Emitter &b, Value x, Value) -> Value {
          return arith::MulFOp::create(b, x, x);
        });
    RowMaps maps(b);
    rewriter.replaceOp(
        op, generic(b, rowsOf(b, input, op.getType()), {input, square, weight},
                    {maps.element, maps.row, maps.column}, 0,
                    [&](Emitter &b, ValueRange at) -> Value {
                      Value x = normalise(b, at[0], at[1], op.getEpsilon());
                      return arith::MulFOp::create(b, x,
                                                   toFloat(b, at[2], type));
                    }));
    return success();
  }
};

// layer_norm becomes its formula, with the variance as the mean of squares of
// differences.
struct LowerLayerNorm : OpConversionPattern<LayerNormOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(LayerNormOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value input = adaptor.getInput();
    Type type = op.getType().getElementType();
    Value mean = meanOfRows(b, input, Value(),
                            [](Emitter &, Value x, Value) { return x; });
    Value variance = meanOfRows(
        b, input, mean, [](Emitter &b, Value x, Value mean) -> Value {
          Value difference = arith::SubFOp::create(b, x, mean);
          return arith::MulFOp::create(b, difference, difference);
        });
    RowMaps maps(b);
    SmallVector<Value> inputs{
        input, mean, variance,
        readWeight(b, op, op.getWeightAttr(), adaptor.getLayer())};
    SmallVector<AffineMap> inputMaps{maps.element, maps.row, maps.row,
                                     maps.column};
    if (FlatSymbolRefAttr bias = op.getBiasAttr()) {
      inputs.push_back(readWeight(b, op, bias, adaptor.getLayer()));
      inputMaps.push_back(maps.column);
    }
    rewriter.replaceOp(
        op, generic(b, rowsOf(b, input, op.getType()), inputs, inputMaps, 0,
                    [&](Emitter &b, ValueRange at) -> Value {
                      Value x = arith::SubFOp::create(b, at[0], at[1]);
                      x = normalise(b, x, at[2], op.getEpsilon());
                      x = arith::MulFOp::create(b, x, toFloat(b, at[3], type));
                      if (op.getBiasAttr())
                        x = arith::AddFOp::create(b, x,
                                                  toFloat(b, at[4], type));
                      return x;
                    }));
    return success();
  }
};

} // namespace

void kvc::reference::populateNormPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<LowerRMSNorm, LowerLayerNorm>(converter, patterns.getContext());
}
