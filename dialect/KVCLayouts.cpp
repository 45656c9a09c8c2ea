// Layouts of a cache in memory: see LayoutAttrInterface.
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace kvc;

#include "dialect/KVCInterfaces.cpp.inc"

namespace {
// Index arithmetic on values and constants.
struct IndexBuilder {
  OpBuilder &builder;
  Location loc;
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value mul(Value a, int64_t b) {
    return arith::MulIOp::create(builder, loc, a, constant(b));
  }
  Value add(Value a, Value b) {
    return arith::AddIOp::create(builder, loc, a, b);
  }
  Value div(Value a, int64_t b) {
    return arith::DivUIOp::create(builder, loc, a, constant(b));
  }
  Value rem(Value a, int64_t b) {
    return arith::RemUIOp::create(builder, loc, a, constant(b));
  }
};

// A page of `positions` positions, a multiple of kLanes:
//   keys:   [layers, kv_heads, positions/16, key, 16]
//   values: [layers, kv_heads, positions, value], behind the keys
struct Page {
  CacheType cache;
  int64_t positions;

  int64_t bytes() const { return positions * cache.getBytesPerPosition(); }

  Value keyIndex(IndexBuilder b, Value layer, Value head, Value inPage,
                 Value element) const {
    Value row = b.add(b.mul(layer, cache.getKvHeads()), head);
    Value group = b.add(b.mul(row, positions / kLanes), b.div(inPage, kLanes));
    Value index = b.add(b.mul(group, cache.getKeyWidth()), element);
    return b.add(b.mul(index, kLanes), b.rem(inPage, kLanes));
  }
  Value valueIndex(IndexBuilder b, Value layer, Value head, Value inPage,
                   Value element) const {
    Value row = b.add(b.mul(layer, cache.getKvHeads()), head);
    Value index = b.add(b.mul(row, positions), inPage);
    index = b.add(b.mul(index, cache.getValueWidth()), element);
    int64_t keys = cache.getLayers() * cache.getKvHeads() * positions *
                   cache.getKeyWidth();
    return b.add(index, b.constant(keys));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// contiguous: one page, of the capacity rounded up to whole groups of lanes
//===----------------------------------------------------------------------===//

int64_t ContiguousAttr::getPositionsPerPage(int64_t capacity) const {
  return llvm::alignTo(capacity, kLanes);
}

int64_t ContiguousAttr::getPageBytes(CacheType cache) const {
  return Page{cache, cache.getPositionsPerPage()}.bytes();
}

int64_t ContiguousAttr::getPagePadding(CacheType cache) const {
  return (cache.getPositionsPerPage() - cache.getCapacity()) *
         cache.getBytesPerPosition();
}

Value ContiguousAttr::emitKeyIndex(OpBuilder &builder, Location loc,
                                   CacheType cache, Value layer, Value head,
                                   Value inPage, Value element) const {
  return Page{cache, cache.getPositionsPerPage()}.keyIndex(
      {builder, loc}, layer, head, inPage, element);
}

Value ContiguousAttr::emitValueIndex(OpBuilder &builder, Location loc,
                                     CacheType cache, Value layer, Value head,
                                     Value inPage, Value element) const {
  return Page{cache, cache.getPositionsPerPage()}.valueIndex(
      {builder, loc}, layer, head, inPage, element);
}

bool ContiguousAttr::isExact() const { return true; }

//===----------------------------------------------------------------------===//
// paged
//===----------------------------------------------------------------------===//

LogicalResult PagedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t positions) {
  // C1: whole groups of lanes.
  if (positions <= 0 || positions % kLanes != 0)
    return emitError() << "expected a page to have a positive multiple of "
                       << kLanes << " positions, but got " << positions;
  return success();
}

int64_t PagedAttr::getPositionsPerPage(int64_t) const {
  return getPositions();
}

int64_t PagedAttr::getPageBytes(CacheType cache) const {
  return Page{cache, getPositions()}.bytes();
}

// All of a page can hold positions; what the last page of a sequence
// doesn't use is slack of that sequence.
int64_t PagedAttr::getPagePadding(CacheType) const { return 0; }

Value PagedAttr::emitKeyIndex(OpBuilder &builder, Location loc, CacheType cache,
                              Value layer, Value head, Value inPage,
                              Value element) const {
  return Page{cache, getPositions()}.keyIndex({builder, loc}, layer, head, inPage,
                                              element);
}

Value PagedAttr::emitValueIndex(OpBuilder &builder, Location loc,
                                CacheType cache, Value layer, Value head,
                                Value inPage, Value element) const {
  return Page{cache, getPositions()}.valueIndex({builder, loc}, layer, head,
                                                inPage, element);
}

bool PagedAttr::isExact() const { return true; }
