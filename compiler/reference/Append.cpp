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
    CacheType type = cache.type;
    using Emit = Value (LayoutAttrInterface::*)(
        OpBuilder &, Location, CacheType, Value, Value, Value, Value) const;
    repeat(b, rowCount(b, keys), [&](Emitter &b, Value n) {
      Value position = extractIndex(b, positions, n);
      Value page = cache.pageOf(b, extractIndex(b, sequences, n), position);
      Value inPage = cache.inPage(b, position);
      repeat(b, index(b, type.getKvHeads()), [&](Emitter &b, Value head) {
        auto store = [&](Value rows, int64_t width, Emit emitIndex) {
          repeat(b, index(b, width), [&](Emitter &b, Value e) {
            Value x = tensor::ExtractOp::create(
                b, rows, ValueRange{n, add(b, mul(b, head, width), e)});
            Value at = (type.getLayoutInterface().*
                        emitIndex)(b, b.getLoc(), type, layer, head, inPage, e);
            memref::StoreOp::create(
                b, toFloat(b, oneNaN(b, x), type.getElementType()), page, at);
          });
        };
        store(keys, type.getKeyWidth(), &LayoutAttrInterface::emitKeyIndex);
        store(values, type.getValueWidth(),
              &LayoutAttrInterface::emitValueIndex);
      });
    });
  }
};

} // namespace

void kvc::reference::populateAppendPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerAppend>(converter, patterns.getContext());
}
