// Reference lowering of kvc.append.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// append becomes a store of each element at its sequence and position.
struct LowerAppend : CachePattern<AppendOp> {
  using CachePattern::CachePattern;
  void update(AppendOp op, Adaptor adaptor, const CacheBuffers &cache,
              Emitter &b) const override {
    Value keys = adaptor.getKeys().front(),
          values = adaptor.getValues().front();
    Value positions = adaptor.getPositions().front();
    Value sequences = adaptor.getSequences().front();
    Value layer = adaptor.getLayer().front();
    const Group &group = op.getCacheGroup();
    repeat(b, rowCount(b, keys), [&](Emitter &b, Value n) {
      Value position = extractIndex(b, positions, n);
      Value sequence = extractIndex(b, sequences, n);
      repeat(b, index(b, group.kvHeads), [&](Emitter &b, Value head) {
        CacheCell cell =
            cache.cell(b, op.getGroup(), layer, head, sequence, position);
        auto of = [&](Value rows, int64_t width) {
          return [&, rows, width](Value e, int64_t) -> Value {
            Value x = tensor::ExtractOp::create(
                b, rows, ValueRange{n, add(b, mul(b, head, width), e)});
            return toFloat(b, oneNaN(b, x), group.elementType);
          };
        };
        LayoutAttrInterface layout = group.getLayout();
        layout.emitStoreKey(b, b.getLoc(), group, cell, of(keys, group.keyWidth));
        layout.emitStoreValue(b, b.getLoc(), group, cell,
                              of(values, group.valueWidth), 1);
      });
    });
  }
};

} // namespace

void kvc::reference::populateAppendPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerAppend>(converter, patterns.getContext());
}
