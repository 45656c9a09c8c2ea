// The CPU kernels, one function for each op of the dialect: each writes the
// loops that compute the op from buffers into a buffer.
//
// Rows are memref<?xWxT>, one row a token; weights are views of the packed file
// in panels of kLanes (Packing.h).
#ifndef KVC_COMPILER_CPU_KERNELS_H
#define KVC_COMPILER_CPU_KERNELS_H

#include "compiler/cpu/KernelBuilder.h"
#include "compiler/cpu/Target.h"
#include <memory>

namespace kvc {

// The three buffers that a cache becomes (see abi.h).
struct CacheBuffers {
  CacheType type;
  mlir::Value pool;    // memref<?xi8>
  mlir::Value pages;   // memref<?xi64>
  mlir::Value lengths; // memref<?xi64>
};

// One group of layers of a cache, whose layout reads and writes its cells.
struct GroupBuffers {
  GroupBuffers(const CacheBuffers &cache, int64_t number)
      : cache(cache), group(cache.type.getGroups()[number]),
        layout(group.getLayout()), firstPage(cache.type.getFirstPage(number)) {}

  CacheBuffers cache;
  Group group;
  LayoutAttrInterface layout;
  int64_t firstPage;

  // The row of a layer and KV head, for cells.
  mlir::Value row(KernelBuilder &b, mlir::Value layer, mlir::Value head) const;
  // Where `position` of `sequence` stands.
  CacheCell cell(KernelBuilder &b, mlir::Value sequence, mlir::Value position,
                 mlir::Value row) const;
};

// One layer's vector (the only one where `layer` is null): memref<NxE>.
mlir::Value viewVector(KernelBuilder &b, mlir::Value weights, WeightOp weight,
                       mlir::Value layer);

// One layer's matrix, as the packed file has it.
struct Matrix {
  const Storage *storage;
  // memref<PxKx16xE> of floats, memref<Pxi8> of the bytes of panels of blocks.
  mlir::Value view;
  // Where layers are stored in several ways: whether this is the layer's matrix, and
  // what is if it isn't. Null where it is in any case.
  mlir::Value isLayers = {};
  std::shared_ptr<Matrix> otherwise = {};

  // Of the outputs 16 * group to 16 * group + 15 what input k is multiplied with,
  // in the arithmetic's type.
  mlir::Value lanes(KernelBuilder &b, mlir::Value group, mlir::Value k) const;
};
Matrix viewMatrix(KernelBuilder &b, mlir::Value weights, NamedWeight weight,
                  mlir::Value layer);

// Where the words of a rounded row's block stand: eight of four bytes, and then
// these: sums of all 32 bytes, and of the first 16, times -kSumScale, the zero of
// the widest quants. Numbers stand by their bits.
struct RoundedRow {
  enum { Scale = 8, NegatedSum, NegatedLowSum, ScaledSum, Words };
  static constexpr int64_t kSumScale = 128;
};

// One output of a linear layer: act(x w^T + bias).
struct LinearKernel {
  mlir::Location line; // of the op in the model's text
  int64_t inputs;      // of a row
  mlir::Value input = {}; // [rows][inputs]
  // Null, or what blocks are multiplied with: [rows][inputs / 32][RoundedRow::Words]
  // i32
  mlir::Value rounded = {};
  // Null, or what bf16 is multiplied with, the inputs rounded to it: [rows][inputs] of
  // the arithmetic's type or, where the machine multiplies two at a time,
  // [rows][inputs / 2] i32 (LinearPairs.cpp), with zeros up to a multiple of 32 inputs
  mlir::Value narrowed = {};
  // One matrix, or two: the gate and what it gates.
  llvm::SmallVector<Matrix> weights = {};
  // A bias for each matrix, or null.
  llvm::SmallVector<mlir::Value> biases = {};
  std::optional<Activation> activation = {}; // of the first
  mlir::Value residual = {};                // or null; may be the output's buffer
  mlir::Value output = {};
  bool isLogits = false; // the caller's: every NaN is the same
  // Where tiles multiply them, the numbers of the input, as it is and narrowed, as sums
  // of bf16: [inputs / 32][3 or 1][rows][32], the smallest first.
  llvm::SmallDenseMap<mlir::Value, mlir::Value, 2> parts{};
  // Of the class tiles: numbers are multiplied as sums of bf16 (LinearTiles.cpp).
  bool isTiles = false;

  // Floats that the matrix is multiplied with.
  mlir::Value inputOf(const Matrix &matrix) const {
    return narrowed && matrix.storage->rounding == Rounding::BF16 ? narrowed : input;
  }
  // Whether these are two in a word.
  bool isPairs(const Matrix &matrix) const {
    return llvm::cast<mlir::MemRefType>(inputOf(matrix).getType())
        .getElementType()
        .isInteger(32);
  }
  // Whether all of them are, however a layer's matrices are stored.
  bool arePairs() const {
    return llvm::all_of(weights, [&](const Matrix &matrix) {
      const Matrix *stored = &matrix;
      while (stored && isPairs(*stored))
        stored = stored->otherwise.get();
      return !stored;
    });
  }
};
// Kernels that need nothing of each other and have one number of rows, as one
// parallel region.
void emitLinear(KernelBuilder &b, llvm::ArrayRef<LinearKernel> kernels,
                const LinearTarget &target);

// Rounds rows for products with matrices in blocks and in bf16: to
// LinearKernel::rounded and narrowed, one by one or as pairs.
void emitRoundRows(KernelBuilder &b, mlir::Value input, mlir::Value output);
void emitNarrowRows(KernelBuilder &b, mlir::Value input, mlir::Value output);
void emitPairRows(KernelBuilder &b, mlir::Value input, mlir::Value output);
void emitEmbed(KernelBuilder &b, mlir::Value ids, const Matrix &table,
               mlir::Value output);
void emitSelect(KernelBuilder &b, mlir::Value input, mlir::Value rows,
                mlir::Value output);
void emitRMSNorm(KernelBuilder &b, mlir::Value input, mlir::Value weight,
                 double epsilon, mlir::Value output);
void emitLayerNorm(KernelBuilder &b, mlir::Value input, mlir::Value weight,
                   mlir::Value bias, double epsilon, mlir::Value output);
// output[n, i] = combine(inputs[0][n, i], ...); an input may be the output.
void emitElementwise(
    KernelBuilder &b, llvm::ArrayRef<mlir::Value> inputs, mlir::Value output,
    llvm::function_ref<mlir::Value(mlir::ValueRange)> combine);
// `output` may be the input's buffer.
void emitRotary(KernelBuilder &b, RotaryOp op, mlir::Value input,
                mlir::Value positions, mlir::Value output);

void emitPositions(KernelBuilder &b, const CacheBuffers &cache,
                   mlir::Value sequences, mlir::Value positions);
void emitAppend(KernelBuilder &b, const GroupBuffers &cache, mlir::Value keys,
                mlir::Value values, mlir::Value layer, mlir::Value positions,
                mlir::Value sequences);
void emitAttend(KernelBuilder &b, const GroupBuffers &cache,
                mlir::Value queries, mlir::Value layer, mlir::Value positions,
                mlir::Value sequences, double scale,
                std::optional<int64_t> window, mlir::Value output,
                const LinearTarget &target);

} // namespace kvc

#endif // KVC_COMPILER_CPU_KERNELS_H
