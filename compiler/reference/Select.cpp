// Reference lowering of kvc.select.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// select becomes result[m, i] = input[rows[m], i].
struct LowerSelect : OpConversionPattern<SelectOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(SelectOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Value count = rowCount(b, adaptor.getRows());
    rewriter.replaceOp(
        op, generate(b, op.getType(), count, [&](Emitter &b, Value m, Value i) {
          Value row = extractIndex(b, adaptor.getRows(), m);
          return Value(tensor::ExtractOp::create(b, adaptor.getInput(),
                                                 ValueRange{row, i}));
        }));
    return success();
  }
};

} // namespace

void kvc::reference::populateSelectPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerSelect>(converter, patterns.getContext());
}
