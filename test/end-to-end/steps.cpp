// kvc-steps calls DIR: steps of decoding with 2 threads, between two calls of getppid
// for who traces the process. They may not ask for memory.
// kvc-steps load DIR: how many steps a second 2 threads and 1 make while two other
// processes keep the machine busy.
#include "compiled_model.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// Every request of the process for memory is counted.
static std::atomic<int64_t> requests{0};

#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) &&     \
    !__has_feature(thread_sanitizer)
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) { return ++requests, __libc_malloc(size); }
void *calloc(size_t count, size_t size) {
  return ++requests, __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
  return ++requests, __libc_realloc(memory, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  return ++requests, __libc_memalign(alignment, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
  *memory = aligned_alloc(alignment, size);
  return *memory ? 0 : ENOMEM;
}
}
#endif

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

// A session that decodes.
class Steps {
public:
  Steps(const CompiledModel &model, int32_t threads) : logits(model.rowBytes) {
    kvc_session_params params;
    kvc_session_params_init(&params);
    params.threads = threads;
    must(kvc_session_create(model.model, &params, &session));
    must(kvc_sampler_create(nullptr, model.library->vocab,
                            model.library->arithmetic, &sampler));
    must(kvc_session_capacity(session, &capacity));
  }
  ~Steps() {
    kvc_sampler_destroy(sampler);
    kvc_session_destroy(session);
  }
  void step() {
    if (length == capacity) {
      must(kvc_session_reset(session));
      length = 0;
    }
    kvc_chunk chunk = {0, &token, 1, KVC_OUTPUTS_LAST};
    must(kvc_forward(session, &chunk, 1, logits.data(), 1));
    must(kvc_sampler_sample(sampler, logits.data(), &token));
    ++length;
  }
  // Steps a second, for some time.
  double rate() {
    double begin = now(), end = begin;
    int64_t count = 0;
    for (; end < begin + 0.25; ++count, end = now())
      step();
    return double(count) / (end - begin);
  }

private:
  kvc_session *session = nullptr;
  kvc_sampler *sampler = nullptr;
  std::vector<char> logits;
  int32_t token = 1;
  int64_t length = 0, capacity = 0;
};

int calls(const CompiledModel &model) {
  Steps steps(model, 2);
  for (int i = 0; i < 20; ++i) { // the worker's thread starts
    steps.step();
    usleep(20000);
  }
  int64_t before = requests;
  syscall(SYS_getppid);
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) // longer than a worker spins
      for (double end = now() + 1e-3; now() < end;)
        ;
    steps.step();
  }
  syscall(SYS_getppid);
  int64_t made = requests - before;
  if (before == 0)
    die("expected requests for memory before the steps to be counted");
  if (made)
    die("expected no request for memory in a step, but got %lld in 100",
        static_cast<long long>(made));
  printf("no request for memory in 100 steps, %lld before\n",
         static_cast<long long>(before));
  return 0;
}

pid_t keepBusy() {
  pid_t child = fork();
  if (child == 0)
    for (volatile uint64_t count = 0;; count = count + 1)
      if (count % (1 << 24) == 0 && getppid() == 1)
        _exit(0);
  return child;
}

double median(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

// A worker that has no CPU must not hold up the others: what it hasn't claimed they
// do. Where the caller waits for a worker's own share of each region, 2 threads make
// a hundredth of the steps of 1 here; as it is, 0.6 to 2 times as many.
int load(const CompiledModel &model) {
  pid_t busy[2] = {keepBusy(), keepBusy()};
  double ratio = 0;
  for (int attempt = 0; attempt < 5 && ratio < 0.2; ++attempt) {
    Steps two(model, 2), one(model, 1);
    std::vector<double> rates[2];
    for (int i = 0; i < 5; ++i) {
      rates[0].push_back(one.rate());
      rates[1].push_back(two.rate());
    }
    ratio = median(rates[1]) / median(rates[0]);
    printf("beside two busy processes: %.1f steps/s with 1 thread, %.1f with "
           "2: %.2f\n",
           median(rates[0]), median(rates[1]), ratio);
  }
  for (pid_t child : busy) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  if (ratio < 0.2)
    die("expected 2 threads to make at least 0.2 of the steps of 1");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    die("expected kvc-steps calls|load DIR");
  CompiledModel model(argv[2]);
  int result = strcmp(argv[1], "calls") == 0 ? calls(model) : load(model);
  kvc_model_close(model.model);
  return result;
}
