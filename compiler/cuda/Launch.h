// How a task of the kernels' form (scf.parallel, vectors of 16 lanes) is laid out on a
// CUDA device: a lane is a thread, a task half a warp, a block one warp.
#ifndef KVC_COMPILER_CUDA_LAUNCH_H
#define KVC_COMPILER_CUDA_LAUNCH_H

#include "dialect/KVC.h"

namespace kvc {

inline constexpr int64_t kLaneThreads = kLanes;  // of a task
inline constexpr int64_t kTasksOfBlock = 2;
inline constexpr llvm::StringLiteral kKernelModule = "kernels"; // the gpu.module

} // namespace kvc

#endif // KVC_COMPILER_CUDA_LAUNCH_H
