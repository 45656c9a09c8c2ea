// Positions from the cache's lengths, and appending to it.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

Value CacheBuffers::page(KernelBuilder &b, Value sequence,
                         Value position) const {
  LayoutAttrInterface layout = type.getLayoutInterface();
  int64_t perPage = layout.getPositionsPerPage(type);
  int64_t pagesPerSequence = type.getPagesPerSequence();
  Value entry = b.mul(sequence, pagesPerSequence);
  if (pagesPerSequence != 1)
    entry = b.add(entry, b.divFloor(position, perPage));
  Value offset = b.toIndex(memref::LoadOp::create(b, pages, entry));
  int64_t elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  auto view = MemRefType::get({layout.getPageBytes(type) / elementBytes},
                              type.getElementType());
  return memref::ViewOp::create(b, view, pool, offset, ValueRange{});
}

Value CacheBuffers::place(KernelBuilder &b, Value position) const {
  if (type.getPagesPerSequence() == 1)
    return position;
  return b.rem(position, type.getLayoutInterface().getPositionsPerPage(type));
}

// The tokens of a sequence stand together, so a token's position is its
// predecessor's plus one, or its sequence's length.
void kvc::emitPositions(KernelBuilder &b, const CacheBuffers &cache,
                        Value sequences, Value positions) {
  Value none = arith::ConstantOp::create(b, b.getI32IntegerAttr(-1));
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  Value one = arith::ConstantOp::create(b, b.getI64IntegerAttr(1));
  b.forLoop(b.index(0), b.rowsOf(positions), 1, ValueRange{none, zero},
            [&](Value n, ValueRange previous) -> SmallVector<Value> {
              Value sequence = memref::LoadOp::create(b, sequences, n);
              Value length = memref::LoadOp::create(b, cache.lengths,
                                                    b.toIndex(sequence));
              Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                 sequence, previous[0]);
              Value next = arith::AddIOp::create(b, previous[1], one);
              Value position = arith::SelectOp::create(b, same, next, length);
              memref::StoreOp::create(b, position, positions, n);
              return {sequence, position};
            });
}

void kvc::emitAppend(KernelBuilder &b, const CacheBuffers &cache, Value keys,
                     Value values, Value layer, Value positions,
                     Value sequences) {
  LayoutAttrInterface layout = cache.type.getLayoutInterface();
  int64_t keyWidth = cache.type.getKeyWidth();
  int64_t valueWidth = cache.type.getValueWidth();
  b.parallel(b.rowsOf(keys), [&](Value n) {
    Value position = b.toIndex(memref::LoadOp::create(b, positions, n));
    Value sequence = b.toIndex(memref::LoadOp::create(b, sequences, n));
    Value page = cache.page(b, sequence, position);
    Value place = cache.place(b, position);
    b.forLoop(b.index(0), b.index(cache.type.getKvHeads()), 1, [&](Value head) {
      // A key is a lane of its group of 16.
      b.forLoop(b.index(0), b.index(keyWidth), 1, [&](Value e) {
        Value to = layout.emitKeyIndex(b, b.getLoc(), cache.type, layer, head,
                                       place, e);
        Value from = b.add(b.mul(head, keyWidth), e);
        b.storeScalar(b.loadScalar(keys, {n, from}), page, to);
      });
      b.forEachRun(valueWidth, [&](Value e, int64_t count) {
        Value to = layout.emitValueIndex(b, b.getLoc(), cache.type, layer, head,
                                         place, e);
        Value from = b.add(b.mul(head, valueWidth), e);
        b.storeLanes(b.loadLanes(values, {n, from}, count), page, to, count);
      });
    });
  });
}
