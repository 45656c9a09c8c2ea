// kvc.append: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

void kvc::emitAppend(KernelBuilder &b, const GroupBuffers &cache, Value keys,
                     Value values, Value layer, Value positions,
                     Value sequences) {
  const Group &group = cache.group;
  b.forEachRow(b.rowsOf(keys), [&](Value n) {
    Value position =
        b.named("position", b.toIndex(memref::LoadOp::create(b, positions, n)));
    Value sequence =
        b.named("sequence", b.toIndex(memref::LoadOp::create(b, sequences, n)));
    CacheCell cell = cache.cell(b, sequence, position, Value());
    b.forLoop("head", b.index(0), b.index(group.kvHeads), 1, [&](Value head) {
      cell.row = cache.row(b, layer, head);
      // Of a head's numbers in `rows`, which are stored as one NaN where they are one.
      auto of = [&](Value rows, int64_t width) {
        return [&, rows, width](Value e, int64_t count) -> Value {
          SmallVector<Value> from{n, b.add(b.mul(head, width), e)};
          Value x = count == 1 ? b.loadScalar(rows, from)
                               : Value(vector::LoadOp::create(
                                     b, VectorType::get({count}, b.arithmetic), rows,
                                     from));
          return b.oneNaN(x, b.convert(x, group.elementType));
        };
      };
      cache.layout.emitStoreKey(b, b.getLoc(), group, cell,
                                of(keys, group.keyWidth));
      cache.layout.emitStoreValue(b, b.getLoc(), group, cell,
                                  of(values, group.valueWidth), kLanes);
    });
  });
}
