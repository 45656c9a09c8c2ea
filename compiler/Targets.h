// What `--target` names: levels of the CPU, and devices beside it.
#ifndef KVC_COMPILER_TARGETS_H
#define KVC_COMPILER_TARGETS_H

#include "compiler/cuda/Target.h"

namespace kvc {

struct Targets {
  std::vector<TargetDescription> cpus; // best first, at least one
  bool isForAnyMachine = false;        // they are the default ones
  std::vector<DeviceTarget> devices;   // best first
};

// Reads "cpu:x86-64-v3", "cpu:native,cuda:sm_80,sm_90": what has no kind is of the kind
// before it. The CPU is a target in any case, of any machine where none is named.
llvm::Expected<Targets> parseTargets(llvm::StringRef option);

} // namespace kvc

#endif // KVC_COMPILER_TARGETS_H
