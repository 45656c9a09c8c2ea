// kvc.linear and kvc.gated_linear: matrix products of any number of rows.
//
// output[n, o] = sum_k input[n, k] * weight[o, k]: output o is lane o mod 16 of a
// group. Every output takes k in blocks of kProductBlock: a block is summed from
// its first k to its last with fused multiply-adds, from 0 (LinearFloats.cpp,
// LinearIntegers.cpp; in the class tiles LinearTiles.cpp), and is then added to the
// bias, or to 0, one block after the other. So an output is the same bits in the
// one-row form and in the tiled form, in every tile shape, on every CPU.
#include "compiler/cpu/LinearTile.h"
#include "compiler/cpu/TileOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace kvc;

namespace {
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
  // Adds the products of all inputs to `totals`.
  void accumulate();
  // The same of a block of them, by matrices of one storage side by side, and by one,
  // as the layer's is stored.
  void addBlock(const LinearKernel &kernel, ArrayRef<size_t> matrices, Value begin,
                Value end);
  void addStored(size_t matrix, const Matrix &stored, Value begin, Value end);
  std::unique_ptr<Product> makeProduct(const LinearKernel &kernel, const Matrix &like);
  Value epilogue(SmallVector<Value> sums);
  void finish(Value tile, Value row);
  void store(Value result, Value row, Value group);

  // Where a total is: one row of 16.
  SmallVector<Value> total(size_t matrix, Value tile, int64_t r, int64_t g) {
    return {b.index(matrix), tile, b.index(r * groups + g), b.index(0)};
  }
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
  if (tiles == 1)
    return body(b.index(0), firstRow);
  Value count = b.divCeil(b.sub(lastRow, firstRow), rows);
  b.forLoop("tile", b.index(0), count, 1, [&](Value tile) {
    body(tile, b.add(firstRow, b.mul(tile, rows)));
  });
}

// Whether the matrix is multiplied with bytes.
static bool isOfIntegers(const LinearKernel &kernel, const Matrix &matrix) {
  return kernel.rounded && matrix.storage->quants;
}

std::unique_ptr<Product> Tile::makeProduct(const LinearKernel &kernel,
                                           const Matrix &like) {
  int64_t shared = tiles != 1 ? groups : 0;
  if (isOfIntegers(kernel, like)) {
    // Dot products of bytes leave time to unpack what they multiply; tiles are loaded
    // from memory.
    bool keeps = (!target.hasByteDot && like.storage->quants->bits < 8) ||
                 (target.hasTiles && kTileRows % rows == 0);
    return makeIntegerProduct(b, kernel, target, like, keeps ? shared : 0);
  }
  if (kernel.isTiles)
    return makeTilesProduct(b, kernel, target, like, rows, shared);
  return makeFloatProduct(b, kernel, target, like, shared);
}

void Tile::addBlock(const LinearKernel &kernel, ArrayRef<size_t> matrices,
                    Value begin, Value end) {
  std::unique_ptr<Product> product =
      makeProduct(kernel, kernel.weights[matrices.front()]);
  ProductBlock block{matrices, groupLoad, begin, end};
  product->prepare(block);
  forEachTile([&](Value tile, Value row) {
    SmallVector<Value> rowLoad;
    for (int64_t r = 0; r != rows; ++r)
      rowLoad.push_back(r ? b.min(b.add(row, r), b.sub(lastRow, b.index(1)))
                          : row);
    TileShare share{tile, {}};
    if (tiles != 1)
      share.count = b.divCeil(b.sub(lastRow, firstRow), rows);
    product->forEachSum(block, rowLoad, share, [&](int64_t place, Value sum) {
      SmallVector<Value> at = total(matrices[place / (rows * groups)], tile,
                                    place / groups % rows, place % groups);
      b.storeLanes(arith::AddFOp::create(b, b.loadLanes(totals, at), sum), totals,
                   at);
    });
  });
}

void Tile::addStored(size_t matrix, const Matrix &stored, Value begin, Value end) {
  LinearKernel one = kernel;
  one.weights[matrix] = stored;
  auto add = [&] { addBlock(one, matrix, begin, end); };
  if (!stored.otherwise)
    return add();
  b.ifElse(stored.isLayers, add,
           [&] { addStored(matrix, *stored.otherwise, begin, end); });
}

void Tile::accumulate() {
  const Storage *storage = kernel.weights.front().storage;
  bool areAlike = llvm::all_of(kernel.weights, [&](const Matrix &matrix) {
    return matrix.storage == storage && !matrix.otherwise;
  });
  int64_t depth = kernel.inputs;
  b.forLoop("block", b.index(0), b.index(depth), kProductBlock, [&](Value begin) {
    Value end = b.min(b.add(begin, kProductBlock), depth);
    // The registers hold the sums of several matrices for one row alone.
    if (rows == 1 && tiles == 1 && areAlike)
      return addBlock(kernel, llvm::to_vector(llvm::seq(kernel.weights.size())),
                      begin, end);
    for (auto [m, matrix] : llvm::enumerate(kernel.weights))
      addStored(m, matrix, begin, end);
  });
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
  accumulate();
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

// Bytes ahead of what is read once, by one row in each stream and by a few in all of
// them, or one tile, and of the next block of several tiles: far enough for memory to
// answer, near enough for the first-level cache. What has less than 8 bits takes more
// instructions a byte, so that the processor sees less of it ahead by itself.
static constexpr int64_t kRowAhead = 2048, kNarrowRowAhead = 4096, kFewAhead = 6144,
                         kTileAhead = 8192, kBlockAhead = 4096;
static constexpr int64_t kLine = 64; // bytes

Prefetch::Prefetch(KernelBuilder &b, ArrayRef<Stream> streams, Value at,
                   int64_t count, int64_t perBlock, int64_t step, Reader reader,
                   const TileShare &share)
    : b(b) {
  auto type = cast<MemRefType>(streams.front().view.getType());
  int64_t extent = type.getDimSize(1);
  elementBytes = type.getElementTypeBitWidth() / 8, bytes = elementBytes;
  for (int64_t size : type.getShape().drop_front(2))
    bytes *= size;
  lines = llvm::divideCeil(count * bytes, kLine);
  Value ahead;
  if (share.count) {
    // Step by step the tiles ask for the next block, all of them once and in its order,
    // so that memory sees one stream. One tile alone reads no block again.
    constexpr int64_t kUnit = 1 << 16; // fractions of an element
    Value perStep = b.add(
        arith::DivUIOp::create(b, b.index(count * kUnit), share.count), 1);
    sharedLines =
        arith::DivUIOp::create(b, b.add(share.count, lines - 1), share.count);
    Value inBlock = b.rem(at, perBlock);
    Value steps = b.add(b.mul(share.tile, perBlock / count),
                        b.divFloor(inBlock, count));
    Value distance = arith::SelectOp::create(
        b, b.less(b.index(1), share.count),
        b.index(perBlock + std::min(perBlock / 2, kBlockAhead / bytes)),
        b.index(kTileAhead / int64_t(streams.size()) / bytes));
    ahead = b.add(b.add(b.sub(at, inBlock), distance),
                  b.divFloor(b.mul(steps, perStep), kUnit));
  } else {
    int64_t distance = reader == Reader::Few ? kFewAhead / int64_t(streams.size())
                       : reader == Reader::NarrowRow ? kNarrowRowAhead
                                                     : kRowAhead;
    ahead = b.add(at, distance / bytes);
  }
  Value isInPanel = b.less(ahead, b.index(extent));
  auto choose = [&](Value inPanel, Value behind) -> Value {
    return arith::SelectOp::create(b, isInPanel, inPanel, behind);
  };
  first = choose(ahead, b.sub(ahead, b.index(extent)));
  for (const Stream &stream : streams)
    panels.push_back({stream.view,
                      choose(stream.panel, b.add(stream.panel, step))});
}

void Prefetch::emitLine(Value offset) {
  for (const Stream &panel : panels) {
    SmallVector<Value> indices{panel.panel, b.add(first, b.divFloor(offset, bytes))};
    if (cast<MemRefType>(panel.view.getType()).getRank() == 3)
      indices.push_back(b.divFloor(b.rem(offset, bytes), elementBytes));
    memref::PrefetchOp::create(b, panel.view, indices, /*isWrite=*/false,
                               /*localityHint=*/3, /*isDataCache=*/true);
  }
}

void Prefetch::emit(int64_t part, int64_t parts) {
  if (part >= parts)
    return;
  if (sharedLines) {
    if (part == 0)
      b.forLoop("line", b.index(0), sharedLines, 1,
                [&](Value line) { emitLine(b.mul(line, kLine)); });
    return;
  }
  // LLVM would put all requests before all loads. A fence of one thread is no
  // instruction: it keeps them, and what is loaded, in this order.
  if (parts != 1)
    LLVM::FenceOp::create(b, LLVM::AtomicOrdering::acq_rel, "singlethread");
  for (int64_t line = lines * part / parts; line != lines * (part + 1) / parts;
       ++line)
    emitLine(b.index(line * kLine));
}

void kvc::prefetchStreams(KernelBuilder &b, ArrayRef<Stream> streams, Value at,
                          int64_t count, int64_t perBlock, int64_t step,
                          bool isRow, const TileShare &share) {
  Prefetch(b, streams, at, count, perBlock, step,
           isRow ? Reader::Row : Reader::Few, share)
      .emit(0, 1);
}

// Makes the parts of inputs that are multiplied in tiles; what has one input has one
// buffer of them.
static void splitInputs(KernelBuilder &b, MutableArrayRef<LinearKernel> kernels) {
  DenseMap<Value, Value> parts;
  for (LinearKernel &kernel : kernels)
    if (kernel.isTiles)
      for (const Matrix &matrix : kernel.weights)
        for (const Matrix *one = &matrix; one; one = one->otherwise.get())
          if (!isOfIntegers(kernel, *one)) {
            Value &made = parts[kernel.inputOf(*one)];
            if (!made)
              made = emitSplitRows(b, kernel, *one);
            kernel.parts[kernel.inputOf(*one)] = made;
          }
}

void kvc::emitLinear(KernelBuilder &b, ArrayRef<LinearKernel> kernels,
                     const LinearTarget &target) {
  Value rowCount = b.rowsOf(kernels.front().output);
  // f64 has half as many lanes in a register.
  int64_t scale = b.arithmetic.getIntOrFloatBitWidth() / 32;
  auto scaled = [&](TileShape shape) -> TileShape {
    return {std::max<int64_t>(1, shape.rows / scale), shape.groups};
  };
  auto shapesOf = [&](const LinearKernel &kernel) -> ProductShapes {
    if (kernel.isTiles && !kernel.rounded)
      return tilesShapes(target, kernel);
    return kernel.rounded ? target.integers : target.floats;
  };
  int64_t few = target.taskRows;
  for (const LinearKernel &kernel : kernels)
    few = std::min(few, scaled(shapesOf(kernel).few).rows);
  // A task is some groups by a block of rows, at most `tiles` tiles of them, or by all
  // rows, where these are no more than a tile's.
  auto tasksOf = [&](const LinearKernel &kernel, TileShape shape, int64_t tiles,
                     bool hasAllRows) {
    Tile tile(b, kernel, target, shape, tiles);
    int64_t block = tile.rows * tile.tiles;
    int64_t across = llvm::divideCeil(tile.groupsInAll(), tile.groups);
    if (hasAllRows)
      return KernelBuilder::Tasks{
          b.index(across), [&b, &kernel, tile, rowCount](Value task) mutable {
            b.setLoc(kernel.line);
            tile.emit(b.index(0), rowCount, b.mul(task, tile.groups));
          }};
    return KernelBuilder::Tasks{
        b.mul(b.divCeil(rowCount, block), across),
        [&b, &kernel, tile, rowCount, block, across](Value task) mutable {
          b.setLoc(kernel.line);
          Value first = b.mul(b.divFloor(task, across), block);
          tile.emit(first, b.min(b.add(first, block), rowCount),
                    b.mul(b.rem(task, across), tile.groups));
        }};
  };
  auto emit = [&](ArrayRef<LinearKernel> kernels,
                  function_ref<TileShape(const LinearKernel &)> shapeOf,
                  bool areMany, StringRef name) {
    auto tasks = llvm::map_to_vector(kernels, [&](const LinearKernel &kernel) {
      TileShape shape = shapeOf(kernel);
      int64_t tiles = areMany ? std::max<int64_t>(1, target.taskRows / shape.rows) : 1;
      return tasksOf(kernel, shape, tiles, !areMany);
    });
    b.parallel("task", tasks, name);
  };
  auto emitMany = [&] {
    SmallVector<LinearKernel> split(kernels);
    if (target.hasTiles)
      splitInputs(b, split);
    emit(split,
         [&](const LinearKernel &kernel) { return scaled(shapesOf(kernel).many); },
         /*areMany=*/true, "tile");
  };
  // One row and a few read each weight once. One row of floats walks four groups side by
  // side, which share the broadcast of the input and keep streams of memory busy; bytes
  // take more instructions, and come as fast from one panel, which is one stream; pairs
  // take so few that one panel keeps the processor's own requests ahead of them.
  // Where there is no row, since a caller asks for no logits, many have no task.
  b.ifElse(
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rowCount, b.index(1)),
      [&] {
        emit(kernels, [](const LinearKernel &kernel) -> TileShape {
          int64_t matrices = kernel.weights.size();
          return {1, kernel.arePairs() ? 1 : kernel.rounded ? 2 : 4 / matrices};
        }, /*areMany=*/false, "row");
      },
      [&] {
        if (few == 1)
          return emitMany();
        b.ifElse(
            b.less(b.sub(rowCount, b.index(1)), b.index(few)), // 1 to few
            [&] {
              emit(kernels, [&](const LinearKernel &kernel) {
                return scaled(shapesOf(kernel).few);
              }, /*areMany=*/false, "few");
            },
            emitMany);
      });
}
