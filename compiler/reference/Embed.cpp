// Reference lowering of kvc.embed.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// embed becomes result[n, i] = table[ids[n], i].
struct LowerEmbed : OpConversionPattern<EmbedOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(EmbedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getTableAttr());
    WeightView table(b, op, weight, Value());
    Type type = op.getType().getElementType();
    Value count = rowCount(b, adaptor.getIds());
    rewriter.replaceOp(
        op, generate(b, op.getType(), count, [&](Emitter &b, Value n, Value i) {
          Value id = extractIndex(b, adaptor.getIds(), n);
          return toFloat(b, table.number(b, id, i), type);
        }));
    return success();
  }
};

} // namespace

void kvc::reference::populateEmbedPatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<LowerEmbed>(converter, patterns.getContext());
}
