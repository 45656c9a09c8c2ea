// kvc.linear and kvc.gated_linear: matrix products of any number of rows.
//
// output[n, o] = sum_k input[n, k] * weight[o, k]: output o of a panel is lane
// o mod 16, and every output walks k from 0 up with fused multiply-adds. So an
// output is the same bits in the one-row form and in the tiled form, in every
// tile shape, on every CPU.
#include "compiler/fuse/Packing.h"
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

Value kvc::viewWeight(KernelBuilder &b, Value weights, WeightOp weight,
                      Value layer) {
  SmallVector<int64_t> shape = packedShape(weight);
  if (weight.isStacked())
    shape.erase(shape.begin());
  auto type = MemRefType::get(shape, weight.getWeightType().getElementType());
  int64_t layerBytes = packedBytes(weight) / weight.getLayers();
  Value offset = b.index(weight.getPacking()->getOffset());
  if (layer)
    offset = b.add(offset, b.mul(layer, layerBytes));
  return b.named(weight.getSymName(),
                 memref::ViewOp::create(b, type, weights, offset, ValueRange{}));
}

namespace {
struct Tile {
  KernelBuilder &b;
  const LinearKernel &kernel;
  int64_t rows, panels;

  int64_t columns() const { return b.widthOf(kernel.output); }
  int64_t panelsInAll() const { return llvm::divideCeil(columns(), kLanes); }

  // Computes `rows` rows from `firstRow` by `panels` panels from `firstPanel`.
  // Where the tile hangs over the matrix, the last row or panel is computed
  // again in its place, and not stored.
  void emit(Value firstRow, Value firstPanel, Value rowCount);

private:
  // The products of the rows with the panels of some matrices, from one loop.
  SmallVector<Value> accumulate(ArrayRef<size_t> matrices,
                                ArrayRef<Value> rowLoad,
                                ArrayRef<Value> panelLoad);
  Value epilogue(SmallVector<Value> sums);
  void store(Value result, Value row, Value panel);
};
} // namespace

SmallVector<Value> Tile::accumulate(ArrayRef<size_t> matrices,
                                    ArrayRef<Value> rowLoad,
                                    ArrayRef<Value> panelLoad) {
  SmallVector<Value> sums; // [matrices][rows][panels]
  for (size_t matrix : matrices)
    for (int64_t r = 0; r != rows; ++r)
      for (int64_t p = 0; p != panels; ++p) {
        Value bias = kernel.biases[matrix];
        sums.push_back(bias ? b.loadLanes(bias, b.mul(panelLoad[p], kLanes))
                            : b.splat(0.0));
      }
  return b.forLoop(
      "k", b.index(0), b.index(b.widthOf(kernel.input)), 1, sums,
      [&](Value k, ValueRange state) {
        SmallVector<Value> w, next(state);
        for (size_t matrix : matrices)
          for (int64_t p = 0; p != panels; ++p)
            w.push_back(b.loadLanes(kernel.weights[matrix],
                                    {panelLoad[p], k, b.index(0)}));
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

void Tile::emit(Value firstRow, Value firstPanel, Value rowCount) {
  SmallVector<Value> rowIndex, panelIndex, rowLoad, panelLoad;
  for (int64_t r = 0; r != rows; ++r) {
    rowIndex.push_back(b.add(firstRow, r));
    rowLoad.push_back(
        rows == 1 ? rowIndex[r]
                  : b.min(rowIndex[r], b.sub(rowCount, b.index(1))));
  }
  bool panelsFit = panelsInAll() % panels == 0;
  for (int64_t p = 0; p != panels; ++p) {
    panelIndex.push_back(b.add(firstPanel, p));
    panelLoad.push_back(panelsFit ? panelIndex[p]
                                  : b.min(panelIndex[p], panelsInAll() - 1));
  }

  // sums: [weights][rows][panels]
  SmallVector<Value> sums;
  if (rows == 1) {
    sums = accumulate(llvm::to_vector(llvm::seq(kernel.weights.size())),
                      rowLoad, panelLoad);
  } else {
    // One matrix after the other: a panel that several rows share comes from
    // the caches, which give one stream at the speed of the sums, not two.
    for (size_t matrix : llvm::seq(kernel.weights.size()))
      llvm::append_range(sums, accumulate({matrix}, rowLoad, panelLoad));
  }

  int64_t perWeight = rows * panels;
  for (int64_t r = 0; r != rows; ++r)
    for (int64_t p = 0; p != panels; ++p) {
      auto finish = [&] {
        SmallVector<Value> mine;
        for (size_t m = 0; m != kernel.weights.size(); ++m)
          mine.push_back(sums[m * perWeight + r * panels + p]);
        store(epilogue(mine), rowIndex[r], panelIndex[p]);
      };
      auto inPanels = [&] {
        if (panelsFit || p == 0)
          return finish();
        b.ifThen(b.less(panelIndex[p], b.index(panelsInAll())), finish);
      };
      if (r == 0)
        inPanels();
      else
        b.ifThen(b.less(rowIndex[r], rowCount), inPanels);
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

void kvc::emitLinear(KernelBuilder &b, const LinearKernel &kernel,
                     TileShape shape) {
  Value rowCount = b.rowsOf(kernel.output);
  // One row reads each weight once: four panels side by side share the
  // broadcast of the input and keep four streams of memory busy. A gated layer
  // has two panels of each matrix.
  int64_t streams = 4 / kernel.weights.size();
  Tile row{b, kernel, 1, streams};
  // The tile's sums fill the registers: f64 has half as many lanes in each.
  int64_t scale = b.arithmetic.getIntOrFloatBitWidth() / 32;
  Tile tile{b, kernel, std::max<int64_t>(1, shape.rows / scale), shape.panels};
  // A task is a panel group by a block of rows that stays in the second-level
  // cache.
  int64_t block = tile.rows * 16;

  Value one = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rowCount,
                                    b.index(1));
  b.ifElse(
      one,
      [&] {
        int64_t groups = llvm::divideCeil(row.panelsInAll(), row.panels);
        b.parallel(
            "group", b.index(groups),
            [&](Value group) {
              row.emit(b.index(0), b.mul(group, row.panels), b.index(1));
            },
            "row");
      },
      [&] {
        int64_t groups = llvm::divideCeil(tile.panelsInAll(), tile.panels);
        Value blocks = b.divCeil(rowCount, block);
        b.parallel(
            "task", b.mul(blocks, groups),
            [&](Value task) {
              Value panel = b.mul(b.rem(task, groups), tile.panels);
              Value first = b.mul(b.divFloor(task, groups), block);
              Value last = b.min(b.add(first, block), rowCount);
              b.forLoop("n", first, last, tile.rows,
                        [&](Value n) { tile.emit(n, panel, last); });
            },
            "tile");
      });
}
