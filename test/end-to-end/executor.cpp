// kvc-executor DIR: the model's parallel regions on an application's threads give the
// bits of the runtime's own, and no thread is started. Prints the regions of a step.
#include "compiled_model.h"

#include <atomic>
#include <cfenv>
#include <cstring>
#include <dirent.h>
#include <thread>
#include <vector>

namespace {

// Starts a thread for every few tasks, the last ones first, some with another
// rounding mode; tries what a pool of an application might do.
struct Threads {
  kvc_executor executor; // first
  int64_t regions = 0, tasks = 0;
  const kvc_executor *expected = nullptr;
};

void parallelFor(const kvc_executor *self, kvc_task task, void *context,
                 int64_t count) {
  auto *threads = reinterpret_cast<Threads *>(const_cast<kvc_executor *>(self));
  if (threads->expected != self || count < 2)
    die("expected a region of several tasks, and the executor that was given");
  ++threads->regions;
  threads->tasks += count;
  std::vector<std::thread> some;
  int64_t size = count / 3 + 1;
  for (int64_t end = count; end > 0; end -= size)
    some.emplace_back([=] {
      fesetround(end % 2 ? FE_UPWARD : FE_DOWNWARD);
      int mode = fegetround();
      task(context, end > size ? end - size : 0, end);
      if (fegetround() != mode)
        die("expected the thread's rounding mode to come back");
    });
  for (std::thread &thread : some)
    thread.join();
}

int64_t threadsOfProcess() {
  int64_t count = 0;
  DIR *folder = opendir("/proc/self/task");
  while (folder && readdir(folder))
    ++count;
  closedir(folder);
  return count;
}

// Logits of a prompt and of some steps behind it.
std::vector<char> run(const CompiledModel &model,
                      const kvc_executor *executor) {
  constexpr int32_t text[] = {1, 5, 2, 7, 3, 0, 9, 11, 4, 4};
  constexpr int64_t prompt = 6, count = 10;
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.executor = executor;
  params.threads = executor ? 0 : 2;
  kvc_session *session = nullptr;
  int64_t before = threadsOfProcess();
  must(kvc_session_create(model.model, &params, &session));
  kvc_session_info info;
  kvc_session_info_init(&info);
  must(kvc_session_query(session, &info));
  if (executor && (threadsOfProcess() != before || info.threads != 0))
    die("expected no threads, but the session has %d", info.threads);
  auto *threads =
      reinterpret_cast<Threads *>(const_cast<kvc_executor *>(executor));
  int64_t regions = 0;
  std::vector<char> logits(size_t(count * model.rowBytes));
  kvc_chunk chunk = {0, text, prompt, KVC_OUTPUTS_ALL};
  must(kvc_forward(session, &chunk, 1, logits.data(), prompt));
  for (int64_t i = prompt; i < count; ++i) {
    chunk = {0, text + i, 1, KVC_OUTPUTS_LAST};
    regions = threads ? threads->regions : 0;
    must(
        kvc_forward(session, &chunk, 1, logits.data() + i * model.rowBytes, 1));
  }
  must(kvc_session_query(session, &info));
  if (threads && info.parallel_regions != threads->regions - regions)
    die("expected to be told of %lld regions, but got %lld",
        static_cast<long long>(threads->regions - regions),
        static_cast<long long>(info.parallel_regions));
  kvc_session_destroy(session);
  return logits;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    die("expected kvc-executor DIR");
  CompiledModel model(argv[1]);
  Threads threads{{parallelFor}};
  threads.expected = &threads.executor;
  std::vector<char> theirs = run(model, &threads.executor);
  std::vector<char> ours = run(model, nullptr);
  if (memcmp(theirs.data(), ours.data(), ours.size()) != 0)
    die("expected the bits of the runtime's own threads");
  if (threads.regions == 0)
    die("expected regions for the executor, but there were none");
  printf("%lld regions of %lld tasks in 5 calls: the same bits\n",
         static_cast<long long>(threads.regions),
         static_cast<long long>(threads.tasks));
  kvc_model_close(model.model);
  return 0;
}
