// Reference lowering of kvc.attend.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// attend becomes, for each token and query head, the softmax of its scores over
// the positions up to the token's own, the last of them where there is a window,
// and the sum of values under it. Other positions are never read. As in the fast
// kernel the softmax is in base 2, with log2(e) * scale in the queries, so that the
// same scores overflow.
struct LowerAttend : OpConversionPattern<AttendOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(AttendOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    CacheBuffers cache(op.getCache().getType(), adaptor.getCache());
    const Group &layers = op.getCacheGroup();
    LayoutAttrInterface layout = layers.getLayout();
    Value queries = adaptor.getQueries().front();
    Value positions = adaptor.getPositions().front();
    Value sequences = adaptor.getSequences().front();
    Value layer = adaptor.getLayer().front();
    Type element = op.getType().getElementType();
    auto perPosition = RankedTensorType::get({ShapedType::kDynamic}, element);
    int64_t width = layers.keyWidth;
    int64_t heads = op.getType().getDimSize(1) / width;
    int64_t group = heads / layers.kvHeads;
    Value zero = number(b, element, 0);
    Value lowest = number(b, element, -std::numeric_limits<double>::infinity());
    Value scale = number(
        b, element, op.getScale().convertToDouble() * 1.44269504088896340736);

    // The attention of query head h of token n, inserted into `rows`.
    auto attendHead = [&](Emitter &b, Value n, Value h, Value rows) {
      Value sequence = extractIndex(b, sequences, n);
      Value end = arith::MaxSIOp::create(
          b, add(b, extractIndex(b, positions, n), index(b, 1)), index(b, 0));
      // It sees [first, end).
      Value first = index(b, 0);
      if (op.getWindow())
        first = arith::MaxSIOp::create(
            b, arith::SubIOp::create(b, end, index(b, *op.getWindow())), first);
      Value count = arith::SubIOp::create(b, end, first);
      Value head = div(b, h, group);
      // Of the p-th position that it sees.
      auto cellOf = [&](Emitter &b, Value p) {
        return cache.cell(b, op.getGroup(), layer, head, sequence,
                          add(b, first, p));
      };
      Value scores =
          tabulate(b, perPosition, count, [&](Emitter &b, Value p) -> Value {
            Value dot = accumulate(
                b, index(b, width), zero,
                [&](Emitter &b, Value e, Value sum) -> Value {
                  Value query = tensor::ExtractOp::create(
                      b, queries, ValueRange{n, add(b, mul(b, h, width), e)});
                  query = arith::MulFOp::create(b, query, scale);
                  Value key = layout.emitLoadKeys(b, b.getLoc(), layers,
                                                  cellOf(b, p), e, 1);
                  key = toFloat(b, key, element);
                  return math::FmaOp::create(b, query, key, sum);
                });
            return dot;
          });
      Value highest = accumulate(
          b, count, lowest, [&](Emitter &b, Value p, Value state) -> Value {
            Value score = tensor::ExtractOp::create(b, scores, p);
            return arith::MaximumFOp::create(b, state, score);
          });
      Value weights =
          tabulate(b, perPosition, count, [&](Emitter &b, Value p) -> Value {
            Value score = tensor::ExtractOp::create(b, scores, p);
            return math::Exp2Op::create(
                b, arith::SubFOp::create(b, score, highest));
          });
      Value total = accumulate(
          b, count, zero, [&](Emitter &b, Value p, Value sum) -> Value {
            Value weight = tensor::ExtractOp::create(b, weights, p);
            return arith::AddFOp::create(b, sum, weight);
          });
      // The highest score's weight is 1: a total of 0 has no key.
      Value none =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, zero);
      total = arith::SelectOp::create(b, none, number(b, element, 1), total);
      return accumulate(
          b, index(b, width), rows,
          [&](Emitter &b, Value e, Value rows) -> Value {
            Value sum = accumulate(
                b, count, zero, [&](Emitter &b, Value p, Value sum) -> Value {
                  Value weight = tensor::ExtractOp::create(b, weights, p);
                  Value value = layout.emitLoadValue(b, b.getLoc(), layers,
                                                     cellOf(b, p), e, 1);
                  value = toFloat(b, value, element);
                  return math::FmaOp::create(b, weight, value, sum);
                });
            Value mean = arith::DivFOp::create(b, sum, total);
            return tensor::InsertOp::create(
                b, mean, rows, ValueRange{n, add(b, mul(b, h, width), e)});
          });
    };
    Value count = rowCount(b, queries);
    Value result =
        accumulate(b, count, emptyRows(b, op.getType(), count),
                   [&](Emitter &b, Value n, Value rows) {
                     return accumulate(b, index(b, heads), rows,
                                       [&](Emitter &b, Value h, Value rows) {
                                         return attendHead(b, n, h, rows);
                                       });
                   });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void kvc::reference::populateAttendPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerAttend>(converter, patterns.getContext());
}
