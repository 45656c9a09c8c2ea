// Reference lowering of the ops that read weights.
#include "compiler/fuse/Packing.h"
#include "compiler/reference/Emit.h"
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// The weight `symbol` of one layer as a tensor of its own element type: a view
// of the packed file.
Value readWeight(Emitter &b, Operation *op, FlatSymbolRefAttr symbol,
                 Value layer) {
  auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, symbol);
  Value file = op->getParentOfType<func::FuncOp>().getArgument(0);
  Value offset = index(b, weight.getPacking()->getOffset());
  if (layer) {
    Value bytes = index(b, packedBytes(weight) / weight.getLayers());
    offset = arith::AddIOp::create(b, offset,
                                   arith::MulIOp::create(b, layer, bytes));
  }
  auto type = MemRefType::get(weight.getLayerShape(),
                              weight.getWeightType().getElementType());
  Value view = memref::ViewOp::create(b, type, file, offset, ValueRange());
  return bufferization::ToTensorOp::create(
      b, memref::getTensorTypeFromMemRefType(type), view, /*restrict=*/true);
}

Value rowsOf(Emitter &b, Value rows, RankedTensorType type) {
  return emptyRows(b, type, rowCount(b, rows));
}

// The axes of `[n, i]` and `[i]` under iterators (n, i), of `[n]` too.
struct RowMaps {
  AffineMap element, column, row;
  explicit RowMaps(OpBuilder &b)
      : element(b.getMultiDimIdentityMap(2)),
        column(AffineMap::get(2, 0, b.getAffineDimExpr(1))),
        row(AffineMap::get(2, 0, b.getAffineDimExpr(0))) {}
};

// embed becomes result[n, i] = table[ids[n], i].
struct LowerEmbed : OpConversionPattern<EmbedOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(EmbedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value table = readWeight(b, op, op.getTableAttr(), Value());
    Type type = op.getType().getElementType();
    Value count = rowCount(b, adaptor.getIds());
    rewriter.replaceOp(
        op, generate(b, op.getType(), count, [&](Emitter &b, Value n, Value i) {
          Value id = extractIndex(b, adaptor.getIds(), n);
          Value x = tensor::ExtractOp::create(b, table, ValueRange{id, i});
          return toFloat(b, x, type);
        }));
    return success();
  }
};

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

void kvc::reference::populateWeightPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerEmbed, LowerRMSNorm, LowerLayerNorm, LowerLinear,
               LowerGatedLinear>(converter, patterns.getContext());
}
