// Where a position of a sequence stands in the buffers of a cache.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

Value GroupBuffers::row(KernelBuilder &b, Value layer, Value head) const {
  return b.add(b.mul(layer, group.kvHeads), head);
}

CacheCell GroupBuffers::cell(KernelBuilder &b, Value sequence, Value position,
                             Value row) const {
  int64_t positions = group.getPositionsPerPage();
  int64_t pages = group.getPagesPerSequence();
  Value entry = b.mul(sequence, cache.type.getPagesPerSequence());
  if (firstPage != 0)
    entry = b.add(entry, firstPage);
  if (pages != 1) {
    Value index = b.divFloor(position, positions);
    entry = b.add(entry, group.wraps() ? b.rem(index, pages) : index);
  }
  Value offset = b.toIndex(memref::LoadOp::create(b, cache.pages, entry));
  auto bytes = MemRefType::get(group.getPageBytes(), b.getI8Type());
  Value page = b.named(
      "page", memref::ViewOp::create(b, bytes, cache.pool, offset, ValueRange{}));
  bool isWhole = pages == 1 && !group.wraps();
  return {page, row, isWhole ? position : b.rem(position, positions)};
}
