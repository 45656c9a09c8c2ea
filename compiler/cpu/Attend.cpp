// kvc.attend: attention over the cache, by online softmax over tiles of keys.
//
// A tile is 64 positions aligned to absolute position, in 4 groups of 16 whose
// keys stand in the lanes: scores are a product with one key a lane. The
// weighted sum of values has one element of the value a lane and walks the
// positions in order. What a token gets depends on its own position and on the
// cached numbers alone, so neither chunks nor batches change a bit. Cells
// behind the token's position take no part, whatever they hold.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

namespace {
constexpr int64_t kTile = 64;
constexpr int64_t kGroups = kTile / kLanes;

// The attention of one query head of one token.
struct HeadKernel {
  KernelBuilder &b;
  const CacheBuffers &cache;
  LayoutAttrInterface layout;
  Value queries, output;           // [N, heads * width]
  Value token, column;             // where the head's query and result stand
  Value layer, kvHead, sequence, position;
  Value first;                     // it sees [first, position], or nothing
  double scale;
  bool window;
  Value weights;                   // scratch: [64] of softmax weights
  Value sums;                      // scratch: the weighted sum, padded

  void emit();

private:
  int64_t width() const { return cache.type.getKeyWidth(); }
  Value groupOf(Value at) { return b.mul(b.divFloor(at, kLanes), kLanes); }
  SmallVector<Value> scores(Value tile);
  void accumulate(Value tile, Value correction);
};
} // namespace

// The scaled scores of the tile's 4 groups, -inf where a key isn't seen.
SmallVector<Value> HeadKernel::scores(Value tile) {
  Value lastGroup = groupOf(position);
  SmallVector<Value> pages, inPages, state;
  for (int64_t g = 0; g != kGroups; ++g) {
    // A group that lies wholly behind the position is not read: it may lie
    // outside the sequence's pages.
    Value first = b.min(b.add(tile, g * kLanes), lastGroup);
    pages.push_back(cache.page(b, sequence, first));
    inPages.push_back(cache.inPage(b, first));
    state.push_back(b.splat(0.0));
  }
  state = b.forLoop(
      "e", b.index(0), b.index(width()), 1, state, [&](Value e, ValueRange sums) {
        Value q = b.splat(b.loadScalar(queries, {token, b.add(column, e)}));
        SmallVector<Value> next;
        for (int64_t g = 0; g != kGroups; ++g) {
          Value at = layout.emitKeyIndex(b, b.getLoc(), cache.type, layer,
                                         kvHead, inPages[g], e);
          next.push_back(b.fma(q, b.loadLanes(pages[g], at), sums[g]));
        }
        return next;
      });

  auto indices = VectorType::get({kLanes}, b.getIndexType());
  Value lane = vector::StepOp::create(b, indices);
  for (int64_t g = 0; g != kGroups; ++g) {
    Value scaled = arith::MulFOp::create(b, state[g], b.splat(scale));
    Value visible = b.sub(b.add(position, 1), tile); // >= 1
    Value inTile = arith::AddIOp::create(
        b, lane, vector::BroadcastOp::create(b, indices, b.index(g * kLanes)));
    Value seen = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ult, inTile,
        vector::BroadcastOp::create(b, indices, visible));
    if (window) {
      Value from = vector::BroadcastOp::create(b, indices, b.sub(first, tile));
      seen = arith::AndIOp::create(
          b, seen,
          arith::CmpIOp::create(b, arith::CmpIPredicate::sge, inTile, from));
    }
    state[g] = arith::SelectOp::create(
        b, seen, scaled, b.splat(-std::numeric_limits<double>::infinity()));
  }
  return state;
}

// sums = sums * correction + sum over the tile's visible positions of
// weight * value.
void HeadKernel::accumulate(Value tile, Value correction) {
  SmallVector<std::pair<int64_t, int64_t>> runs; // offset, count
  for (int64_t offset = 0; offset < width(); offset += kLanes)
    runs.push_back({offset, std::min(kLanes, width() - offset)});
  SmallVector<Value> state;
  for (auto [offset, count] : runs)
    state.push_back(arith::MulFOp::create(
        b, b.loadLanes(sums, b.index(offset)), b.splat(correction)));

  Value end = b.min(b.add(position, 1), b.add(tile, kTile));
  Value start = window ? arith::MaxUIOp::create(b, tile, groupOf(first)) : tile;
  state = b.forLoop("group", start, end, kLanes, state, [&](Value group, ValueRange outer) {
    Value page = cache.page(b, sequence, group);
    Value inPage = cache.inPage(b, group);
    Value count = b.min(b.sub(end, group), kLanes);
    Value from = b.index(0);
    if (window)
      from = arith::MaxSIOp::create(b, b.sub(first, group), from);
    return b.forLoop(
        "i", from, count, 1, outer, [&](Value i, ValueRange inner) {
          Value at =
              layout.emitValueIndex(b, b.getLoc(), cache.type, layer, kvHead,
                                    b.add(inPage, i), b.index(0));
          Value weight = b.splat(
              b.loadScalar(weights, b.add(b.sub(group, tile), i)));
          SmallVector<Value> next;
          for (auto [run, sum] : llvm::zip_equal(runs, inner))
            next.push_back(b.fma(
                weight, b.loadLanes(page, b.add(at, run.first), run.second),
                sum));
          return next;
        });
  });
  for (auto [run, sum] : llvm::zip_equal(runs, state))
    b.storeLanes(sum, sums, b.index(run.first));
}

void HeadKernel::emit() {
  for (int64_t offset = 0; offset < width(); offset += kLanes)
    b.storeLanes(b.splat(0.0), sums, b.index(offset));
  Value lowest = b.number(-std::numeric_limits<double>::infinity());
  auto plus = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, x, y);
  };
  // state: the largest score so far, and the sum of weights, lane by lane
  SmallVector<Value> last = b.forLoop(
      "tile", b.mul(b.divFloor(first, kTile), kTile), b.add(position, 1), kTile, {lowest, b.splat(0.0)},
      [&](Value tile, ValueRange state) -> SmallVector<Value> {
        SmallVector<Value> s = scores(tile);
        Value largest =
            b.max(state[0], b.reduceMax(b.max(b.max(s[0], s[1]),
                                              b.max(s[2], s[3]))));
        // Where every score so far is -inf, they weigh nothing: exp(-inf - 0).
        Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest,
                                           lowest);
        Value shift =
            arith::SelectOp::create(b, none, b.number(0.0), largest);
        Value correction = math::ExpOp::create(
            b, arith::SubFOp::create(b, state[0], shift));
        for (int64_t g = 0; g != kGroups; ++g) {
          s[g] = math::ExpOp::create(
              b, arith::SubFOp::create(b, s[g], b.splat(shift)));
          b.storeLanes(s[g], weights, b.index(g * kLanes));
        }
        accumulate(tile, correction);
        Value sum = plus(plus(s[0], s[1]), plus(s[2], s[3]));
        return {largest, b.fma(state[1], b.splat(correction), sum)};
      });
  // A query before position 0 sees no key, and gives zeros; one whose scores are all
  // -inf has no softmax: 0 / 0.
  Value sum = b.reduceAdd(last[1]);
  Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position,
                                     b.index(0));
  Value total =
      b.splat(arith::SelectOp::create(b, none, b.number(1.0), sum));
  b.forEachRun(width(), [&](Value e, int64_t count) {
    Value mean = arith::DivFOp::create(b, b.loadLanes(sums, e), total);
    b.storeLanes(mean, output, {token, b.add(column, e)}, count);
  });
}

void kvc::emitAttend(KernelBuilder &b, const CacheBuffers &cache, Value queries,
                     Value layer, Value positions, Value sequences,
                     double scale, std::optional<int64_t> window, Value output) {
  int64_t width = cache.type.getKeyWidth(), kvHeads = cache.type.getKvHeads();
  int64_t group = b.widthOf(queries) / width / kvHeads;
  // A task is a KV head of a token: its query heads share keys and values.
  b.parallel("task", b.mul(b.rowsOf(queries), kvHeads), [&](Value task) {
    Value token = b.named("token", b.divFloor(task, kvHeads));
    Value kvHead = b.named("kv_head", b.rem(task, kvHeads));
    Value position =
        b.named("position", b.toIndex(memref::LoadOp::create(b, positions, token)));
    Value first = b.index(0);
    if (window)
      first = b.named("first", arith::MaxSIOp::create(b, b.sub(b.add(position, 1), b.index(*window)), first));
    Value sequence =
        b.named("sequence", b.toIndex(memref::LoadOp::create(b, sequences, token)));
    Value weights = b.named("weights", b.scratch(kTile));
    Value sums = b.named("sums", b.scratch(llvm::alignTo(width, kLanes)));
    b.forLoop("member", b.index(0), b.index(group), 1, [&](Value member) {
      Value head = b.named("head", b.add(b.mul(kvHead, group), member));
      HeadKernel{b,      cache,    cache.type.getLayoutInterface(),
                 queries, output,  token,
                 b.mul(head, width), layer, kvHead,
                 sequence, position, first, scale, window.has_value(),
                 weights, sums}
          .emit();
    });
  });
}
