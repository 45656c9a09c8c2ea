// kvc.linear and kvc.gated_linear: matrix products of any number of rows.
//
// output[n, o] = sum_k input[n, k] * weight[o, k]: output o is lane o mod 16 of a
// group. Every output takes k in blocks of kProductBlock: a block is summed from
// its first k to its last with fused multiply-adds, from 0 (LinearFloats.cpp,
// LinearIntegers.cpp; in the class tiles LinearTiles.cpp), and is then added to the
// bias, or to 0, one block after the other. So an output is the same bits in the
// one-row form and in the tiled form, in every tile shape, on every CPU.
#include "compiler/cpu/LinearTile.h"

using namespace mlir;
using namespace kvc;

namespace {
// Rows of a task, about: as many of them as read a block of the matrix from the
// caches.
constexpr int64_t kTaskRows = 224;

// The work of a task: tiles of `rows` rows by `groups` groups of 16 outputs, below
// each other. Where a tile hangs over the matrix, the last row or group is computed
// again in its place, and not stored.
class Tile {
public:
  Tile(KernelBuilder &b, const LinearKernel &kernel, const LinearTarget &target,
       TileShape shape, int64_t tiles)
      : rows(shape.rows), groups(shape.groups), tiles(tiles), b(b),
        kernel(kernel), target(target) {}

  const int64_t rows, groups;
  const int64_t tiles; // at most, in a task

  int64_t columns() const { return b.widthOf(kernel.output); }
  int64_t groupsInAll() const { return llvm::divideCeil(columns(), kLanes); }

  // Computes the rows from `firstRow` to before `lastRow`, `groups` groups from
  // `firstGroup`.
  void emit(Value firstRow, Value lastRow, Value firstGroup);

private:
  void forEachTile(function_ref<void(Value tile, Value row)> body);
  // Adds the products of all inputs to `totals`, some matrices from one loop.
  void accumulate(Product &product, ArrayRef<size_t> matrices);
  // The same of one matrix, as the layer's is stored.
  void accumulateStored(size_t matrix, const Matrix &stored);
  std::unique_ptr<Product> makeProduct(const LinearKernel &kernel, const Matrix &like);
  Value epilogue(SmallVector<Value> sums);
  void finish(Value tile, Value row);
  void store(Value result, Value row, Value group);

  // Where a total is: one row of 16.
  SmallVector<Value> total(size_t matrix, Value tile, int64_t r, int64_t g) {
    return {b.index(matrix), tile, b.index(r * groups + g), b.index(0)};
  }
  bool isShared() const { return rows != 1 || tiles != 1; }

  KernelBuilder &b;
  const LinearKernel &kernel;
  const LinearTarget &target;
  Value firstRow, lastRow;
  SmallVector<Value> groupIndex, groupLoad;
  // [matrices][tiles][rows * groups][16]: what is summed so far, in memory, since
  // the registers hold the sums of a block.
  Value totals;
};
} // namespace

void Tile::forEachTile(function_ref<void(Value, Value)> body) {
  if (!isShared())
    return body(b.index(0), firstRow);
  Value count = b.divCeil(b.sub(lastRow, firstRow), rows);
  b.forLoop("tile", b.index(0), count, 1, [&](Value tile) {
    body(tile, b.add(firstRow, b.mul(tile, rows)));
  });
}

std::unique_ptr<Product> Tile::makeProduct(const LinearKernel &kernel,
                                           const Matrix &like) {
  int64_t shared = isShared() ? groups : 0;
  if (kernel.rounded && like.storage->quants)
    return makeIntegerProduct(b, kernel, target, like, shared);
  if (kernel.isTiles)
    return makeTilesProduct(b, kernel, target, like, shared);
  return makeFloatProduct(b, kernel, like, shared);
}

void Tile::accumulate(Product &product, ArrayRef<size_t> matrices) {
  int64_t depth = kernel.inputs;
  b.forLoop("block", b.index(0), b.index(depth), kProductBlock, [&](Value begin) {
    Value end = b.min(b.add(begin, kProductBlock), depth);
    ProductBlock block{matrices, groupLoad, begin, end};
    product.prepare(block);
    forEachTile([&](Value tile, Value row) {
      SmallVector<Value> rowLoad;
      for (int64_t r = 0; r != rows; ++r)
        rowLoad.push_back(rows == 1 ? row
                                    : b.min(b.add(row, r),
                                            b.sub(lastRow, b.index(1))));
      SmallVector<Value> sums = product.sum(
          block, rowLoad,
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, tile, b.index(0)));
      for (auto [m, matrix] : llvm::enumerate(matrices))
        for (int64_t r = 0; r != rows; ++r)
          for (int64_t g = 0; g != groups; ++g) {
            SmallVector<Value> at = total(matrix, tile, r, g);
            Value sum = sums[(m * rows + r) * groups + g];
            b.storeLanes(
                arith::AddFOp::create(b, b.loadLanes(totals, at), sum), totals,
                at);
          }
    });
  });
}

void Tile::accumulateStored(size_t matrix, const Matrix &stored) {
  LinearKernel one = kernel;
  one.weights[matrix] = stored;
  auto add = [&] { accumulate(*makeProduct(one, stored), matrix); };
  if (!stored.otherwise)
    return add();
  b.ifElse(stored.isLayers, add,
           [&] { accumulateStored(matrix, *stored.otherwise); });
}

void Tile::emit(Value first, Value last, Value firstGroup) {
  firstRow = first, lastRow = last;
  for (int64_t g = 0; g != groups; ++g) {
    groupIndex.push_back(b.add(firstGroup, g));
    groupLoad.push_back(groupsInAll() % groups == 0
                            ? groupIndex[g]
                            : b.min(groupIndex[g], groupsInAll() - 1));
  }
  size_t matrices = kernel.weights.size();
  totals = b.named("totals", b.scratch({int64_t(matrices), tiles, rows * groups,
                                        kLanes}));
  forEachTile([&](Value tile, Value) {
    for (size_t matrix = 0; matrix != matrices; ++matrix)
      for (int64_t g = 0; g != groups; ++g) {
        Value bias = kernel.biases[matrix];
        Value start = bias ? b.loadLanes(bias, b.mul(groupLoad[g], kLanes))
                           : b.splat(0.0);
        for (int64_t r = 0; r != rows; ++r)
          b.storeLanes(start, totals, total(matrix, tile, r, g));
      }
  });
  const Storage *storage = kernel.weights.front().storage;
  bool areAlike = llvm::all_of(kernel.weights, [&](const Matrix &matrix) {
    return matrix.storage == storage && !matrix.otherwise;
  });
  // What several rows share comes from the caches, which give one stream at the
  // speed of the sums, not two: one matrix after the other.
  if (areAlike) {
    std::unique_ptr<Product> product = makeProduct(kernel, kernel.weights.front());
    if (isShared())
      for (size_t matrix = 0; matrix != matrices; ++matrix)
        accumulate(*product, matrix);
    else
      accumulate(*product, llvm::to_vector(llvm::seq(matrices)));
  } else {
    for (size_t matrix = 0; matrix != matrices; ++matrix)
      accumulateStored(matrix, kernel.weights[matrix]);
  }
  forEachTile([&](Value tile, Value row) { finish(tile, row); });
}

void Tile::finish(Value tile, Value row) {
  for (int64_t r = 0; r != rows; ++r)
    for (int64_t g = 0; g != groups; ++g) {
      Value index = b.add(row, r);
      auto storeOne = [&] {
        SmallVector<Value> sums;
        for (size_t m = 0; m != kernel.weights.size(); ++m)
          sums.push_back(b.loadLanes(totals, total(m, tile, r, g)));
        store(epilogue(sums), index, groupIndex[g]);
      };
      auto inGroups = [&] {
        if (groupsInAll() % groups == 0 || g == 0)
          return storeOne();
        b.ifThen(b.less(groupIndex[g], b.index(groupsInAll())), storeOne);
      };
      if (r == 0)
        inGroups();
      else
        b.ifThen(b.less(index, lastRow), inGroups);
    }
}

Value Tile::epilogue(SmallVector<Value> sums) {
  Value result = sums[0];
  if (kernel.activation)
    result = b.activate(result, *kernel.activation);
  if (sums.size() == 2)
    result = arith::MulFOp::create(b, result, sums[1]);
  return result;
}

void Tile::store(Value result, Value row, Value group) {
  Value column = b.mul(group, kLanes);
  auto storeRun = [&](int64_t count) {
    Value sum = result;
    if (kernel.residual)
      sum = arith::AddFOp::create(
          b, b.loadLanes(kernel.residual, {row, column}, count), sum);
    if (kernel.isLogits)
      sum = b.oneNaN(sum);
    b.storeLanes(sum, kernel.output, {row, column}, count);
  };
  int64_t rest = columns() % kLanes;
  if (!rest)
    return storeRun(kLanes);
  b.ifElse(b.less(group, b.index(groupsInAll() - 1)),
           [&] { storeRun(kLanes); }, [&] { storeRun(rest); });
}

void kvc::prefetchStream(KernelBuilder &b, Value view, Value panel, Value at,
                         int64_t count, int64_t streams, int64_t distance) {
  constexpr int64_t kLine = 64; // bytes
  auto type = cast<MemRefType>(view.getType());
  int64_t extent = type.getDimSize(1);
  int64_t elementBytes = type.getElementTypeBitWidth() / 8, bytes = elementBytes;
  for (int64_t size : type.getShape().drop_front(2))
    bytes *= size;
  Value ahead = b.add(at, distance);
  Value isInPanel = b.less(ahead, b.index(extent));
  auto choose = [&](Value inPanel, Value behind) -> Value {
    return arith::SelectOp::create(b, isInPanel, inPanel, behind);
  };
  panel = choose(panel, b.add(panel, streams));
  ahead = choose(ahead, b.sub(ahead, b.index(extent)));
  for (int64_t offset = 0; offset < count * bytes; offset += kLine) {
    SmallVector<Value> indices{panel, b.add(ahead, offset / bytes)};
    if (type.getRank() == 3)
      indices.push_back(b.index(offset % bytes / elementBytes));
    memref::PrefetchOp::create(b, view, indices, /*isWrite=*/false,
                               /*localityHint=*/3, /*isDataCache=*/true);
  }
}

void kvc::emitLinear(KernelBuilder &b, ArrayRef<LinearKernel> kernels,
                     const LinearTarget &target) {
  Value rowCount = b.rowsOf(kernels.front().output);
  // One row reads each weight once: four groups side by side share the broadcast
  // of the input and keep streams of memory busy. A gated layer has two groups of
  // each matrix.
  auto rowTasks = [&](const LinearKernel &kernel) -> KernelBuilder::Tasks {
    int64_t groups = 4 / kernel.weights.size();
    Tile row(b, kernel, target, {1, groups}, /*tiles=*/1);
    return {b.index(llvm::divideCeil(row.groupsInAll(), groups)),
            [&b, &kernel, row](Value task) mutable {
              b.setLoc(kernel.line);
              row.emit(b.index(0), b.index(1), b.mul(task, row.groups));
            }};
  };
  // The tile's sums fill the registers: f64 has half as many lanes in each. A task
  // is some groups by a block of rows that stays in the second-level cache.
  int64_t scale = b.arithmetic.getIntOrFloatBitWidth() / 32;
  auto tileTasks = [&](const LinearKernel &kernel) -> KernelBuilder::Tasks {
    TileShape shape = kernel.rounded   ? target.integerTile
                      : kernel.isTiles ? tilesShape(target, kernel.weights)
                                       : target.tile;
    shape.rows = std::max<int64_t>(1, shape.rows / scale);
    Tile tile(b, kernel, target, shape, /*tiles=*/kTaskRows / shape.rows);
    int64_t block = tile.rows * tile.tiles;
    int64_t across = llvm::divideCeil(tile.groupsInAll(), tile.groups);
    return {b.mul(b.divCeil(rowCount, block), across),
            [&b, &kernel, tile, rowCount, block, across](Value task) mutable {
              b.setLoc(kernel.line);
              Value first = b.mul(b.divFloor(task, across), block);
              tile.emit(first, b.min(b.add(first, block), rowCount),
                        b.mul(b.rem(task, across), tile.groups));
            }};
  };

  Value one = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rowCount,
                                    b.index(1));
  b.ifElse(
      one,
      [&] { b.parallel("task", llvm::map_to_vector(kernels, rowTasks), "row"); },
      [&] { b.parallel("task", llvm::map_to_vector(kernels, tileTasks), "tile"); });
}
