// kvc.append: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

void kvc::emitAppend(KernelBuilder &b, const CacheBuffers &cache, Value keys,
                     Value values, Value layer, Value positions,
                     Value sequences) {
  LayoutAttrInterface layout = cache.type.getLayoutInterface();
  int64_t keyWidth = cache.type.getKeyWidth();
  int64_t valueWidth = cache.type.getValueWidth();
  b.parallel("n", b.rowsOf(keys), [&](Value n) {
    Value position =
        b.named("position", b.toIndex(memref::LoadOp::create(b, positions, n)));
    Value sequence =
        b.named("sequence", b.toIndex(memref::LoadOp::create(b, sequences, n)));
    Value page = cache.page(b, sequence, position);
    Value inPage = cache.inPage(b, position);
    b.forLoop("head", b.index(0), b.index(cache.type.getKvHeads()), 1, [&](Value head) {
      // A key is a lane of its group of 16.
      b.forLoop("e", b.index(0), b.index(keyWidth), 1, [&](Value e) {
        Value to = layout.emitKeyIndex(b, b.getLoc(), cache.type, layer, head,
                                       inPage, e);
        Value from = b.add(b.mul(head, keyWidth), e);
        b.storeScalar(b.oneNaN(b.loadScalar(keys, {n, from})), page, to);
      });
      b.forEachRun(valueWidth, [&](Value e, int64_t count) {
        Value to = layout.emitValueIndex(b, b.getLoc(), cache.type, layer, head,
                                         inPage, e);
        Value from = b.add(b.mul(head, valueWidth), e);
        b.storeLanes(b.oneNaN(b.loadLanes(values, {n, from}, count)), page, to,
                     count);
      });
    });
  });
}
