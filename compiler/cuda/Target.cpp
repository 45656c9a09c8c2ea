#include "compiler/cuda/Target.h"
#include "compiler/cuda/Launch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kvc;

// A block's shared memory is 48 KiB where the driver isn't asked for more. A thread has
// one of the sums that a CPU's lane has, and dot products of four bytes.
static constexpr int64_t kSharedBytes = 48 << 10;
static constexpr LinearTarget kLinear{
    512,    true,   false, false, {1, 4}, {{4, 2}, {8, 2}}, {{4, 1}, {8, 1}},
    /*taskRows=*/8, /*taskBytes=*/kSharedBytes / kTasksOfBlock};

// PTX 7.0, the default of sm_80, has no conversions of bf16.
static const DeviceTarget kDevices[] = {{"sm_80", "+ptx80", kLinear},
                                        {"sm_90", "+ptx80", kLinear}};

const DeviceTarget *kvc::findDeviceTarget(llvm::StringRef level) {
  const auto *found = llvm::find_if(kDevices, [&](const DeviceTarget &target) {
    return target.level == level;
  });
  return found == std::end(kDevices) ? nullptr : found;
}

std::string kvc::deviceTargetNames() {
  return llvm::join(llvm::map_range(kDevices,
                                    [](const DeviceTarget &target) {
                                      return "cuda:" + target.level;
                                    }),
                    " or ");
}
