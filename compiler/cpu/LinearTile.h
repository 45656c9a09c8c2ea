// What the files of kvc.linear share: the sums of one block of inputs, by one
// class for each way of multiplying.
#ifndef KVC_COMPILER_CPU_LINEARTILE_H
#define KVC_COMPILER_CPU_LINEARTILE_H

#include "compiler/cpu/Kernels.h"
#include <memory>

namespace kvc {

// A part of a product: inputs `begin` (a multiple of kProductBlock) to before `end`
// by groups of 16 outputs of some matrices.
struct ProductBlock {
  llvm::ArrayRef<size_t> matrices;
  llvm::ArrayRef<mlir::Value> groups;
  mlir::Value begin, end;
};

class Product {
public:
  virtual ~Product() = default;
  // Makes ready what the tiles of a task share.
  virtual void prepare(const ProductBlock &block) = 0;
  // The sums of these rows, from 0: [matrices][rows][groups] of 16 lanes. `isFirst`
  // says whether they are the first that share the block.
  virtual llvm::SmallVector<mlir::Value> sum(const ProductBlock &block,
                                             llvm::ArrayRef<mlir::Value> rows,
                                             mlir::Value isFirst) = 0;
};

// Of the inputs as they are, as sums of bf16, and of the rounded ones, by matrices of
// one storage.
// `groups` groups of a matrix are shared by the tiles of a task; where it is 0, each
// block is read once.
std::unique_ptr<Product> makeFloatProduct(KernelBuilder &b,
                                          const LinearKernel &kernel,
                                          const Matrix &like, int64_t groups);
std::unique_ptr<Product> makeTilesProduct(KernelBuilder &b,
                                          const LinearKernel &kernel,
                                          const LinearTarget &target,
                                          const Matrix &like, int64_t groups);
std::unique_ptr<Product> makeIntegerProduct(KernelBuilder &b,
                                            const LinearKernel &kernel,
                                            const LinearTarget &target,
                                            const Matrix &like, int64_t groups);

// The tile of a product of the class tiles, whose sums fill the registers.
TileShape tilesShape(const LinearTarget &target, llvm::ArrayRef<Matrix> weights);

// `count` elements of the second axis of `view`, [panels][extent]..., are read at a
// time, at `at` of `panel`: asks for those that come `distance` elements later, in
// the panel itself or, at its end, in the one that is taken next, `streams` panels
// on.
void prefetchStream(KernelBuilder &b, mlir::Value view, mlir::Value panel,
                    mlir::Value at, int64_t count, int64_t streams,
                    int64_t distance);

// Bytes ahead in a stream: far enough for memory to answer, near enough for the
// first-level cache.
inline constexpr int64_t kStreamAhead = 2048;

} // namespace kvc

#endif // KVC_COMPILER_CPU_LINEARTILE_H
