// Reference lowering of the ops that change which positions a sequence has:
// advance, truncate, fork and reorder.
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

// Makes sequence `to` what `from` is in the buffers `old`.
void copySequence(Emitter &b, const CacheBuffers &old, Value from,
                  const CacheBuffers &cache, Value to) {
  Value length = old.length(b, from);
  for (size_t group = 0; group != cache.type.getGroups().size(); ++group)
    repeat(b, cache.pageCount(b, group, length), [&](Emitter &b, Value page) {
      memref::CopyOp::create(b, old.page(b, group, from, page),
                             cache.page(b, group, to, page));
    });
  cache.setLength(b, to, length);
}

// A copy of a buffer of one axis; the deallocation pipeline frees it.
Value copyOf(Emitter &b, Value buffer) {
  Value size = memref::DimOp::create(b, buffer, 0);
  Value copy = memref::AllocOp::create(b, cast<MemRefType>(buffer.getType()),
                                       ValueRange{size});
  memref::CopyOp::create(b, buffer, copy);
  return copy;
}

// advance becomes lengths[sequences[n]] += 1 for each n.
struct LowerAdvance : CachePattern<AdvanceOp> {
  using CachePattern::CachePattern;
  void update(AdvanceOp op, Adaptor adaptor, const CacheBuffers &cache,
              Emitter &b) const override {
    Value sequences = adaptor.getSequences().front();
    repeat(b, rowCount(b, sequences), [&](Emitter &b, Value n) {
      Value sequence = extractIndex(b, sequences, n);
      cache.setLength(b, sequence,
                      add(b, cache.length(b, sequence), index(b, 1)));
    });
  }
};

// truncate becomes lengths[sequence] = min(lengths[sequence], length).
struct LowerTruncate : CachePattern<TruncateOp> {
  using CachePattern::CachePattern;
  void update(TruncateOp op, Adaptor adaptor, const CacheBuffers &cache,
              Emitter &b) const override {
    Value sequence = adaptor.getSequence().front();
    Value length = arith::MinUIOp::create(b, cache.length(b, sequence),
                                          adaptor.getLength().front());
    cache.setLength(b, sequence, length);
  }
};

// fork becomes a copy of the pages in use.
struct LowerFork : CachePattern<ForkOp> {
  using CachePattern::CachePattern;
  void update(ForkOp op, Adaptor adaptor, const CacheBuffers &cache,
              Emitter &b) const override {
    copySequence(b, cache, adaptor.getFrom().front(), cache,
                 adaptor.getTo().front());
  }
};

// reorder becomes a copy of each sequence from a copy of the whole cache.
struct LowerReorder : CachePattern<ReorderOp> {
  using CachePattern::CachePattern;
  void update(ReorderOp op, Adaptor adaptor, const CacheBuffers &cache,
              Emitter &b) const override {
    Value order = adaptor.getOrder().front();
    CacheBuffers old(cache.type, {copyOf(b, cache.pool), cache.pages,
                                  copyOf(b, cache.lengths)});
    repeat(b, rowCount(b, order), [&](Emitter &b, Value to) {
      copySequence(b, old, extractIndex(b, order, to), cache, to);
    });
  }
};

} // namespace

void kvc::reference::populateLengthsPatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns) {
  patterns.add<LowerAdvance, LowerTruncate, LowerFork, LowerReorder>(
      converter, patterns.getContext());
}
