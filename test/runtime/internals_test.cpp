// kvc-runtime-internals GROUP: parts of the runtime that no call shows alone.
#include "application_executor.h"
#include "check.h"
#include "checksum.h"
#include "cpu.h"
#include "float_environment.h"
#include "memory.h"
#include "metadata.h"
#include "params.h"
#include "threads.h"

#include <atomic>
#include <errno.h>
#include <initializer_list>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <memory>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// A struct of some second version: what an application of the first one gets.
struct Settings {
  uint32_t size;
  int32_t old;
  int64_t added;
};
template <> inline constexpr uint32_t kvc::firstSize<Settings> = 8;

namespace {

// Every feature that we detect is what the kernel says in /proc/cpuinfo.
void cpu() {
  static char flags[1 << 16] = " ";
  FILE *file = fopen("/proc/cpuinfo", "r");
  CHECK(file);
  while (fgets(flags + 1, sizeof flags - 2, file) &&
         strncmp(flags + 1, "flags", 5) != 0)
    ;
  fclose(file);
  CHECK(strncmp(flags + 1, "flags", 5) == 0);
  flags[strlen(flags) - 1] = ' '; // the line's end
  char missing[kvc::featureRoom];
  int known = 0, present = 0;
  for (; const char *name = kvc::knownFeature(known); ++known) {
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    bool listed = strstr(flags, word) != nullptr;
    if (kvc::hasFeatures(name, missing) != listed) {
      fprintf(stderr, "%s: /proc/cpuinfo says %d\n", name, listed);
      exit(1);
    }
    present += listed;
  }
  CHECK(known > 20 && present > 5);
  CHECK(kvc::hasFeatures("", missing));
  CHECK(kvc::hasFeatures("  sse2  sse ", missing));
  CHECK(!kvc::hasFeatures("sse2 no_such_thing sse", missing));
  CHECK(strcmp(missing, "no_such_thing") == 0);
}

// Where the system refuses tiles, as a sandbox does, the machine lacks them, and the
// next level is taken. (Where the machine has none, nothing is refused.)
void tiles() {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_arch_prctl},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  sock_fprog filter = {4, program};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
  char missing[kvc::featureRoom];
  for (const char *name : {"amx_tile", "amx_int8", "amx_bf16"})
    CHECK(!kvc::hasFeatures(name, missing) && strcmp(missing, name) == 0);
  const kvc_kernels kernels[] = {{"x86-64-v4-amx", "amx_tile", nullptr},
                                 {"any", "", nullptr}};
  kvc_library library = {};
  library.name = "fake";
  library.kernels_count = 2;
  library.kernels = kernels;
  CHECK(kvc::bestKernels(&library) == &kernels[1]);
  kvc_status status = KVC_OK;
  CHECK(!kvc::kernelsOfLevel(&library, "KVC_CPU", "x86-64-v4-amx", &status));
  CHECK(status == KVC_INCOMPATIBLE);
  CHECK(strcmp(kvc_last_error(),
               "expected a machine with the CPU feature amx_tile, which level "
               "x86-64-v4-amx needs, but this machine lacks it") == 0);
}

// What readMetadata says of a text that stands alone in its memory, so that a
// sanitizer sees a read beside it; `value` gets the field "k".
const char *scan(const char *text, int64_t length, char (&value)[16]) {
  auto header = std::make_unique<char[]>(length);
  memcpy(header.get(), text, length);
  kvc::MetadataField field = {"k", nullptr, 0};
  int64_t at = -1;
  const char *expected =
      kvc::readMetadata(header.get(), length, &field, 1, &at);
  CHECK(at >= 0 && at <= length);
  snprintf(value, sizeof value, "%.*s", int(field.length),
           field.text ? field.text : "");
  return expected;
}

void metadata() {
  const char *const good[] = {
      R"({"__metadata__":{"k":"v"}})",
      R"( { "a" : [1,{"b":[]},-2.5e3,true,null] , "__metadata__" :
          { "j" : "x" , "k" : "v" } , "c" : "}" }  )",
      R"({"a":{"__metadata__":{"k":"no"}},"__metadata__":{"k":"v"},"d":{}})",
      R"({"\"__metadata__":{"k":"no"},"__metadata__":{"k":"v","l":"\\"}})",
  };
  char value[16];
  for (const char *text : good) {
    int64_t length = int64_t(strlen(text));
    CHECK(scan(text, length, value) == nullptr);
    CHECK(strcmp(value, "v") == 0);
    while (length > 0 && text[length - 1] == ' ')
      --length;
    for (int64_t cut = 0; cut < length; ++cut)
      CHECK(scan(text, cut, value) != nullptr);
  }
  const char *const bad[] = {"",
                             "x",
                             "{}}",
                             "{]",
                             "{\"a\":}",
                             "{\"a\":,}",
                             "{\"a\":1,}",
                             "{\"a\" 1}",
                             "{a:1}",
                             "{\"a\":1 \"b\":2}",
                             "{\"__metadata__\":\"k\"}",
                             "{\"__metadata__\":{\"k\":1}}",
                             "{\"__metadata__\":{\"k\":\"\\\"}}"};
  for (const char *text : bad)
    CHECK(scan(text, int64_t(strlen(text)), value) != nullptr);
  CHECK(scan("{}", 2, value) == nullptr && !*value);

  // Whatever byte stands anywhere, the scan ends.
  for (const char *text : good)
    for (size_t i = 0, length = strlen(text); i < length; ++i)
      for (int byte = 0; byte < 256; ++byte) {
        char broken[128] = "";
        CHECK(length < sizeof broken);
        memcpy(broken, text, length);
        broken[i] = char(byte);
        scan(broken, int64_t(length), value);
      }
  CHECK(strcmp(scan("{\"a\":[\0]}", 9, value), "a value") == 0);
  CHECK(strcmp(scan("{\"a\":\1}", 7, value), "a value") == 0);

  // Depth costs no stack.
  constexpr int64_t depth = 1 << 20;
  auto deep = std::make_unique<char[]>(depth);
  memset(deep.get(), '[', depth);
  memcpy(deep.get(), "{\"a\":", 5);
  CHECK(scan(deep.get(), depth, value) != nullptr);
}

// A region that counts how often each task is done.
struct Region {
  std::unique_ptr<std::atomic<int>[]> done;
  int64_t count;
};

void countTasks(void *context, int64_t begin, int64_t end) {
  auto *region = static_cast<Region *>(context);
  CHECK(0 <= begin && begin < end && end <= region->count);
  for (int64_t i = begin; i < end; ++i)
    region->done[i].fetch_add(1, std::memory_order_relaxed);
}

// What a worker blocks.
struct Masks {
  pthread_t caller;
  sigset_t worker;
  std::atomic<int> workers;
};

void readMask(void *context, int64_t, int64_t) {
  auto *masks = static_cast<Masks *>(context);
  if (!pthread_equal(pthread_self(), masks->caller) &&
      masks->workers.exchange(1) == 0)
    CHECK(pthread_sigmask(SIG_BLOCK, nullptr, &masks->worker) == 0);
}

void runRegion(const kvc_executor *executor, int64_t count) {
  Region region = {std::make_unique<std::atomic<int>[]>(count), count};
  executor->parallel_for(executor, countTasks, &region, count);
  for (int64_t i = 0; i < count; ++i)
    CHECK_EQUAL(region.done[i].load(std::memory_order_relaxed), 1);
}

// Each task once, for any count and number of threads, with sleeps between
// regions and without; plain data written in a region is seen after it.
void threads() {
  for (int32_t count : {1, 2, 3, 8}) {
    kvc::ThreadPool *pool = nullptr;
    CHECK_OK(kvc::createThreads({}, count, KVC_NUMERICS_FMA, &pool));
    const kvc_executor *executor = kvc::executorOf(pool);
    for (int64_t tasks = 0; tasks < 200; ++tasks)
      runRegion(executor, tasks);
    runRegion(executor, 100000);
    for (int i = 0; i < 3000; ++i)
      runRegion(executor, 1 + i % 37);
    for (int i = 0; i < 20; ++i) {
      usleep(3000); // longer than a worker spins
      runRegion(executor, 50);
    }
    int64_t plain[64] = {0};
    auto increment = [](void *context, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ++static_cast<int64_t *>(context)[i];
    };
    for (int i = 0; i < 2000; ++i)
      executor->parallel_for(executor, increment, plain, 64);
    for (int64_t value : plain)
      CHECK_EQUAL(value, 2000);
    kvc::destroyThreads(pool);
  }
  CHECK(kvc::allowedCpus() >= 1);

  // Workers block what is not their own fault.
  kvc::ThreadPool *pool = nullptr;
  CHECK_OK(kvc::createThreads({}, 2, KVC_NUMERICS_FMA, &pool));
  Masks masks = {pthread_self(), {}, {0}};
  while (masks.workers.load() == 0)
    kvc::executorOf(pool)->parallel_for(kvc::executorOf(pool), readMask, &masks,
                                        1000);
  kvc::destroyThreads(pool);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    CHECK(sigismember(&masks.worker, fault) == 0);
  for (int signal : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGPROF})
    CHECK(sigismember(&masks.worker, signal) == 1);
}

// Tasks on a worker, and on an application's thread, find the environment of the
// class of numerics, and leave the application's thread its own.
void environments() {
  struct Seen {
    pthread_t caller;
    std::atomic<int> kept, zero;
  };
  auto isKept = [](volatile float denormal) { return denormal * 1.0f != 0; };
  auto look = [](void *context, int64_t, int64_t) {
    auto *seen = static_cast<Seen *>(context);
    volatile float denormal = 1e-40f;
    if (!pthread_equal(pthread_self(), seen->caller))
      ++(denormal * 1.0f != 0 ? seen->kept : seen->zero);
  };
  for (int64_t numerics : {KVC_NUMERICS_FMA, KVC_NUMERICS_TILES}) {
    bool zero = numerics == KVC_NUMERICS_TILES;
    Seen seen = {pthread_self(), {0}, {0}};
    kvc::ThreadPool *pool = nullptr;
    CHECK_OK(kvc::createThreads({}, 2, numerics, &pool));
    while (seen.kept + seen.zero == 0)
      kvc::executorOf(pool)->parallel_for(kvc::executorOf(pool), look, &seen, 1000);
    kvc::destroyThreads(pool);
    CHECK((seen.kept != 0) == !zero && (seen.zero != 0) == zero);

    seen.caller = {};
    seen.kept = seen.zero = 0;
    kvc_executor theirs = {[](const kvc_executor *, kvc_task task, void *context,
                              int64_t count) { task(context, 0, count); }};
    kvc::ApplicationExecutor executor = kvc::wrapExecutor(&theirs, numerics);
    executor.executor.parallel_for(&executor.executor, look, &seen, 2);
    CHECK_EQUAL(seen.kept, zero ? 0 : 1);
    CHECK_EQUAL(seen.zero, zero ? 1 : 0);
    CHECK(isKept(1e-40f));
    {
      kvc::FloatEnvironment environment(numerics);
      CHECK(isKept(1e-40f) == !zero);
    }
    CHECK(isKept(1e-40f));
  }
}

// Prints what an empty region costs, the best of many runs; for reading, not for
// judging.
void dispatch() {
  kvc::ThreadPool *pool = nullptr;
  CHECK_OK(kvc::createThreads({}, kvc::allowedCpus(), KVC_NUMERICS_FMA, &pool));
  const kvc_executor *executor = kvc::executorOf(pool);
  constexpr int runs = 500, regions = 200;
  double best = 1;
  for (int run = 0; run < runs; ++run) {
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < regions; ++i)
      executor->parallel_for(
          executor, [](void *, int64_t, int64_t) {}, nullptr,
          kvc::allowedCpus());
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = double(end.tv_sec - begin.tv_sec) +
                     1e-9 * double(end.tv_nsec - begin.tv_nsec);
    best = seconds / regions < best ? seconds / regions : best;
  }
  printf("%d threads, empty region: %.3f us\n", kvc::allowedCpus(), 1e6 * best);
  kvc::destroyThreads(pool);
}

// What /proc/self/smaps says of the mapping of an address.
bool isAdvisedHuge(const char *address) {
  FILE *file = fopen("/proc/self/smaps", "r");
  CHECK(file);
  char line[512];
  bool inside = false, advised = false;
  while (fgets(line, sizeof line, file)) {
    unsigned long long begin, end;
    if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
      inside = uintptr_t(address) >= begin && uintptr_t(address) < end;
    if (inside && strncmp(line, "VmFlags:", 8) == 0)
      advised = strstr(line, " hg") != nullptr;
  }
  fclose(file);
  return advised;
}

void params() {
  Settings older = {8, 5, -1}; // the application knows of 8 bytes
  Settings values = {16, 1, 2};
  CHECK_OK(kvc::readParams(&values, &older, "Settings"));
  CHECK(values.old == 5 && values.added == 0);
  values = {16, 3, 4};
  CHECK_OK(kvc::writeInfo(&older, values, "Settings"));
  CHECK(older.old == 3 && older.added == -1);
  CHECK_EQUAL(older.size, 8);
  Settings zero = {0, 0, 7}; // which may end before `added`
  CHECK_OK(kvc::readParams(&values, &zero, "Settings"));
  CHECK(values.old == 0 && values.added == 0);
  CHECK_OK(kvc::initSized(&zero, 8, "zero", "Settings"));
  CHECK(zero.size == 8 && zero.added == 7);
  older.size = 12;
  CHECK_EQUAL(kvc::readParams(&values, &older, "Settings"),
              KVC_INVALID_ARGUMENT);
}

// Memory that is asked to be in huge pages begins with one, and the system is told;
// what is smaller than one isn't. All of it is there, and given back.
void memory() {
  FILE *setting = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  for (int64_t bytes : {int64_t(1), kvc::hugePageBytes - 1, kvc::hugePageBytes,
                        3 * kvc::hugePageBytes + 4096}) {
    kvc::Mapping mapping = {};
    CHECK(kvc::map({}, &mapping, bytes, /*hugePages=*/true));
    bool huge = bytes >= kvc::hugePageBytes;
    CHECK(!huge || uintptr_t(mapping.address) % kvc::hugePageBytes == 0);
    CHECK(mapping.address + bytes <=
          static_cast<char *>(mapping.base) + mapping.mapped);
    mapping.address[0] = mapping.address[bytes - 1] = 1;
    CHECK(!setting || isAdvisedHuge(mapping.address) == huge);
    kvc::unmap({}, &mapping);
    CHECK(!mapping.address && !mapping.base);
  }
  kvc::Mapping mapping = {};
  CHECK(!kvc::map({}, &mapping, INT64_MAX, true) && !mapping.base);
  if (setting)
    fclose(setting);
  else
    printf("not looked at: whether the system was told, which has no huge pages\n");
}

// The check value of the CRC catalogues for CRC-32C, and the examples of RFC
// 3720, appendix B.4.
void checksum() {
  CHECK_EQUAL(kvc::checksum(0, "123456789", 9), 0xe3069283);
  CHECK_EQUAL(kvc::checksum(kvc::checksum(0, "1234", 4), "56789", 5),
              0xe3069283);
  unsigned char bytes[32] = {};
  CHECK_EQUAL(kvc::checksum(0, bytes, 32), 0x8a9136aa);
  memset(bytes, 0xff, sizeof bytes);
  CHECK_EQUAL(kvc::checksum(0, bytes, 32), 0x62a8ab43);
  CHECK_EQUAL(kvc::checksum(0, bytes, 0), 0);
}

} // namespace

int main(int argc, char **argv) {
  const struct {
    const char *name;
    void (*run)();
  } groups[] = {{"cpu", cpu},
                {"metadata", metadata},
                {"tiles", tiles},
                {"threads", threads},
                {"environments", environments},
                {"checksum", checksum},
                {"params", params},
                {"dispatch", dispatch},
                {"memory", memory}};
  for (const auto &group : groups)
    if (argc == 2 && strcmp(group.name, argv[1]) == 0) {
      group.run();
      printf("%s: passed\n", argv[1]);
      return 0;
    }
  fprintf(stderr, "expected a group of checks\n");
  return 1;
}
