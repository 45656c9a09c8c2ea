// What the files of kvc.linear share: the sums of one block of inputs, by one
// class for each way of multiplying.
#ifndef KVC_COMPILER_CPU_LINEARTILE_H
#define KVC_COMPILER_CPU_LINEARTILE_H

#include "compiler/cpu/Kernels.h"
#include <memory>

namespace kvc {

// Inputs that have two sums in the class tiles.
inline constexpr int64_t kDepth = 32;

// A part of a product: inputs `begin` (a multiple of kProductBlock) to before `end`
// by groups of 16 outputs of some matrices.
struct ProductBlock {
  llvm::ArrayRef<size_t> matrices;
  llvm::ArrayRef<mlir::Value> groups;
  mlir::Value begin, end;
};

// One of the tiles of rows that read a block after each other: each asks memory for a
// share of what comes next, so that none waits for much at once. No count: one alone.
struct TileShare {
  mlir::Value tile, count;
};

class Product {
public:
  virtual ~Product() = default;
  // Makes ready what the tiles of a task share.
  virtual void prepare(const ProductBlock &block) {}
  // The sums of these rows, from 0: [matrices][rows][groups] of 16 lanes.
  virtual llvm::SmallVector<mlir::Value> sum(const ProductBlock &block,
                                             llvm::ArrayRef<mlir::Value> rows,
                                             const TileShare &share) {
    llvm_unreachable("the sums are in memory");
  }
  // Calls `body` with the place and the value of each of them: one after the other,
  // where they stand in memory.
  virtual void
  forEachSum(const ProductBlock &block, llvm::ArrayRef<mlir::Value> rows,
             const TileShare &share,
             llvm::function_ref<void(size_t place, mlir::Value sum)> body) {
    for (auto [place, value] : llvm::enumerate(sum(block, rows, share)))
      body(place, value);
  }
};

// Of the inputs as they are, as sums of bf16, and of the rounded ones, by matrices of
// one storage. Of `groups` groups what is unpacked is kept for the tiles of a task;
// where it is 0, each unpacks it anew.
std::unique_ptr<Product> makeFloatProduct(KernelBuilder &b,
                                          const LinearKernel &kernel,
                                          const LinearTarget &target,
                                          const Matrix &like, int64_t groups);
std::unique_ptr<Product> makeTilesProduct(KernelBuilder &b,
                                          const LinearKernel &kernel,
                                          const LinearTarget &target,
                                          const Matrix &like, int64_t rows,
                                          int64_t groups);
// The same by a machine's instruction for two products of bf16, and its register tiles.
std::unique_ptr<Product> makePairsProduct(KernelBuilder &b,
                                          const LinearKernel &kernel,
                                          int64_t groups);
ProductShapes pairsShapes();
// 16 inputs of a row from `first` on, a multiple of 16, from LinearKernel::narrowed as
// pairs.
mlir::Value loadPairs(KernelBuilder &b, mlir::Value pairs, mlir::Value row,
                      mlir::Value first);
// Of the rows that the matrix is multiplied with the parts, as LinearKernel::parts has
// them.
mlir::Value emitSplitRows(KernelBuilder &b, const LinearKernel &kernel,
                          const Matrix &matrix);
std::unique_ptr<Product> makeIntegerProduct(KernelBuilder &b,
                                            const LinearKernel &kernel,
                                            const LinearTarget &target,
                                            const Matrix &like, int64_t groups);

// The tiles of a product of the class tiles.
ProductShapes tilesShapes(const LinearTarget &target, const LinearKernel &kernel);

// Panels of [panels][extent]... that are read side by side.
struct Stream {
  mlir::Value view, panel;
};
// Who reads them, by how far ahead it asks: one row, one of what has less than 8 bits,
// or a few.
enum class Reader { Row, NarrowRow, Few };
// Asks memory for what comes later. `count` elements of the second axis are read at a
// time, now those at `at`, and a block of inputs has `perBlock` of them; at a panel's end
// the one that is taken next, `step` panels on, is asked for.
class Prefetch {
public:
  Prefetch(KernelBuilder &b, llvm::ArrayRef<Stream> streams, mlir::Value at,
           int64_t count, int64_t perBlock, int64_t step, Reader reader,
           const TileShare &share);
  // A part of what `count` elements are followed by, of `parts` that stand between what
  // is computed: all at once would wait for memory's few open requests, and so would
  // what is loaded behind them. Tiles have less to ask for, and do so with the first.
  // There is no part behind the last one.
  void emit(int64_t part, int64_t parts);

private:
  void emitLine(mlir::Value offset); // in bytes, from the first

  KernelBuilder &b;
  llvm::SmallVector<Stream> panels;
  mlir::Value first;           // element of the second axis
  int64_t elementBytes, bytes; // of an element of the panel, and of the second axis
  int64_t lines;               // of a panel
  mlir::Value sharedLines;     // of them a tile's, or null
};
// All of it at once.
void prefetchStreams(KernelBuilder &b, llvm::ArrayRef<Stream> streams,
                     mlir::Value at, int64_t count, int64_t perBlock, int64_t step,
                     bool isRow, const TileShare &share);

} // namespace kvc

#endif // KVC_COMPILER_CPU_LINEARTILE_H
