#include "cpu.h"

#include "error.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <atomic>
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kvc {

#if defined(__x86_64__)
namespace {

enum Register { EAX, EBX, ECX, EDX };

// Register state that the operating system must save, as bits of XCR0.
enum State : uint64_t { plain = 0, ymm = 0x06, zmm = 0xe6, tmm = 0x60000 };

struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};

// Bits: Intel's Software Developer's Manual, volume 2A, CPUID; AMD's
// Architecture Programmer's Manual, volume 3, appendix E. Names: Linux,
// /proc/cpuinfo.
constexpr Feature featureTable[] = {
    {"pni", 1, 0, ECX, 0, plain},
    {"ssse3", 1, 0, ECX, 9, plain},
    {"fma", 1, 0, ECX, 12, ymm},
    {"cx16", 1, 0, ECX, 13, plain},
    {"sse4_1", 1, 0, ECX, 19, plain},
    {"sse4_2", 1, 0, ECX, 20, plain},
    {"movbe", 1, 0, ECX, 22, plain},
    {"popcnt", 1, 0, ECX, 23, plain},
    {"avx", 1, 0, ECX, 28, ymm},
    {"f16c", 1, 0, ECX, 29, ymm},
    {"sse", 1, 0, EDX, 25, plain},
    {"sse2", 1, 0, EDX, 26, plain},
    {"bmi1", 7, 0, EBX, 3, plain},
    {"avx2", 7, 0, EBX, 5, ymm},
    {"bmi2", 7, 0, EBX, 8, plain},
    {"avx512f", 7, 0, EBX, 16, zmm},
    {"avx512dq", 7, 0, EBX, 17, zmm},
    {"avx512ifma", 7, 0, EBX, 21, zmm},
    {"avx512cd", 7, 0, EBX, 28, zmm},
    {"avx512bw", 7, 0, EBX, 30, zmm},
    {"avx512vl", 7, 0, EBX, 31, zmm},
    {"avx512vbmi", 7, 0, ECX, 1, zmm},
    {"avx512_vbmi2", 7, 0, ECX, 6, zmm},
    {"avx512_vnni", 7, 0, ECX, 11, zmm},
    {"avx512_bitalg", 7, 0, ECX, 12, zmm},
    {"avx512_vpopcntdq", 7, 0, ECX, 14, zmm},
    {"amx_bf16", 7, 0, EDX, 22, tmm},
    {"avx512_fp16", 7, 0, EDX, 23, zmm},
    {"amx_tile", 7, 0, EDX, 24, tmm},
    {"amx_int8", 7, 0, EDX, 25, tmm},
    {"avx_vnni", 7, 1, EAX, 4, ymm},
    {"avx512_bf16", 7, 1, EAX, 5, zmm},
    {"lahf_lm", 0x80000001, 0, ECX, 0, plain},
    {"abm", 0x80000001, 0, ECX, 5, plain},
};
constexpr int featureCount = sizeof featureTable / sizeof featureTable[0];

// XCR0; 0 where the operating system has not enabled XSAVE.
uint64_t savedState() {
  uint32_t eax, ebx, ecx, edx;
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & osxsave))
    return 0;
  asm("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return uint64_t(edx) << 32 | eax;
}

// Whether this process may use tiles: all its threads, those of earlier calls, too,
// and its children. The system refuses where a thread's alternate signal stack is too
// small for them, or a sandbox forbids it.
bool mayUseTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18; // Linux, asm/prctl.h
  static std::atomic<int> answer{-1};
  int known = answer.load(std::memory_order_relaxed);
  if (known < 0) {
    known = syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
    answer.store(known, std::memory_order_relaxed);
  }
  return known;
}

bool hasFeature(const char *name) {
  for (const Feature &feature : featureTable) {
    if (strcmp(feature.name, name) != 0)
      continue;
    uint32_t registers[4];
    return __get_cpuid_count(feature.leaf, feature.subleaf, &registers[EAX],
                             &registers[EBX], &registers[ECX],
                             &registers[EDX]) &&
           (registers[feature.reg] >> feature.bit & 1) &&
           (savedState() & feature.state) == feature.state &&
           (feature.state != tmm || mayUseTiles());
  }
  return false;
}

} // namespace

const char *knownFeature(int index) {
  return index < featureCount ? featureTable[index].name : nullptr;
}

#else // On other architectures only code without demands runs.

static bool hasFeature(const char *) { return false; }
const char *knownFeature(int) { return nullptr; }

#endif

bool hasFeatures(const char *features, char (&missing)[featureRoom]) {
  for (const char *name = features + strspn(features, " "); *name;) {
    int length = int(strcspn(name, " "));
    snprintf(missing, featureRoom, "%.*s", length, name);
    if (!hasFeature(missing))
      return false;
    name += length;
    name += strspn(name, " ");
  }
  return true;
}

const kvc_kernels *bestKernels(const kvc_library *library) {
  char missing[featureRoom];
  const kvc_kernels *last = nullptr;
  for (int64_t i = 0; i < library->kernels_count; ++i) {
    last = &library->kernels[i];
    if (hasFeatures(last->features, missing))
      return last;
  }
  fail(KVC_INCOMPATIBLE,
       "expected a machine with the CPU feature %s, which the lowest level of "
       "library %s (%s) needs, but this machine lacks it",
       missing, library->name, last->level);
  return nullptr;
}

const kvc_kernels *kernelsOfLevel(const kvc_library *library, const char *named,
                                  const char *level, kvc_status *status) {
  char missing[featureRoom];
  char levels[256] = "";
  for (int64_t i = 0; i < library->kernels_count; ++i) {
    const kvc_kernels *kernels = &library->kernels[i];
    size_t used = strlen(levels);
    snprintf(levels + used, sizeof levels - used, "%s%s", i ? ", " : "",
             kernels->level);
    if (strcmp(kernels->level, level) != 0)
      continue;
    if (hasFeatures(kernels->features, missing))
      return kernels;
    *status = fail(KVC_INCOMPATIBLE,
                   "expected a machine with the CPU feature %s, which level %s "
                   "needs, but this machine lacks it",
                   missing, level);
    return nullptr;
  }
  *status = fail(KVC_INVALID_ARGUMENT,
                 "expected %s to be one of library %s (%s), but got %s", named,
                 library->name, levels, level);
  return nullptr;
}

} // namespace kvc
