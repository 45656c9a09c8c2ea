// The reference lowering from the kvc dialect down to the LLVM dialect.
#ifndef KVC_COMPILER_REFERENCEPIPELINE_H
#define KVC_COMPILER_REFERENCEPIPELINE_H

namespace mlir {
class OpPassManager;
}

namespace kvc {

// From a verified kvc module with functions for layers to linalg on tensors,
// each weight at its row-major place in the packed file.
void buildLinalgPipeline(mlir::OpPassManager &pm);

// The same, and on until `@forward`, with the signature of
// `kvc_forward_function`, works on buffers: still loops that can be read.
void buildReferenceBuffersPipeline(mlir::OpPassManager &pm);

// The same, and on to the LLVM dialect. The code calls malloc, free and libm.
void buildReferencePipeline(mlir::OpPassManager &pm);

// Registers the three as kvc-linalg-pipeline, kvc-reference-buffers-pipeline
// and kvc-reference-pipeline.
void registerReferencePipelines();

} // namespace kvc

#endif // KVC_COMPILER_REFERENCEPIPELINE_H
