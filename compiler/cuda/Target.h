// What the compiler knows of a CUDA device that it compiles for.
#ifndef KVC_COMPILER_CUDA_TARGET_H
#define KVC_COMPILER_CUDA_TARGET_H

#include "compiler/cpu/Target.h"

namespace kvc {

struct DeviceTarget {
  std::string level;        // "sm_80": of later ones, too
  std::string llvmFeatures; // the version of PTX
  LinearTarget linear;      // its threads are lanes of registers
};

// The device of this level; null where it isn't known.
const DeviceTarget *findDeviceTarget(llvm::StringRef level);

// "cuda:sm_80 or cuda:sm_90"
std::string deviceTargetNames();

} // namespace kvc

#endif // KVC_COMPILER_CUDA_TARGET_H
