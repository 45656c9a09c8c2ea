// The state of kvc-lower-to-kernels: where the values of @forward are while its
// ops become kernels, in order.
#ifndef KVC_COMPILER_CPU_FORWARDLOWERING_H
#define KVC_COMPILER_CPU_FORWARDLOWERING_H

#include "compiler/cpu/Kernels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace kvc {

class ForwardLowering {
public:
  ForwardLowering(mlir::func::FuncOp forward, const LinearTarget &target)
      : forward(forward), target(target) {}
  mlir::LogicalResult run();

private:
  mlir::LogicalResult lowerBlock(KernelBuilder &b, mlir::Block &block);
  mlir::LogicalResult lower(KernelBuilder &b, mlir::Operation *op);
  mlir::LogicalResult lowerFor(KernelBuilder &b, mlir::scf::ForOp loop);
  mlir::LogicalResult lowerIf(KernelBuilder &b, mlir::scf::IfOp choice);
  void copyRows(KernelBuilder &b, mlir::Value from, mlir::Value to);
  void lowerArithmetic(KernelBuilder &b, mlir::Operation *op);

  mlir::Value buffer(mlir::Value tensor) { return buffers.lookup(tensor); }
  // A buffer for `tensor`, with as many rows as `like` (a tensor, too).
  mlir::Value allocate(KernelBuilder &b, mlir::Value tensor, mlir::Value like);
  // The same, or the buffer of `operand` if that is not needed any more.
  mlir::Value reuseOrAllocate(KernelBuilder &b, mlir::Value tensor,
                              mlir::Value operand);
  bool diesAt(mlir::Value tensor, mlir::Operation *op);
  // A weight of `op`, as a vector (null without a symbol) or as a matrix.
  mlir::Value vector(KernelBuilder &b, WeightUser op,
                     mlir::FlatSymbolRefAttr symbol);
  Matrix matrix(KernelBuilder &b, WeightUser op,
                mlir::FlatSymbolRefAttr symbol);
  mlir::Value scalar(mlir::Value value) { return scalars.lookup(value); }
  // The kernel of a linear or a gated linear layer, with a buffer for its result.
  // An input after rounding, as LinearKernel has it, made where it is null and needed.
  struct RoundedInput {
    mlir::Value rounded, narrowed;
  };
  LinearKernel linearKernel(KernelBuilder &b, mlir::Operation *op,
                            RoundedInput &made);

  mlir::func::FuncOp forward;
  const LinearTarget target;
  mlir::func::FuncOp lowered;
  CacheBuffers cache;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;   // tensor to memref
  llvm::DenseMap<mlir::Value, mlir::Value> rowCounts; // tensor to index
  mlir::IRMapping scalars;                            // of type index and i1
  mlir::Value logits;                                 // the tensor
  mlir::Value logitsBuffer;                           // where the caller wants it
};

} // namespace kvc

#endif // KVC_COMPILER_CPU_FORWARDLOWERING_H
