// The pipelines of the compiler, as plain functions. docs/pipeline.md shows
// what each stage looks like.
#ifndef KVC_COMPILER_PIPELINES_H
#define KVC_COMPILER_PIPELINES_H

#include "compiler/cpu/Target.h"
#include "mlir/Pass/PassManager.h"

namespace kvc {

// Tokens that one call of a generated forward function computes at most; the
// runtime cuts longer calls, which changes no bit.
inline constexpr int64_t kMaxTokens = 512;

// From a module as it is written to the verified one: @forward alone, without
// calls. A test may compile what a verifier rejects.
void buildVerifyPipeline(mlir::OpPassManager &pm, bool checksContract = true,
                         bool checksForward = true);

// From the verified module to the fused form (`--emit=fused`), each weight in its
// place.
void buildFusedPipeline(mlir::OpPassManager &pm);

// From the fused form to vectors and loops over buffers (`--emit=kernels`).
void buildKernelPipeline(mlir::OpPassManager &pm,
                         const TargetDescription &target);

// From there to the LLVM dialect.
void buildLLVMPipeline(mlir::OpPassManager &pm);

// The reference lowering: from the verified module to linalg on tensors, each
// weight at its row-major place in the packed file.
void buildLinalgPipeline(mlir::OpPassManager &pm);

// The same, and on until `@forward`, with the signature of
// `kvc_forward_function`, works on buffers: still loops that can be read.
void buildReferenceBuffersPipeline(mlir::OpPassManager &pm);

// The same, and on to the LLVM dialect. The code calls malloc, free and libm.
void buildReferencePipeline(mlir::OpPassManager &pm);

// Registers the three as kvc-linalg-pipeline, kvc-reference-buffers-pipeline
// and kvc-reference-pipeline, each from calls that are inlined first.
void registerReferencePipelines();

} // namespace kvc

#endif // KVC_COMPILER_PIPELINES_H
