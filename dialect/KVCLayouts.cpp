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

int64_t pageElements(CacheType cache, int64_t positions, int64_t width) {
  return cache.getLayers() * cache.getKvHeads() * positions * width;
}
} // namespace

int64_t ContiguousAttr::getPositionsPerPage(CacheType cache) const {
  return llvm::alignTo(cache.getCapacity(), kLanes);
}

int64_t ContiguousAttr::getPageBytes(CacheType cache) const {
  return getPositionsPerPage(cache) * cache.getBytesPerPosition();
}

int64_t ContiguousAttr::getPagePadding(CacheType cache) const {
  return (getPositionsPerPage(cache) - cache.getCapacity()) *
         cache.getBytesPerPosition();
}

// keys: [layers, kv_heads, positions/16, key, 16]
Value ContiguousAttr::emitKeyIndex(OpBuilder &builder, Location loc,
                                   CacheType cache, Value layer, Value head,
                                   Value place, Value element) const {
  IndexBuilder b{builder, loc};
  int64_t positions = getPositionsPerPage(cache);
  Value row = b.add(b.mul(layer, cache.getKvHeads()), head);
  Value group = b.add(b.mul(row, positions / kLanes), b.div(place, kLanes));
  Value index = b.add(b.mul(group, cache.getKeyWidth()), element);
  return b.add(b.mul(index, kLanes), b.rem(place, kLanes));
}

// values: [layers, kv_heads, positions, value], behind the keys
Value ContiguousAttr::emitValueIndex(OpBuilder &builder, Location loc,
                                     CacheType cache, Value layer, Value head,
                                     Value place, Value element) const {
  IndexBuilder b{builder, loc};
  int64_t positions = getPositionsPerPage(cache);
  Value row = b.add(b.mul(layer, cache.getKvHeads()), head);
  Value index = b.add(b.mul(row, positions), place);
  index = b.add(b.mul(index, cache.getValueWidth()), element);
  return b.add(index,
               b.constant(pageElements(cache, positions, cache.getKeyWidth())));
}

bool ContiguousAttr::isExact() const { return true; }
