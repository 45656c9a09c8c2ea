// kvc.linear and kvc.gated_linear: matrix products of any number of rows.
//
// output[n, o] = sum_k input[n, k] * weight[o, k]: output o of a panel is lane
// o mod 16. Every output takes k in blocks of kProductBlock: a block is summed
// from its first k to its last with fused multiply-adds, from 0, and is then
// added to the bias, or to 0, one block after the other. So an output is the same
// bits in the one-row form and in the tiled form, in every tile shape, on every
// CPU.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

namespace {
// The work of a task: tiles of `rows` rows by `panels` panels, below each other.
// Where a tile hangs over the matrix, the last row or panel is computed again in
// its place, and not stored.
class Tile {
public:
  Tile(KernelBuilder &b, const LinearKernel &kernel, int64_t rows,
       int64_t panels, int64_t tiles)
      : rows(rows), panels(panels), tiles(tiles), b(b), kernel(kernel) {}

  const int64_t rows, panels;
  const int64_t tiles; // at most, in a task

  int64_t columns() const { return b.widthOf(kernel.output); }
  int64_t panelsInAll() const { return llvm::divideCeil(columns(), kLanes); }

  // Computes the rows from `firstRow` to before `lastRow`, `panels` panels from
  // `firstPanel`.
  void emit(Value firstRow, Value lastRow, Value firstPanel);

private:
  void forEachTile(function_ref<void(Value tile, Value row)> body);
  // Adds the products of all of k to `totals`, some matrices from one loop.
  void accumulate(ArrayRef<size_t> matrices);
  // The sums of a tile from k = `block` to before `end`: [matrices][rows][panels].
  SmallVector<Value> sumBlock(ArrayRef<size_t> matrices, Value row, Value block,
                              Value end);
  Value epilogue(SmallVector<Value> sums);
  void finish(Value tile, Value row);
  void store(Value result, Value row, Value panel);

  // Where a total is: one row of 16.
  SmallVector<Value> total(size_t matrix, Value tile, int64_t r, int64_t p) {
    return {b.index(matrix), tile, b.index(r * panels + p), b.index(0)};
  }

  KernelBuilder &b;
  const LinearKernel &kernel;
  Value firstRow, lastRow;
  SmallVector<Value> panelIndex, panelLoad;
  // [matrices][tiles][rows * panels][16]: what is summed so far, in memory, since
  // the registers hold the sums of a block.
  Value totals;
};
} // namespace

void Tile::forEachTile(function_ref<void(Value, Value)> body) {
  if (rows == 1 && tiles == 1)
    return body(b.index(0), firstRow);
  Value count = b.divCeil(b.sub(lastRow, firstRow), rows);
  b.forLoop("tile", b.index(0), count, 1, [&](Value tile) {
    body(tile, b.add(firstRow, b.mul(tile, rows)));
  });
}

SmallVector<Value> Tile::sumBlock(ArrayRef<size_t> matrices, Value row,
                                  Value block, Value end) {
  SmallVector<Value> rowLoad;
  for (int64_t r = 0; r != rows; ++r)
    rowLoad.push_back(rows == 1 ? row
                                : b.min(b.add(row, r),
                                        b.sub(lastRow, b.index(1))));
  SmallVector<Value> zeros(matrices.size() * rows * panels, b.splat(0.0));
  return b.forLoop("k", block, end, 1, zeros, [&](Value k, ValueRange state) {
    SmallVector<Value> w, next(state);
    for (size_t matrix : matrices)
      for (int64_t p = 0; p != panels; ++p)
        w.push_back(kernel.weights[matrix].lanes(b, panelLoad[p], k));
    // A row's input is used up before the next is loaded: one register.
    for (int64_t r = 0; r != rows; ++r) {
      Value x = b.splat(b.loadScalar(kernel.input, {rowLoad[r], k}));
      for (size_t m = 0; m != matrices.size(); ++m)
        for (int64_t p = 0; p != panels; ++p) {
          Value &sum = next[(m * rows + r) * panels + p];
          sum = b.fma(x, w[m * panels + p], sum);
        }
    }
    return next;
  });
}

void Tile::accumulate(ArrayRef<size_t> matrices) {
  int64_t depth = b.widthOf(kernel.input);
  b.forLoop("block", b.index(0), b.index(depth), kProductBlock, [&](Value block) {
    Value end = b.min(b.add(block, kProductBlock), depth);
    forEachTile([&](Value tile, Value row) {
      SmallVector<Value> sums = sumBlock(matrices, row, block, end);
      for (auto [m, matrix] : llvm::enumerate(matrices))
        for (int64_t r = 0; r != rows; ++r)
          for (int64_t p = 0; p != panels; ++p) {
            SmallVector<Value> at = total(matrix, tile, r, p);
            Value sum = sums[(m * rows + r) * panels + p];
            b.storeLanes(
                arith::AddFOp::create(b, b.loadLanes(totals, at), sum), totals,
                at);
          }
    });
  });
}

void Tile::emit(Value first, Value last, Value firstPanel) {
  firstRow = first, lastRow = last;
  for (int64_t p = 0; p != panels; ++p) {
    panelIndex.push_back(b.add(firstPanel, p));
    panelLoad.push_back(panelsInAll() % panels == 0
                            ? panelIndex[p]
                            : b.min(panelIndex[p], panelsInAll() - 1));
  }
  int64_t matrices = kernel.weights.size();
  totals = b.named("totals",
                   b.scratch({matrices, tiles, rows * panels, kLanes}));
  forEachTile([&](Value tile, Value) {
    for (int64_t matrix = 0; matrix != matrices; ++matrix)
      for (int64_t p = 0; p != panels; ++p) {
        Value bias = kernel.biases[matrix];
        Value start = bias ? b.loadLanes(bias, b.mul(panelLoad[p], kLanes))
                           : b.splat(0.0);
        for (int64_t r = 0; r != rows; ++r)
          b.storeLanes(start, totals, total(matrix, tile, r, p));
      }
  });
  if (rows == 1) {
    accumulate(llvm::to_vector(llvm::seq<size_t>(matrices)));
  } else {
    // One matrix after the other: a panel that several rows share comes from
    // the caches, which give one stream at the speed of the sums, not two.
    for (size_t matrix : llvm::seq<size_t>(matrices))
      accumulate(matrix);
  }
  forEachTile([&](Value tile, Value row) { finish(tile, row); });
}

void Tile::finish(Value tile, Value row) {
  for (int64_t r = 0; r != rows; ++r)
    for (int64_t p = 0; p != panels; ++p) {
      Value index = b.add(row, r);
      auto storeOne = [&] {
        SmallVector<Value> sums;
        for (size_t m = 0; m != kernel.weights.size(); ++m)
          sums.push_back(b.loadLanes(totals, total(m, tile, r, p)));
        store(epilogue(sums), index, panelIndex[p]);
      };
      auto inPanels = [&] {
        if (panelsInAll() % panels == 0 || p == 0)
          return storeOne();
        b.ifThen(b.less(panelIndex[p], b.index(panelsInAll())), storeOne);
      };
      if (r == 0)
        inPanels();
      else
        b.ifThen(b.less(index, lastRow), inPanels);
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

void Tile::store(Value result, Value row, Value panel) {
  Value column = b.mul(panel, kLanes);
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
  b.ifElse(b.less(panel, b.index(panelsInAll() - 1)),
           [&] { storeRun(kLanes); }, [&] { storeRun(rest); });
}

void kvc::emitLinear(KernelBuilder &b, ArrayRef<LinearKernel> kernels,
                     TileShape shape) {
  Value rowCount = b.rowsOf(kernels.front().output);
  // One row reads each weight once: four panels side by side share the
  // broadcast of the input and keep four streams of memory busy. A gated layer
  // has two panels of each matrix.
  auto rowTasks = [&](const LinearKernel &kernel) -> KernelBuilder::Tasks {
    Tile row(b, kernel, 1, 4 / kernel.weights.size(), /*tiles=*/1);
    int64_t groups = llvm::divideCeil(row.panelsInAll(), row.panels);
    return {b.index(groups), [&b, &kernel, row](Value group) mutable {
              b.setLoc(kernel.line);
              row.emit(b.index(0), b.index(1), b.mul(group, row.panels));
            }};
  };
  // The tile's sums fill the registers: f64 has half as many lanes in each. A task
  // is a panel group by a block of rows that stays in the second-level cache.
  int64_t scale = b.arithmetic.getIntOrFloatBitWidth() / 32;
  auto tileTasks = [&](const LinearKernel &kernel) -> KernelBuilder::Tasks {
    Tile tile(b, kernel, std::max<int64_t>(1, shape.rows / scale), shape.panels,
              /*tiles=*/16);
    int64_t block = tile.rows * tile.tiles;
    int64_t groups = llvm::divideCeil(tile.panelsInAll(), tile.panels);
    return {b.mul(b.divCeil(rowCount, block), groups),
            [&b, &kernel, tile, rowCount, block, groups](Value task) mutable {
              b.setLoc(kernel.line);
              Value first = b.mul(b.divFloor(task, groups), block);
              tile.emit(first, b.min(b.add(first, block), rowCount),
                        b.mul(b.rem(task, groups), tile.panels));
            }};
  };

  Value one = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rowCount,
                                    b.index(1));
  b.ifElse(
      one,
      [&] { b.parallel("group", llvm::map_to_vector(kernels, rowTasks), "row"); },
      [&] { b.parallel("task", llvm::map_to_vector(kernels, tileTasks), "tile"); });
}
