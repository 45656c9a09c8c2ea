// Where a position of a sequence stands in the buffers of a cache.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

Value CacheBuffers::page(KernelBuilder &b, Value sequence,
                         Value position) const {
  LayoutAttrInterface layout = type.getLayoutInterface();
  int64_t perPage = type.getPositionsPerPage();
  int64_t pagesPerSequence = type.getPagesPerSequence();
  Value entry = b.mul(sequence, pagesPerSequence);
  if (pagesPerSequence != 1)
    entry = b.add(entry, b.divFloor(position, perPage));
  Value offset = b.toIndex(memref::LoadOp::create(b, pages, entry));
  int64_t elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  auto view = MemRefType::get({layout.getPageBytes(type) / elementBytes},
                              type.getElementType());
  return b.named("page",
                 memref::ViewOp::create(b, view, pool, offset, ValueRange{}));
}

Value CacheBuffers::inPage(KernelBuilder &b, Value position) const {
  if (type.getPagesPerSequence() == 1)
    return position;
  return b.rem(position, type.getPositionsPerPage());
}
