// Reference lowering of kvc.positions.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

Value reference::indexInStep(Emitter &b, Value sequences, Value n) {
  Value sequence = tensor::ExtractOp::create(b, sequences, n);
  return accumulate(b, n, index(b, 0), [&](Emitter &b, Value m, Value count) {
    Value other = tensor::ExtractOp::create(b, sequences, m);
    Value same =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, other, sequence);
    Value one = arith::IndexCastUIOp::create(b, b.getIndexType(), same);
    return Value(arith::AddIOp::create(b, count, one));
  });
}

namespace {

// positions becomes lengths[sequences[n]] plus the index in the step.
struct LowerPositions : OpConversionPattern<PositionsOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(PositionsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    CacheBuffers cache(op.getCache().getType(), adaptor.getCache());
    Value sequences = adaptor.getSequences().front();
    rewriter.replaceOp(
        op, tabulate(b, op.getType(), rowCount(b, sequences),
                     [&](Emitter &b, Value n) -> Value {
                       Value sequence = extractIndex(b, sequences, n);
                       Value position = add(b, cache.length(b, sequence),
                                            indexInStep(b, sequences, n));
                       return arith::IndexCastOp::create(b, b.getI64Type(),
                                                         position);
                     }));
    return success();
  }
};

} // namespace

void kvc::reference::populatePositionsPatterns(const TypeConverter &converter,
                                               RewritePatternSet &patterns) {
  patterns.add<LowerPositions>(converter, patterns.getContext());
}
