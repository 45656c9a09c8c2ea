// The pipelines of the compiler, as plain functions. docs/pipeline.md shows
// what each stage looks like.
#ifndef KVC_COMPILER_PIPELINES_H
#define KVC_COMPILER_PIPELINES_H

#include "compiler/cuda/Target.h"
#include "mlir/Pass/PassManager.h"

namespace kvc {

// Tokens that one call of a generated forward function computes at most; the
// runtime cuts longer calls, which changes no bit. The workspace grows with it: of a
// model of 135M parameters in 4 bits it takes 3 % of the weights. Half as many as 512
// cost a prompt of 512 nothing with 1 thread and 3 to 5 % with 2 (SmolLM2, q8_0).
inline constexpr int64_t kMaxTokens = 256;

// From a module as it is written to its one normal form: @forward alone, without
// calls, verified, the growth of lengths left to the runtime. A test may compile what
// a verifier rejects.
void buildNormalFormPipeline(mlir::OpPassManager &pm, bool checksContract = true,
                             bool checksForward = true);

// From the normal form to the fused one (`--emit=fused`), with the offset of each
// weight in the packed file.
void buildFusedPipeline(mlir::OpPassManager &pm);

// From the fused form to vectors and loops over buffers (`--emit=kernels`).
void buildKernelPipeline(mlir::OpPassManager &pm,
                         const TargetDescription &target);

// From there to the LLVM dialect.
void buildLLVMPipeline(mlir::OpPassManager &pm, const TargetDescription &target,
                       bool isTiles);

// For a CUDA device: from the fused form to launches by the host and kernels of single
// numbers (`--emit=gpu`); from there, of the kernels, to the LLVM and NVVM dialects; and
// of what the host does, without them.
void buildLaunchPipeline(mlir::OpPassManager &pm, const DeviceTarget &target);
void buildNVVMPipeline(mlir::OpPassManager &pm);
void buildHostPipeline(mlir::OpPassManager &pm);

// The reference lowering: from the normal form to linalg on tensors, each weight at
// its row-major offset in the packed file.
void buildLinalgPipeline(mlir::OpPassManager &pm);

// The same, and on until `@forward`, with the signature of
// `kvc_forward_function`, works on buffers: still loops that can be read.
void buildReferenceBuffersPipeline(mlir::OpPassManager &pm);

// The same, and on to the LLVM dialect. The code calls malloc, free and libm.
void buildReferencePipeline(mlir::OpPassManager &pm);

// Registers the three as kvc-linalg-pipeline, kvc-reference-buffers-pipeline
// and kvc-reference-pipeline, each from a module as it is written, which nobody
// verifies.
void registerReferencePipelines();

} // namespace kvc

#endif // KVC_COMPILER_PIPELINES_H
