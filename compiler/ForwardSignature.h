// @forward, the entry of a model: what each argument is, as the dialect has it
// and as a generated library has it. Nobody else counts arguments.
#ifndef KVC_COMPILER_FORWARDSIGNATURE_H
#define KVC_COMPILER_FORWARDSIGNATURE_H

#include "dialect/KVC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvc {

inline constexpr llvm::StringLiteral kForward = "forward";

// The function @forward of `module`, if it has one with a body.
mlir::func::FuncOp lookupForward(mlir::ModuleOp module);

// In the dialect:
//   @forward(tokens: tensor<?xi32>, sequences: tensor<?xi32>,
//            outputs: tensor<?xi64>, cache: !kvc.cache<...>)
//     -> (logits: tensor<?xVxT>, cache: !kvc.cache<...>)
// with T f32 or f64: the arithmetic of the model, and of the cache's numbers none
// wider.
struct ForwardArgument {
  enum : unsigned { Tokens, Sequences, Outputs, Cache, Count };
};
struct ForwardResult {
  enum : unsigned { Logits, Cache, Count };
};
// Fails after a diagnostic where `forward` has other arguments or results.
llvm::LogicalResult verifyForwardSignature(mlir::func::FuncOp forward);
// Of a function with this signature.
CacheType cacheTypeOf(mlir::func::FuncOp forward);
mlir::RankedTensorType logitsTypeOf(mlir::func::FuncOp forward);

// In a generated library: the parameters of kvc_forward_function, in the order
// of runtime/include/kvc/abi.h, which says what each holds.
struct AbiArgument {
  enum : unsigned {
    Weights, Pool, Pages, Lengths, Tokens, Sequences, Outputs, Logits,
    Workspace, Executor, Count
  };
};
// An empty @forward with them, each a memref<?xE>, for a model of `arithmetic`.
mlir::func::FuncOp createAbiForward(mlir::OpBuilder &builder, mlir::Location loc,
                                    mlir::Type arithmetic);
// Fails after a diagnostic where `forward` has others.
llvm::LogicalResult verifyAbiForward(mlir::func::FuncOp forward);
// What the caller's buffer of logits is as rows [m, vocab]: a memref of the shape
// of `logits`, the tensor.
mlir::Value viewLogits(mlir::ImplicitLocOpBuilder &b,
                       mlir::func::FuncOp abiForward,
                       mlir::RankedTensorType logits);
// The symbol by which C calls it, in the LLVM dialect.
inline constexpr llvm::StringLiteral kAbiForward = "_mlir_ciface_forward";
// Bytes of workspace that the code needs: an attribute of the lowered @forward.
inline constexpr llvm::StringLiteral kWorkspaceBytesAttr = "kvc.workspace_bytes";

} // namespace kvc

#endif // KVC_COMPILER_FORWARDSIGNATURE_H
