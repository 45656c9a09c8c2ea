// kvc.attend: attention over the cache, by online softmax over tiles of keys.
//
// A tile is 64 positions aligned to absolute position, in 4 groups of 16 whose
// keys stand in the lanes: scores are a product with one key a lane, and the
// weighted sum of values has one element of the value a lane. A row is a query
// head of a token; the rows of a task are those of a run of one sequence's tokens
// that share a KV head, so a tile is read once for all of them. Softmax is in base
// 2, with log2(e) * scale in the queries.
//
// What a row gets depends on its own position and on the cached numbers alone: it
// walks the keys that it sees from the first to the last with fused multiply-adds,
// within splits of kSplit positions, and the splits' sums are joined in order. So
// neither chunks nor batches nor threads change a bit, and where a call has few
// tokens each split can be a task of its own: the task that ends last joins them.
// Cells that a row doesn't see take no part, whatever they hold.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

namespace {
constexpr int64_t kTile = 64;
constexpr int64_t kGroups = kTile / kLanes;
// Positions of a split; the order of sums follows from it.
constexpr int64_t kSplit = 512;
// Rows that share a tile at most, so that a task's scratch memory fits the
// first-level cache; and as many numbers of them.
constexpr int64_t kRows = 42, kRowElements = 42 * 128;
// Tokens of a call at most whose splits are tasks of their own, and how many of
// the splits at a time: their sums stand in the workspace.
constexpr int64_t kFewTokens = 8, kParts = 64;

// Sums of rows: memref<rows x (padded + 2 * 16)>, each [weighted sum of values, padded
// to whole lanes | 16 lanes of the sum of weights | the largest score].
using Sums = Value;

class Attention {
public:
  Attention(KernelBuilder &b, const GroupBuffers &cache, Value queries,
            Value layer, Value positions, Value sequences, double scale,
            std::optional<int64_t> window, Value output, const LinearTarget &target)
      : b(b), cache(cache), queries(queries), layer(layer), positions(positions),
        sequences(sequences), output(output), scale(scale), window(window),
        width(cache.group.keyWidth), padded(llvm::alignTo(width, kLanes)),
        kvHeads(cache.group.kvHeads),
        group(b.widthOf(queries) / width / kvHeads), isDevice(target.isDevice()),
        mostParts(std::min<int64_t>(
            kParts, llvm::divideCeil(cache.group.capacity, kSplit))),
        lowest(-std::numeric_limits<double>::infinity()) {
    int64_t wide = b.arithmetic.getIntOrFloatBitWidth() / 32;
    tile = {std::clamp<int64_t>(target.tile.rows / wide, 1, kLanes),
            target.tile.groups};
    int64_t rows = std::min(kRows, kRowElements / width);
    if (isDevice)
      rows = std::min(rows, target.taskBytes / (4 * wide * elementsOfRow()) /
                                tile.rows * tile.rows);
    block = std::max<int64_t>(1, rows / group);
  }

  void emit();

private:
  int64_t sumsWidth() const { return padded + 2 * kLanes; }
  // Of a task's own memory.
  int64_t elementsOfRow() const { return width + kTile + 3 + 2 * sumsWidth(); }
  Value scratch(StringRef name, int64_t rows, int64_t columns) {
    return b.named(name, b.scratch({rows, columns}));
  }
  Value plus(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value times(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value exp2(Value x) { return math::Exp2Op::create(b, x); }
  Value largest(Value a, Value c) { return arith::MaxSIOp::create(b, a, c); }
  Value smallest(Value a, Value c) { return arith::MinSIOp::create(b, a, c); }
  Value divide(Value a, Value c) { return arith::DivUIOp::create(b, a, c); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value isLess(Value x, Value y) {
    return compare(arith::CmpIPredicate::slt, x, y);
  }
  Value isAtMost(Value x, Value y) {
    return compare(arith::CmpIPredicate::sle, x, y);
  }
  Value alignDown(Value at, int64_t size) {
    return b.mul(b.divFloor(at, size), size);
  }
  Value loadIndex(Value memref, Value at) {
    return b.toIndex(memref::LoadOp::create(b, memref, at));
  }

  // The token sees [firstOf, endOf), or nothing.
  Value endOf(Value token) {
    return largest(b.add(loadIndex(positions, token), 1), b.index(0));
  }
  Value firstOf(Value end) {
    return window ? largest(b.sub(end, b.index(*window)), b.index(0))
                  : b.index(0);
  }
  Value headOf(Value kvHead, Value member) {
    return b.add(b.mul(kvHead, group), member);
  }

  // Element `e` of 16 keys, and a run of elements of a value, of the tile's cells.
  Value keysAt(const CacheCell &cell, Value e) {
    return b.loadLanes(kLanes, [&](int64_t, int64_t size) {
      return cache.layout.emitLoadKeys(b, b.getLoc(), cache.group, cell, e, size);
    });
  }
  Value valueAt(const CacheCell &cell, Value e, int64_t count) {
    return b.loadLanes(count, [&](int64_t offset, int64_t size) {
      return cache.layout.emitLoadValue(b, b.getLoc(), cache.group, cell,
                                        b.add(e, offset), size);
    });
  }
  // Asks for `count` numbers that stand a tile behind `cell`. For a tile
  // that one token reads: more need it for longer than it takes to come.
  void prefetch(CacheCell cell, bool keys, Value number, int64_t count) {
    cell.inPage = b.add(cell.inPage, kTile);
    cache.layout.emitPrefetch(b, b.getLoc(), cache.group, cell, keys, number, count);
  }

  // Calls `body(row, rows)` for the rows from `first` on, in tiles: those of the
  // group of one token, or all up to `end`, of which the last tile may hang over.
  void forGroup(Value first, function_ref<void(Value row, int64_t rows)> body);
  void forRows(Value end, function_ref<void(Value row)> body);

  // Of a task.
  void emitTask(Value firstToken, Value endToken, Value from, Value to);
  void emitRun(Value token, Value count, Value from, Value to);
  void emitSplit(Value split, Value token, Value count);
  void emitTile(Value at, Value token, Value count);
  void loadQueries(Value token, Value count);
  void scoreTile(Value at, Value row, int64_t rows, int64_t panels);
  void maskRow(Value row, Value at, Value first, Value end);
  void weighRows(Value row, int64_t rows);
  void sumValues(Value at, Value row, int64_t rows, int64_t panels, Value first,
                 Value end);

  void clear(Sums sums, Value row);
  void join(Sums from, Value fromRow, Sums into, Value row);
  void finish(Sums sums, Value row, Value token, Value head);
  void emitJoins(Value firstToken, Value endToken, Value from, Value to);

  KernelBuilder &b;
  const GroupBuffers &cache;
  Value queries, layer, positions, sequences, output; // rows: [N, heads * width]
  double scale;
  std::optional<int64_t> window;
  int64_t width, padded, kvHeads, group;
  bool isDevice; // the launch depends on the number of tokens alone
  int64_t mostParts; // 1: no split is a task of its own
  TileShape tile;
  int64_t block; // tokens of a task
  double lowest;

  Value isShared; // splits are tasks of their own, and leave their sums here:
  Sums partials;  // [few tokens * heads * most parts]
  Sums joined;    // [few tokens * heads], of all splits before
  Value ended;    // [few tokens * KV heads]: tasks of the round's splits that ended

  // Of the task at hand.
  Value sequence, kvHead, last; // last: the run's last position
  Value cacheRow; // of the layer and KV head
  Value asking; // [rows, width], scaled
  Value scores; // [rows, 64], then the weights
  Value peaks;  // [rows]: the largest score of the split so far
  Value shifts, rescale; // [rows]: what a tile's scores lose; what older sums are worth
  Sums mine;    // of the split, their largest score apart
  bool isAlone = false; // a tile is read for one token
  Sums total;
};
} // namespace

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void Attention::forGroup(Value first,
                         function_ref<void(Value, int64_t)> body) {
  int64_t whole = group / tile.rows * tile.rows;
  if (whole == tile.rows)
    body(first, tile.rows);
  else if (whole)
    b.forLoop("member", b.index(0), b.index(whole), tile.rows,
              [&](Value member) { body(b.add(first, member), tile.rows); });
  if (whole != group)
    body(b.add(first, whole), group - whole);
}

void Attention::forRows(Value end, function_ref<void(Value)> body) {
  b.forLoop("row", b.index(0), end, tile.rows, body);
}

// The queries of the run, times log2(e) * scale.
void Attention::loadQueries(Value token, Value count) {
  Value factor = b.splat(scale * 1.44269504088896340736);
  b.forLoop("query", b.index(0), count, 1, [&](Value query) {
    b.forLoop("member", b.index(0), b.index(group), 1, [&](Value member) {
      Value column = b.mul(headOf(kvHead, member), width);
      Value row = b.add(b.mul(query, group), member);
      b.forEachRun(width, [&](Value e, int64_t lanes) {
        Value q = b.loadLanes(queries, {b.add(token, query), b.add(column, e)},
                              lanes);
        b.storeLanes(times(q, factor), asking, {row, e}, lanes);
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

// scores[row + r][key] = query . key, for the tile's 64 keys, `panels` groups of
// them at a time. A group behind the run's last position isn't read, since it may
// lie outside the sequence's pages: the last that isn't stands in its place.
void Attention::scoreTile(Value at, Value row, int64_t rows, int64_t panels) {
  Value lastGroup = alignDown(last, kLanes);
  b.forLoop("panel", b.index(0), b.index(kTile), panels * kLanes, [&](Value panel) {
    SmallVector<CacheCell> cells;
    SmallVector<Value> state;
    for (int64_t p = 0; p != panels; ++p) {
      Value first =
          smallest(b.add(b.add(at, panel), p * kLanes), lastGroup);
      cells.push_back(cache.cell(b, sequence, first, cacheRow));
    }
    state.assign(rows * panels, b.splat(0.0));
    state = b.forLoop(
        "e", b.index(0), b.index(width), 1, state,
        [&](Value e, ValueRange sums) {
          SmallVector<Value> keys, next(sums);
          for (int64_t p = 0; p != panels; ++p) {
            keys.push_back(keysAt(cells[p], e));
          }
          // The panels stand behind each other, and so do those of the next tile.
          if (isAlone)
            prefetch(cells[0], /*keys=*/true, b.mul(e, panels * kLanes),
                     panels * kLanes);
          for (int64_t r = 0; r != rows; ++r) {
            Value q = b.splat(b.loadScalar(asking, {b.add(row, r), e}));
            for (int64_t p = 0; p != panels; ++p) {
              Value &sum = next[r * panels + p];
              sum = b.fma(q, keys[p], sum);
            }
          }
          return next;
        });
    for (int64_t r = 0; r != rows; ++r)
      for (int64_t p = 0; p != panels; ++p)
        b.storeLanes(state[r * panels + p], scores,
                     {b.add(row, r), b.add(panel, p * kLanes)});
  });
}

// -inf for the keys of the tile that are outside of [first, end).
void Attention::maskRow(Value row, Value at, Value first, Value end) {
  auto indices = VectorType::get({kLanes}, b.getIndexType());
  auto splat = [&](Value index) -> Value {
    return vector::BroadcastOp::create(b, indices, index);
  };
  Value lane = vector::StepOp::create(b, indices);
  Value from = splat(b.sub(first, at)), to = splat(b.sub(end, at));
  for (int64_t g = 0; g != kGroups; ++g) {
    Value key = arith::AddIOp::create(b, lane, splat(b.index(g * kLanes)));
    Value seen = both(compare(arith::CmpIPredicate::sge, key, from),
                      compare(arith::CmpIPredicate::slt, key, to));
    Value column = b.index(g * kLanes);
    Value score = b.loadLanes(scores, {row, column});
    b.storeLanes(arith::SelectOp::create(b, seen, score, b.splat(lowest)),
                 scores, {row, column});
  }
}

// The rows' scores become weights, 2^(score - the largest so far), and join the sums
// of weights; `rescale` is what the sums so far are worth now. What a row needs once
// is done for all of them at a time, a row (of at most 16) a lane, and nothing depends
// on a branch.
void Attention::weighRows(Value row, int64_t rows) {
  auto loadScores = [&](Value row) {
    SmallVector<Value> s;
    for (int64_t g = 0; g != kGroups; ++g)
      s.push_back(b.loadLanes(scores, {row, b.index(g * kLanes)}));
    return s;
  };
  Value here = b.splat(lowest);
  for (int64_t r = 0; r != rows; ++r) {
    SmallVector<Value> s = loadScores(b.add(row, r));
    Value peak = b.reduceMax(b.max(b.max(s[0], s[1]), b.max(s[2], s[3])));
    here = vector::InsertOp::create(b, peak, here, ArrayRef<int64_t>{r});
  }
  Value before = b.loadLanes(peaks, row, rows);
  Value now = b.max(before, here);
  // Where every score so far is -inf, they weigh nothing: 2^(-inf - 0).
  Value none =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, now, b.splat(lowest));
  Value shift = arith::SelectOp::create(b, none, b.splat(0.0), now);
  Value rises =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, now, before);
  Value worth = arith::SelectOp::create(
      b, rises, exp2(arith::SubFOp::create(b, before, shift)), b.splat(1.0));
  b.storeLanes(now, peaks, row, rows);
  b.storeLanes(shift, shifts, row, rows);
  b.storeLanes(worth, rescale, row, rows);
  b.forLoop("row", row, b.add(row, rows), 1, [&](Value row) {
    SmallVector<Value> s = loadScores(row);
    Value shift = b.splat(b.loadScalar(shifts, row));
    for (int64_t g = 0; g != kGroups; ++g) {
      s[g] = exp2(arith::SubFOp::create(b, s[g], shift));
      b.storeLanes(s[g], scores, {row, b.index(g * kLanes)});
    }
    Value sum = b.index(padded);
    b.storeLanes(b.fma(b.loadLanes(mine, {row, sum}),
                       b.splat(b.loadScalar(rescale, row)),
                       plus(plus(s[0], s[1]), plus(s[2], s[3]))),
                 mine, {row, sum});
  });
}

// sums = sums * rescale + sum over the tile's keys in [first, end) of
// weight * value, for `panels` runs of 16 elements at a time.
void Attention::sumValues(Value at, Value row, int64_t rows, int64_t panels,
                          Value first, Value end) {
  auto chunk = [&](Value column, ArrayRef<int64_t> lanes) {
    SmallVector<Value> state;
    auto forEach = [&](auto body) {
      for (int64_t r = 0; r != rows; ++r)
        for (size_t p = 0; p != lanes.size(); ++p)
          body(b.add(row, r), b.add(column, p * kLanes), r * lanes.size() + p);
    };
    forEach([&](Value r, Value c, size_t) {
      Value correction = b.splat(b.loadScalar(rescale, r));
      state.push_back(times(b.loadLanes(mine, {r, c}), correction));
    });
    state = b.forLoop(
        "keys", alignDown(first, kLanes), end, kLanes, state,
        [&](Value keys, ValueRange outer) {
          CacheCell first16 = cache.cell(b, sequence, keys, cacheRow);
          Value from = largest(b.sub(first, keys), b.index(0));
          Value to = smallest(b.sub(end, keys), b.index(kLanes));
          return b.forLoop(
              "i", from, to, 1, outer, [&](Value i, ValueRange inner) {
                SmallVector<Value> values, next(inner);
                CacheCell cell = first16;
                cell.inPage = b.add(cell.inPage, i);
                if (isAlone)
                  prefetch(cell, /*keys=*/false, column, lanes.size() * kLanes);
                for (size_t p = 0; p != lanes.size(); ++p)
                  values.push_back(
                      valueAt(cell, b.add(column, p * kLanes), lanes[p]));
                Value key = b.add(b.sub(keys, at), i);
                for (int64_t r = 0; r != rows; ++r) {
                  Value weight =
                      b.splat(b.loadScalar(scores, {b.add(row, r), key}));
                  for (size_t p = 0; p != lanes.size(); ++p) {
                    Value &sum = next[r * lanes.size() + p];
                    sum = b.fma(weight, values[p], sum);
                  }
                }
                return next;
              });
        });
    forEach([&](Value r, Value c, size_t i) {
      b.storeLanes(state[i], mine, {r, c});
    });
  };
  int64_t step = panels * kLanes, whole = width / step * step;
  if (whole)
    b.forLoop("column", b.index(0), b.index(whole), step, [&](Value column) {
      chunk(column, SmallVector<int64_t>(panels, kLanes));
    });
  if (whole != width) {
    SmallVector<int64_t> rest;
    for (int64_t left = width - whole; left > 0; left -= kLanes)
      rest.push_back(std::min(left, kLanes));
    chunk(b.index(whole), rest);
  }
}

// The tile at position `at`, for the run of `count` tokens.
void Attention::emitTile(Value at, Value token, Value count) {
  Value behind = b.add(at, kTile);
  Value lastFirst = firstOf(b.add(last, 1));
  // Every token of the run sees the whole tile: its rows share the keys and values.
  Value shared = both(isLess(b.index(1), count),
                      both(isAtMost(behind, endOf(token)), isAtMost(lastFirst, at)));
  b.ifElse(
      shared,
      [&] {
        Value rows = b.mul(count, group);
        isAlone = false;
        forRows(rows, [&](Value row) {
          scoreTile(at, row, tile.rows, tile.groups);
        });
        forRows(rows, [&](Value row) { weighRows(row, tile.rows); });
        forRows(rows, [&](Value row) {
          sumValues(at, row, tile.rows, tile.groups, at, behind);
        });
      },
      [&] {
        b.forLoop("query", b.index(0), count, 1, [&](Value query) {
          Value end = endOf(b.add(token, query));
          Value first = firstOf(end), row = b.mul(query, group);
          Value isSeen = both(isLess(at, end), isLess(first, behind));
          b.ifThen(isSeen, [&] {
            // As many panels as leave the sums and the keys or values that several
            // rows share in registers.
            auto panels = [&](int64_t rows) {
              int64_t most = (tile.rows + 1) * tile.groups;
              int64_t each = rows == 1 ? 1 : rows + 1;
              return 4 * each <= most ? 4 : 2 * each <= most ? 2 : 1;
            };
            isAlone = true;
            forGroup(row, [&](Value row, int64_t rows) {
              scoreTile(at, row, rows, panels(rows));
            });
            Value isBoundary = either(isLess(end, behind), isLess(at, first));
            b.ifThen(isBoundary, [&] {
              b.forLoop("member", b.index(0), b.index(group), 1, [&](Value member) {
                maskRow(b.add(row, member), at, first, end);
              });
            });
            forGroup(row, [&](Value row, int64_t rows) { weighRows(row, rows); });
            forGroup(row, [&](Value row, int64_t rows) {
              sumValues(at, row, rows, panels(rows), largest(first, at),
                        smallest(end, behind));
            });
          });
        });
      });
}

//===----------------------------------------------------------------------===//
// Splits
//===----------------------------------------------------------------------===//

void Attention::clear(Sums sums, Value row) {
  b.forLoop("i", b.index(0), b.index(padded + kLanes), kLanes,
            [&](Value i) { b.storeLanes(b.splat(0.0), sums, {row, i}); });
  b.storeLanes(b.splat(lowest), sums, {row, b.index(padded + kLanes)});
}

// The sums of a later split join those before it.
void Attention::join(Sums from, Value fromRow, Sums into, Value row) {
  Value peak = b.index(padded + kLanes);
  Value theirs = b.loadScalar(from, {fromRow, peak});
  Value before = b.loadScalar(into, {row, peak});
  Value now = b.max(before, theirs);
  Value none =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, now, b.number(lowest));
  Value shift = arith::SelectOp::create(b, none, b.number(0.0), now);
  Value old = b.splat(exp2(arith::SubFOp::create(b, before, shift)));
  Value fresh = b.splat(exp2(arith::SubFOp::create(b, theirs, shift)));
  b.storeScalar(now, into, {row, peak});
  b.forLoop("i", b.index(0), b.index(padded + kLanes), kLanes, [&](Value i) {
    Value sum = times(b.loadLanes(into, {row, i}), old);
    b.storeLanes(b.fma(b.loadLanes(from, {fromRow, i}), fresh, sum),
                 into, {row, i});
  });
}

// A query before position 0 sees no key, and gives zeros; one whose scores are all
// -inf has no softmax: 0 / 0.
void Attention::finish(Sums sums, Value row, Value token, Value head) {
  Value sum = b.reduceAdd(b.loadLanes(sums, {row, b.index(padded)}));
  Value none = compare(arith::CmpIPredicate::eq, endOf(token), b.index(0));
  Value all = b.splat(arith::SelectOp::create(b, none, b.number(1.0), sum));
  Value column = b.mul(head, width);
  b.forEachRun(width, [&](Value e, int64_t lanes) {
    Value mean = arith::DivFOp::create(b, b.loadLanes(sums, {row, e}), all);
    b.storeLanes(mean, output, {token, b.add(column, e)}, lanes);
  });
}

void Attention::emitSplit(Value split, Value token, Value count) {
  Value from = b.mul(split, kSplit), to = b.add(from, kSplit);
  b.forLoop("row", b.index(0), b.mul(count, group), 1, [&](Value row) {
    clear(mine, row);
    b.storeScalar(b.number(lowest), peaks, row);
  });
  Value first = alignDown(firstOf(endOf(token)), kTile);
  b.forLoop("tile", largest(from, first), smallest(to, b.add(last, 1)), kTile,
            [&](Value at) { emitTile(at, token, count); });
  b.forLoop("query", b.index(0), count, 1, [&](Value query) {
    Value asker = b.add(token, query);
    Value end = endOf(asker);
    Value isSeen = both(isLess(from, end), isLess(firstOf(end), to));
    b.ifThen(isSeen, [&] {
      b.forLoop("member", b.index(0), b.index(group), 1, [&](Value member) {
        Value row = b.add(b.mul(query, group), member);
        b.storeScalar(b.loadScalar(peaks, row), mine,
                      {row, b.index(padded + kLanes)});
        auto joinTotal = [&] { join(mine, row, total, row); };
        if (!partials)
          return joinTotal();
        auto leave = [&] {
          Value partial = b.add(b.mul(asker, group * kvHeads), headOf(kvHead, member));
          partial = b.add(b.mul(partial, mostParts), b.rem(split, mostParts));
          b.forLoop("i", b.index(0), b.index(sumsWidth()), kLanes, [&](Value i) {
            b.storeLanes(b.loadLanes(mine, {row, i}), partials, {partial, i});
          });
        };
        b.ifElse(isShared, leave, joinTotal);
      });
    });
  });
}

// The run of `count` tokens of one sequence from `token` on, in the splits from
// `from` to `to`.
void Attention::emitRun(Value token, Value count, Value from, Value to) {
  loadQueries(token, count);
  b.forLoop("row", b.index(0), b.mul(count, group), 1,
            [&](Value row) { clear(total, row); });
  Value lastEnd = endOf(b.add(token, b.sub(count, b.index(1))));
  last = b.sub(lastEnd, b.index(1));
  from = largest(from, b.divFloor(firstOf(endOf(token)), kSplit));
  to = smallest(to, b.divCeil(lastEnd, kSplit));
  b.forLoop("split", from, to, 1,
            [&](Value split) { emitSplit(split, token, count); });
  auto finishAll = [&] {
    b.forLoop("query", b.index(0), count, 1, [&](Value query) {
      b.forLoop("member", b.index(0), b.index(group), 1, [&](Value member) {
        finish(total, b.add(b.mul(query, group), member), b.add(token, query),
               headOf(kvHead, member));
      });
    });
  };
  if (!partials)
    return finishAll();
  b.ifElse(isShared, [] {}, finishAll);
}

// Those of the tokens that are of one sequence stand together: each run of them is
// done by itself.
void Attention::emitTask(Value firstToken, Value endToken, Value from, Value to) {
  int64_t rows = llvm::alignTo(block * group, tile.rows);
  asking = scratch("asking", rows, width);
  scores = scratch("scores", rows, kTile);
  peaks = b.named("peaks", b.scratch(rows));
  shifts = b.named("shifts", b.scratch(rows));
  rescale = b.named("rescale", b.scratch(rows));
  mine = scratch("mine", rows, sumsWidth());
  total = scratch("total", rows, sumsWidth());
  b.forLoop("token", firstToken, endToken, 1, [&](Value token) {
    sequence = b.named("sequence", loadIndex(sequences, token));
    Value isFirst = compare(arith::CmpIPredicate::eq, token, firstToken);
    Value previous = arith::SelectOp::create(b, isFirst, token,
                                             b.sub(token, b.index(1)));
    Value starts = either(isFirst, compare(arith::CmpIPredicate::ne, sequence,
                                           loadIndex(sequences, previous)));
    b.ifThen(starts, [&] {
      Value count = b.forLoop(
          "next", token, endToken, 1, {b.index(0)},
          [&](Value next, ValueRange state) -> SmallVector<Value> {
            Value same = compare(arith::CmpIPredicate::eq, sequence,
                                 loadIndex(sequences, next));
            return {arith::SelectOp::create(b, same, b.add(state[0], 1),
                                            state[0])};
          })[0];
      emitRun(token, count, from, to);
    });
  });
}

// The sums of the splits from `from` to `to`, which were tasks of their own, join
// those before them.
void Attention::emitJoins(Value firstToken, Value endToken, Value from, Value to) {
  auto joinRow = [&](Value token, Value head) {
    Value row = b.add(b.mul(token, group * kvHeads), head);
    Value end = endOf(token), mineTo = b.divCeil(end, kSplit);
    b.ifThen(compare(arith::CmpIPredicate::eq, from, b.index(0)),
             [&] { clear(joined, row); });
    b.forLoop("split", largest(from, b.divFloor(firstOf(end), kSplit)),
              smallest(to, mineTo), 1, [&](Value split) {
                Value part = b.rem(split, mostParts);
                join(partials, b.add(b.mul(row, mostParts), part), joined, row);
              });
    b.ifThen(isAtMost(mineTo, to), [&] { finish(joined, row, token, head); });
  };
  b.forLoop("token", firstToken, endToken, 1, [&](Value token) {
    b.forLoop("member", b.index(0), b.index(group), 1,
              [&](Value member) { joinRow(token, headOf(kvHead, member)); });
  });
}

void Attention::emit() {
  Value tokens = b.rowsOf(queries);
  Value isFew = isAtMost(tokens, b.index(kFewTokens));
  // A few sequences that decode together are tasks of their own, and on a device a few
  // tokens.
  Value areApart = isFew;
  if (!isDevice)
    areApart = both(isFew, compare(arith::CmpIPredicate::ne,
                                   loadIndex(sequences, b.index(0)),
                                   loadIndex(sequences, b.sub(tokens, b.index(1)))));
  Value blockTokens =
      arith::SelectOp::create(b, areApart, b.index(1), b.index(block));
  Value blocks = divide(b.sub(b.add(tokens, blockTokens), b.index(1)), blockTokens);
  // Tasks are blocks of tokens by KV heads by parts of the keys; `end` ends one.
  auto tasks = [&](Value parts, function_ref<std::pair<Value, Value>(Value part)> range,
                   function_ref<void(Value group, Value first, Value end)> endTask) {
    b.parallel("task", b.mul(arith::MulIOp::create(b, blocks, parts), kvHeads),
               [&](Value task) {
                 Value rest = divide(task, parts);
                 auto [from, to] = range(arith::RemUIOp::create(b, task, parts));
                 kvHead = b.named("kv_head", b.rem(rest, kvHeads));
                 cacheRow = cache.row(b, layer, kvHead);
                 Value first = arith::MulIOp::create(
                     b, b.divFloor(rest, kvHeads), blockTokens);
                 Value end = smallest(b.add(first, blockTokens), tokens);
                 emitTask(first, end, from, to);
                 endTask(rest, first, end);
               });
  };
  Value everything = b.index(INT64_MAX);
  if (mostParts == 1)
    return tasks(
        b.index(1), [&](Value) { return std::pair(b.index(0), everything); },
        [](Value, Value, Value) {});

  Value end = b.index(cache.group.capacity);
  if (!isDevice)
    end = b.forLoop(
        "token", b.index(0), smallest(tokens, b.index(kFewTokens)), 1,
        {b.index(0)}, [&](Value token, ValueRange state) -> SmallVector<Value> {
          return {largest(state[0], endOf(token))};
        })[0];
  Value splits = b.divCeil(end, kSplit);
  isShared = both(isFew, isLess(b.index(1), splits));
  int64_t heads = group * kvHeads;
  auto allocate = [&](StringRef name, int64_t rows) {
    auto type = MemRefType::get({rows, sumsWidth()}, b.arithmetic);
    return b.named(name, memref::AllocOp::create(b, type));
  };
  partials = allocate("partials", kFewTokens * heads * mostParts);
  joined = allocate("joined", kFewTokens * heads);
  if (!isDevice) {
    auto counts = MemRefType::get({kFewTokens * kvHeads}, b.getI64Type());
    ended = b.named("ended", memref::AllocOp::create(b, counts));
  }
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  // One round where a task walks all splits.
  Value rounds = arith::SelectOp::create(b, isShared, splits, b.index(1));
  b.forLoop("part", b.index(0), rounds, mostParts, [&](Value part) {
    Value parts = smallest(b.sub(rounds, part), b.index(mostParts));
    Value behind = b.add(part, parts);
    if (!isDevice)
      b.ifThen(isShared, [&] {
        b.forLoop("i", b.index(0), b.index(kFewTokens * kvHeads), 1, [&](Value i) {
          memref::StoreOp::create(b, number(0), ended, i);
        });
      });
    // The order of the count makes the sums of the tasks that ended before visible.
    auto joinLast = [&](Value group, Value first, Value end) {
      Value before = memref::AtomicRMWOp::create(
          b, arith::AtomicRMWKind::addi, number(1), ended, ValueRange{group});
      Value isLast =
          compare(arith::CmpIPredicate::eq, b.add(b.toIndex(before), 1), parts);
      b.ifThen(isLast, [&] { emitJoins(first, end, part, behind); });
    };
    tasks(
        parts,
        [&](Value inRound) {
          Value from = b.add(part, inRound);
          Value to = arith::SelectOp::create(b, isShared, b.add(from, 1), everything);
          return std::pair(from, to);
        },
        [&](Value group, Value first, Value end) {
          if (!isDevice)
            b.ifThen(isShared, [&] { joinLast(group, first, end); });
        });
    // The blocks of a launch don't wait for each other.
    if (isDevice)
      b.ifThen(isShared, [&] {
        b.parallel("task", b.mul(tokens, kvHeads), [&](Value task) {
          kvHead = b.named("kv_head", b.rem(task, kvHeads));
          Value token = b.divFloor(task, kvHeads);
          emitJoins(token, b.add(token, 1), part, behind);
        }, "join");
      });
  });
}

void kvc::emitAttend(KernelBuilder &b, const GroupBuffers &cache, Value queries,
                     Value layer, Value positions, Value sequences,
                     double scale, std::optional<int64_t> window, Value output,
                     const LinearTarget &target) {
  Attention(b, cache, queries, layer, positions, sequences, scale, window,
            output, target)
      .emit();
}
