// Reference lowering of kvc.rotary.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// rotary becomes result[n, i] = x cos + partner sin for a rotated element, with
// the partner half the rotated width away, negated for the first half.
struct LowerRotary : OpConversionPattern<RotaryOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(RotaryOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value input = adaptor.getInput(), positions = adaptor.getPositions();
    Type type = op.getType().getElementType();
    SmallVector<double> frequencies = op.getFrequencies();
    int64_t half = frequencies.size();
    Value table = arith::ConstantOp::create(
        b, DenseElementsAttr::get(RankedTensorType::get(half, b.getF64Type()),
                                  ArrayRef<double>(frequencies)));
    auto rotated = [&](Emitter &b, Value n, Value i, Value x) -> Value {
      Value element = arith::RemUIOp::create(b, i, index(b, op.getHeadDim()));
      Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                            element, index(b, half));
      Value offset =
          arith::SelectOp::create(b, isFirst, index(b, half), index(b, -half));
      Value partner = tensor::ExtractOp::create(
          b, input, ValueRange{n, arith::AddIOp::create(b, i, offset)});
      Value negated = arith::NegFOp::create(b, partner);
      partner = arith::SelectOp::create(b, isFirst, negated, partner);

      Value pair = arith::RemUIOp::create(b, element, index(b, half));
      Value frequency = tensor::ExtractOp::create(b, table, pair);
      Value position = arith::SIToFPOp::create(
          b, b.getF64Type(), tensor::ExtractOp::create(b, positions, n));
      Value angle = arith::MulFOp::create(b, position, frequency);
      Value cos = toFloat(b, math::CosOp::create(b, angle), type);
      Value sin = toFloat(b, math::SinOp::create(b, angle), type);
      return arith::AddFOp::create(b, arith::MulFOp::create(b, x, cos),
                                   arith::MulFOp::create(b, partner, sin));
    };
    Value result = generate(
        b, op.getType(), rowCount(b, input), [&](Emitter &b, Value n, Value i) {
          Value x = tensor::ExtractOp::create(b, input, ValueRange{n, i});
          Value element =
              arith::RemUIOp::create(b, i, index(b, op.getHeadDim()));
          Value isRotated = arith::CmpIOp::create(
              b, arith::CmpIPredicate::ult, element, index(b, op.getDims()));
          auto choice = scf::IfOp::create(
              b, isRotated,
              [&](OpBuilder &inner, Location loc) {
                Emitter b(loc, inner);
                scf::YieldOp::create(b, rotated(b, n, i, x));
              },
              [&](OpBuilder &inner, Location loc) {
                scf::YieldOp::create(inner, loc, x);
              });
          return choice.getResult(0);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void kvc::reference::populateRotaryPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerRotary>(converter, patterns.getContext());
}
