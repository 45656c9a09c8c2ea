#include "application_executor.h"

#include "float_environment.h"

namespace kvc {
namespace {

struct Region {
  kvc_task task;
  void *context;
};

// On a thread that we know nothing of.
void runTasks(void *context, int64_t begin, int64_t end) {
  FloatEnvironment environment;
  auto *region = static_cast<const Region *>(context);
  region->task(region->context, begin, end);
}

void parallelFor(const kvc_executor *self, kvc_task task, void *context,
                 int64_t count) {
  const kvc_executor *theirs =
      reinterpret_cast<const ApplicationExecutor *>(self)->theirs;
  if (count <= 0)
    return;
  if (count == 1) {
    task(context, 0, 1);
    return;
  }
  Region region = {task, context};
  theirs->parallel_for(theirs, runTasks, &region, count);
}

} // namespace

ApplicationExecutor wrapExecutor(const kvc_executor *theirs) {
  return {{parallelFor}, theirs};
}

} // namespace kvc
