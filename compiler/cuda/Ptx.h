// From the kernels of a CUDA device to PTX.
#ifndef KVC_COMPILER_CUDA_PTX_H
#define KVC_COMPILER_CUDA_PTX_H

#include "compiler/cuda/Target.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace kvc {

// Translates kernels of the LLVM and NVVM dialects. What PTX would round otherwise than
// the program says, or would call from a library, is an error.
llvm::Expected<std::string> generatePtx(mlir::gpu::GPUModuleOp kernels,
                                        const DeviceTarget &target);

} // namespace kvc

#endif // KVC_COMPILER_CUDA_PTX_H
