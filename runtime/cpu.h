// Which CPU features the machine has.
#ifndef KVC_RUNTIME_CPU_H
#define KVC_RUNTIME_CPU_H

#include "kvc/kvc.h"

namespace kvc {

// Room for the name of one feature.
constexpr int featureRoom = 32;

// True when the machine has all of `features`, names as /proc/cpuinfo spells
// them, separated by blanks; else `missing` gets the first that it lacks, or
// that this file doesn't know. AMX's tiles are registers that the system gives a
// process on request: who asks for a feature of theirs makes that request, once in
// a process, and where it is refused the machine lacks it.
bool hasFeatures(const char *features, char (&missing)[featureRoom]);

// Name of the i-th feature that this file knows; NULL past the last.
const char *knownFeature(int index);

// The first of the library's kernels that this machine runs; NULL, with the
// error set, when it runs none.
const kvc_kernels *bestKernels(const kvc_library *library);

// Those of `level`, which the caller has as `named`. On an error NULL and `*status`.
const kvc_kernels *kernelsOfLevel(const kvc_library *library, const char *named,
                                  const char *level,
                                  kvc_status *status);

} // namespace kvc

#endif
