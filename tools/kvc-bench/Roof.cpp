#include "Roof.h"

#include "tools/kvc-run/Common.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kPiece = 1
                           << 20; // bytes that a thread claims at once, at most
constexpr int64_t kLeast =
    64 << 20; // bytes of a measurement: fewer are read again

std::atomic<int64_t> sink; // so that nothing measured is left out as unused

// Runs `work` on `threads` threads, the caller among them; seconds from when all
// are there to when the last is done.
double together(int64_t threads, const std::function<void()> &work) {
  std::atomic<int64_t> arrived{0};
  std::vector<double> begins(threads), ends(threads);
  auto run = [&](int64_t thread) {
    ++arrived;
    while (arrived.load() < threads)
      _mm_pause();
    begins[thread] = now();
    work();
    ends[thread] = now();
  };
  std::vector<std::thread> others;
  for (int64_t thread = 1; thread < threads; ++thread)
    others.emplace_back(run, thread);
  run(0);
  for (std::thread &other : others)
    other.join();
  return *std::max_element(ends.begin(), ends.end()) -
         *std::min_element(begins.begin(), begins.end());
}

// Four streams side by side, two lines of each at a time: on the machines at hand
// none of one to sixteen, with prefetches or without, read faster.
__attribute__((target("avx2"))) int64_t readPiece(const char *from,
                                                  int64_t size) {
  constexpr int64_t streams = 4, block = 2 * kLine;
  int64_t each = size / (streams * block) * block;
  __m256i sums[streams] = {};
  auto add = [&](int64_t stream, const char *line)
      __attribute__((target("avx2"))) {
    auto *halves = reinterpret_cast<const __m256i *>(line);
    sums[stream] = _mm256_xor_si256(
        sums[stream], _mm256_xor_si256(_mm256_load_si256(halves),
                                       _mm256_load_si256(halves + 1)));
  };
  for (int64_t at = 0; at < each; at += block)
    for (int64_t stream = 0; stream < streams; ++stream) {
      add(stream, from + stream * each + at);
      add(stream, from + stream * each + at + kLine);
    }
  for (int64_t at = streams * each; at < size; at += kLine)
    add(0, from + at);
  for (int64_t stream = 1; stream < streams; ++stream)
    sums[0] = _mm256_xor_si256(sums[0], sums[stream]);
  return _mm256_extract_epi64(sums[0], 0);
}

// Two units with a latency of 4 or 5 need ten chains and more.
constexpr int64_t kChains = 12, kTurns = 1 << 20;

template <typename Vector> __attribute__((always_inline)) inline int64_t fmaChains() {
  Vector sums[kChains], a = Vector{} + 0.999f, b = Vector{} + 0.001f;
  for (Vector &sum : sums)
    sum = b;
  for (int64_t turn = 0; turn < kTurns; ++turn)
    for (Vector &sum : sums)
      sum = __builtin_elementwise_fma(sum, a, b);
  for (Vector &sum : sums)
    a += sum;
  return int64_t(a[0]);
}

__attribute__((target("avx512f"))) int64_t fmaWide() { return fmaChains<__m512>(); }
__attribute__((target("avx2,fma"))) int64_t fmaNarrow() { return fmaChains<__m256>(); }

} // namespace

Bytes::Bytes(void *mapped, int64_t size)
    : begin(static_cast<const char *>(mapped)), size(size / kLine * kLine) {}

Bytes::Bytes(Bytes &&other) noexcept : begin(other.begin), size(other.size) {
  other.begin = nullptr;
}

Bytes::~Bytes() {
  if (begin)
    munmap(const_cast<char *>(begin), size_t(size));
}

Bytes Bytes::file(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0)
    die("%s: %s", path.c_str(), strerror(errno));
  void *mapped = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE,
                      descriptor, 0);
  if (mapped == MAP_FAILED)
    die("%s: %s", path.c_str(), strerror(errno));
  close(descriptor);
  madvise(mapped, size_t(status.st_size), MADV_HUGEPAGE); // as the runtime does
  return Bytes(mapped, status.st_size);
}

Bytes Bytes::memory(int64_t size) {
  size = std::max(size, kLine);
  void *mapped = mmap(nullptr, size_t(size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    die("no memory for a cache of %lld bytes to read",
        static_cast<long long>(size));
  madvise(mapped, size_t(size), MADV_HUGEPAGE);
  memset(mapped, 1, size_t(size));
  return Bytes(mapped, size);
}

double readSeconds(const std::vector<Span> &spans, int64_t threads) {
  int64_t bytes = 0;
  for (const Span &span : spans)
    bytes += span.size;
  // Some for each thread, so that none waits long for another.
  int64_t size = std::min(kPiece, (1 + bytes / (8 * threads) / kLine) * kLine);
  std::vector<Span> pieces;
  for (const Span &span : spans)
    for (int64_t at = 0; at < span.size; at += size)
      pieces.push_back(
          {span.begin + at, std::min(size, (span.size - at) / kLine * kLine)});
  size_t passes = size_t(1 + kLeast / (1 + bytes)), count = pieces.size();
  std::atomic<size_t> next{0};
  double seconds = together(threads, [&] {
    int64_t sum = 0;
    for (size_t i; (i = next++) < passes * count;)
      sum ^= readPiece(pieces[i % count].begin, pieces[i % count].size);
    sink ^= sum;
  });
  return seconds / double(passes);
}

double fmaRate(bool wide, int64_t threads) {
  double seconds =
      together(threads, [&] { sink ^= wide ? fmaWide() : fmaNarrow(); });
  return 2.0 * (wide ? 16 : 8) * double(kChains * kTurns * threads) / seconds;
}
