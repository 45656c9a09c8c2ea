// Reference lowering of the ops on caches. A cache is its pool, page table and
// lengths, updated in place: kvc-verify-cache-contract proves that nobody reads an
// older value.
#include "compiler/reference/Emit.h"
#include "compiler/reference/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

namespace {

Value add(Emitter &b, Value l, Value r) {
  return arith::AddIOp::create(b, l, r);
}
Value mul(Emitter &b, Value l, int64_t r) {
  return arith::MulIOp::create(b, l, index(b, r));
}
Value div(Emitter &b, Value l, int64_t r) {
  return arith::DivUIOp::create(b, l, index(b, r));
}

// The buffers of a cache.
struct Cache {
  CacheType type;
  Value pool, pages, lengths; // memref<?xi8>, memref<?xi64>, memref<?xi64>

  Cache(CacheType type, ValueRange buffers)
      : type(type), pool(buffers[0]), pages(buffers[1]), lengths(buffers[2]) {}

  LayoutAttrInterface layout() const { return type.getLayoutInterface(); }
  int64_t positionsPerPage() const {
    return layout().getPositionsPerPage(type);
  }

  Value length(Emitter &b, Value sequence) const {
    return toIndex(b, memref::LoadOp::create(b, lengths, sequence));
  }
  void setLength(Emitter &b, Value sequence, Value length) const {
    Value stored = arith::IndexCastOp::create(b, b.getI64Type(), length);
    memref::StoreOp::create(b, stored, lengths, sequence);
  }
  // Where page `page` of `sequence` starts in the pool, in bytes.
  Value pageOffset(Emitter &b, Value sequence, Value page) const {
    Value entry = add(b, mul(b, sequence, type.getPagesPerSequence()), page);
    return toIndex(b, memref::LoadOp::create(b, pages, entry));
  }
  // The page as bytes.
  Value pageBytes(Emitter &b, Value from, Value sequence, Value page) const {
    auto bytes = MemRefType::get(layout().getPageBytes(type), b.getI8Type());
    return memref::ViewOp::create(b, bytes, from, pageOffset(b, sequence, page),
                                  ValueRange());
  }
  // The page of `position` as elements of the cache.
  Value pageOf(Emitter &b, Value sequence, Value position) const {
    Type element = type.getElementType();
    int64_t size = element.getIntOrFloatBitWidth() / 8;
    auto elements =
        MemRefType::get(layout().getPageBytes(type) / size, element);
    Value page = div(b, position, positionsPerPage());
    return memref::ViewOp::create(b, elements, pool,
                                  pageOffset(b, sequence, page), ValueRange());
  }
  Value placeOf(Emitter &b, Value position) const {
    return arith::RemUIOp::create(b, position, index(b, positionsPerPage()));
  }
  // pages of a sequence of `length` positions
  Value pageCount(Emitter &b, Value length) const {
    return arith::CeilDivUIOp::create(b, length, index(b, positionsPerPage()));
  }
};

// Makes sequence `to` what `from` is in the buffers `old`.
void copySequence(Emitter &b, const Cache &old, Value from, const Cache &cache,
                  Value to) {
  Value length = old.length(b, from);
  repeat(b, cache.pageCount(b, length), [&](Emitter &b, Value page) {
    memref::CopyOp::create(b, old.pageBytes(b, old.pool, from, page),
                           cache.pageBytes(b, cache.pool, to, page));
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

template <typename Op> struct CachePattern : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  using Adaptor = typename OpConversionPattern<Op>::OneToNOpAdaptor;

  virtual void update(Op op, Adaptor adaptor, const Cache &cache,
                      Emitter &b) const = 0;

  // An update happens in place, and gives the same buffers.
  LogicalResult
  matchAndRewrite(Op op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    update(op, adaptor, Cache(op.getCache().getType(), adaptor.getCache()), b);
    rewriter.replaceOpWithMultiple(op, {adaptor.getCache()});
    return success();
  }
};

// append becomes a store of each element at its sequence and position.
struct LowerAppend : CachePattern<AppendOp> {
  using CachePattern::CachePattern;
  void update(AppendOp op, Adaptor adaptor, const Cache &cache,
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
      Value place = cache.placeOf(b, position);
      repeat(b, index(b, type.getKvHeads()), [&](Emitter &b, Value head) {
        auto store = [&](Value rows, int64_t width, Emit emitIndex) {
          repeat(b, index(b, width), [&](Emitter &b, Value e) {
            Value x = tensor::ExtractOp::create(
                b, rows, ValueRange{n, add(b, mul(b, head, width), e)});
            Value at = (type.getLayoutInterface().*
                        emitIndex)(b, b.getLoc(), type, layer, head, place, e);
            memref::StoreOp::create(b, toFloat(b, x, type.getElementType()),
                                    page, at);
          });
        };
        store(keys, type.getKeyWidth(), &LayoutAttrInterface::emitKeyIndex);
        store(values, type.getValueWidth(),
              &LayoutAttrInterface::emitValueIndex);
      });
    });
  }
};

// advance becomes lengths[sequences[n]] += 1 for each n.
struct LowerAdvance : CachePattern<AdvanceOp> {
  using CachePattern::CachePattern;
  void update(AdvanceOp op, Adaptor adaptor, const Cache &cache,
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
  void update(TruncateOp op, Adaptor adaptor, const Cache &cache,
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
  void update(ForkOp op, Adaptor adaptor, const Cache &cache,
              Emitter &b) const override {
    copySequence(b, cache, adaptor.getFrom().front(), cache,
                 adaptor.getTo().front());
  }
};

// reorder becomes a copy of each sequence from a copy of the whole cache.
struct LowerReorder : CachePattern<ReorderOp> {
  using CachePattern::CachePattern;
  void update(ReorderOp op, Adaptor adaptor, const Cache &cache,
              Emitter &b) const override {
    Value order = adaptor.getOrder().front();
    Cache old(cache.type,
              {copyOf(b, cache.pool), cache.pages, copyOf(b, cache.lengths)});
    repeat(b, rowCount(b, order), [&](Emitter &b, Value to) {
      copySequence(b, old, extractIndex(b, order, to), cache, to);
    });
  }
};

// positions becomes lengths[sequences[n]] plus the place in the step.
struct LowerPositions : OpConversionPattern<PositionsOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(PositionsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Cache cache(op.getCache().getType(), adaptor.getCache());
    Value sequences = adaptor.getSequences().front();
    rewriter.replaceOp(
        op, tabulate(b, op.getType(), rowCount(b, sequences),
                     [&](Emitter &b, Value n) -> Value {
                       Value sequence = extractIndex(b, sequences, n);
                       Value position = add(b, cache.length(b, sequence),
                                            placeInStep(b, sequences, n));
                       return arith::IndexCastOp::create(b, b.getI64Type(),
                                                         position);
                     }));
    return success();
  }
};

// attend becomes, for each token and query head, the softmax of its scores over
// the positions up to the token's own, and the sum of values under it. Later
// positions are never read.
struct LowerAttend : OpConversionPattern<AttendOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(AttendOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    Cache cache(op.getCache().getType(), adaptor.getCache());
    CacheType type = cache.type;
    LayoutAttrInterface layout = cache.layout();
    Value queries = adaptor.getQueries().front();
    Value positions = adaptor.getPositions().front();
    Value sequences = adaptor.getSequences().front();
    Value layer = adaptor.getLayer().front();
    Type element = op.getType().getElementType();
    auto perPosition = RankedTensorType::get({ShapedType::kDynamic}, element);
    int64_t width = type.getKeyWidth();
    int64_t heads = op.getType().getDimSize(1) / width;
    int64_t group = heads / type.getKvHeads();
    Value zero = number(b, element, 0);
    Value lowest = number(b, element, -std::numeric_limits<double>::infinity());
    Value scale = number(b, element, op.getScale().convertToDouble());

    // The attention of query head h of token n, inserted into `rows`.
    auto attendHead = [&](Emitter &b, Value n, Value h, Value rows) {
      Value sequence = extractIndex(b, sequences, n);
      Value count = arith::MaxSIOp::create(
          b, add(b, extractIndex(b, positions, n), index(b, 1)), index(b, 0));
      Value head = div(b, h, group);
      auto load = [&](Emitter &b, Value position, auto emitIndex) {
        Value page = cache.pageOf(b, sequence, position);
        Value at = emitIndex(cache.placeOf(b, position));
        return toFloat(b, memref::LoadOp::create(b, page, at), element);
      };
      Value scores =
          tabulate(b, perPosition, count, [&](Emitter &b, Value p) -> Value {
            Value dot = accumulate(
                b, index(b, width), zero,
                [&](Emitter &b, Value e, Value sum) -> Value {
                  Value query = tensor::ExtractOp::create(
                      b, queries, ValueRange{n, add(b, mul(b, h, width), e)});
                  Value key = load(b, p, [&](Value place) {
                    return layout.emitKeyIndex(b, b.getLoc(), type, layer, head,
                                               place, e);
                  });
                  return math::FmaOp::create(b, query, key, sum);
                });
            return arith::MulFOp::create(b, dot, scale);
          });
      Value highest = accumulate(
          b, count, lowest, [&](Emitter &b, Value p, Value state) -> Value {
            Value score = tensor::ExtractOp::create(b, scores, p);
            return arith::MaximumFOp::create(b, state, score);
          });
      Value weights =
          tabulate(b, perPosition, count, [&](Emitter &b, Value p) -> Value {
            Value score = tensor::ExtractOp::create(b, scores, p);
            return math::ExpOp::create(
                b, arith::SubFOp::create(b, score, highest));
          });
      Value total = accumulate(
          b, count, zero, [&](Emitter &b, Value p, Value sum) -> Value {
            Value weight = tensor::ExtractOp::create(b, weights, p);
            return arith::AddFOp::create(b, sum, weight);
          });
      // The highest score's weight is 1: a total of 0 has no key.
      Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total,
                                         zero);
      total = arith::SelectOp::create(b, none, number(b, element, 1), total);
      return accumulate(
          b, index(b, width), rows,
          [&](Emitter &b, Value e, Value rows) -> Value {
            Value sum = accumulate(
                b, count, zero, [&](Emitter &b, Value p, Value sum) -> Value {
                  Value weight = tensor::ExtractOp::create(b, weights, p);
                  Value value = load(b, p, [&](Value place) {
                    return layout.emitValueIndex(b, b.getLoc(), type, layer,
                                                 head, place, e);
                  });
                  return math::FmaOp::create(b, weight, value, sum);
                });
            Value mean = arith::DivFOp::create(b, sum, total);
            return tensor::InsertOp::create(
                b, mean, rows, ValueRange{n, add(b, mul(b, h, width), e)});
          });
    };
    Value count = rowCount(b, queries);
    Value result =
        accumulate(b, count, emptyRows(b, op.getType(), count),
                   [&](Emitter &b, Value n, Value rows) {
                     return accumulate(b, index(b, heads), rows,
                                       [&](Emitter &b, Value h, Value rows) {
                                         return attendHead(b, n, h, rows);
                                       });
                   });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void kvc::reference::populateCachePatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<LowerPositions, LowerAppend, LowerAttend, LowerAdvance,
               LowerTruncate, LowerFork, LowerReorder>(converter,
                                                       patterns.getContext());
}
