// kvc.positions, from the cache's lengths.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

// The tokens of a sequence stand together, so a token's position is its
// predecessor's plus one, or its sequence's length.
void kvc::emitPositions(KernelBuilder &b, const CacheBuffers &cache,
                        Value sequences, Value positions) {
  Value none = arith::ConstantOp::create(b, b.getI32IntegerAttr(-1));
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  Value one = arith::ConstantOp::create(b, b.getI64IntegerAttr(1));
  b.parallel("task", b.index(1), [&](Value) {
    b.forLoop("n", b.index(0), b.rowsOf(positions), 1, ValueRange{none, zero},
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
  });
}
