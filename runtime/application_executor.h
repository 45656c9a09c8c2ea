// Parallel regions on threads that the application brings.
#ifndef KVC_RUNTIME_APPLICATION_EXECUTOR_H
#define KVC_RUNTIME_APPLICATION_EXECUTOR_H

#include "kvc/kvc.h"

namespace kvc {

// What generated code is given: passes regions on to the application's executor.
struct ApplicationExecutor {
  kvc_executor executor; // first: the address of both is one
  const kvc_executor *theirs;
  int64_t regions; // of several tasks, so far
  int64_t numerics; // a kvc_numerics, in whose environment tasks run
};

ApplicationExecutor wrapExecutor(const kvc_executor *theirs, int64_t numerics);

} // namespace kvc

#endif
