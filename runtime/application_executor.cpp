#include "application_executor.h"

#include "float_environment.h"

namespace kvc {
namespace {

struct Region {
  kvc_task task;
  void *context;
  int64_t numerics;
};

// On a thread that we know nothing of.
void runTasks(void *context, int64_t begin, int64_t end) {
  auto *region = static_cast<const Region *>(context);
  FloatEnvironment environment(region->numerics);
  region->task(region->context, begin, end);
}

void parallelFor(const kvc_executor *self, kvc_task task, void *context,
                 int64_t count) {
  auto *wrapper =
      reinterpret_cast<ApplicationExecutor *>(const_cast<kvc_executor *>(self));
  if (count <= 0)
    return;
  if (count == 1) {
    task(context, 0, 1);
    return;
  }
  Region region = {task, context, wrapper->numerics};
  ++wrapper->regions;
  wrapper->theirs->parallel_for(wrapper->theirs, runTasks, &region, count);
}

} // namespace

ApplicationExecutor wrapExecutor(const kvc_executor *theirs, int64_t numerics) {
  return {{parallelFor}, theirs, 0, numerics};
}

} // namespace kvc
