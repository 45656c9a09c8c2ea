#include "Equivalence.h"

#include "Common.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int64_t kSequences = 3;
constexpr int64_t kTokens = 80; // of a sequence: past a tile of 64 keys

// What goes into one session: in each step, chunks of some of the sequences.
using Batch = std::vector<std::vector<kvc_chunk>>;

// A session of each CPU level and number of threads.
struct Place {
  kvc_session *session;
  std::string name;
};

class Check {
public:
  Check(const kvc_library *library, const kvc_model *model,
        const Options &options, Progress &progress)
      : library(library), model(model), options(options), progress(progress),
        random(options.seed) {
    kvc_model_info_init(&info);
    must(kvc_model_query(model, &info));
    int64_t capacity = options.capacity ? options.capacity : info.capacity;
    count = std::min(kTokens, capacity);
    element = info.arithmetic == KVC_TYPE_F64 ? 8 : 4;
    rowBytes = info.vocab * element;
    for (int64_t s = 0; s < kSequences; ++s)
      for (int64_t t = 0; t < count; ++t)
        tokens[s].push_back(int32_t(below(info.vocab)));
  }

  bool run();

private:
  int64_t below(int64_t bound) { return int64_t(random() % uint64_t(bound)); }
  kvc_session *open(const char *level, int32_t threads, bool poison);
  void openAll();
  void forwardFull();
  Batch randomBatch();
  void forwardRagged(const Batch &batch, const Place &place);
  void compare(const char *row, int64_t sequence, int64_t position,
               const std::string &where);

  const kvc_library *library;
  const kvc_model *model;
  const Options &options;
  Progress &progress;
  std::mt19937_64 random;
  kvc_model_info info;
  int64_t count, element, rowBytes;
  std::vector<Place> places;
  std::string levels; // of these
  std::vector<int32_t> tokens[kSequences];
  std::vector<char> full[kSequences]; // [count, vocab]
  int64_t rows = 0, different = 0;
};

// Null where the machine lacks the level.
kvc_session *Check::open(const char *level, int32_t threads, bool poison) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = kSequences;
  params.capacity = options.capacity;
  params.threads = threads;
  params.cpu_level = level;
  params.poison = poison;
  kvc_session *session = nullptr;
  kvc_status status = kvc_session_create(model, &params, &session);
  if (status == KVC_INCOMPATIBLE)
    return nullptr;
  must(status);
  return session;
}

void Check::openAll() {
  for (int64_t i = 0; i < library->kernels_count; ++i) {
    std::string level = library->kernels[i].level;
    kvc_session *one = open(level.c_str(), 1, options.poison);
    if (!one) {
      printf("skipped: %s, which this machine lacks\n", level.c_str());
      continue;
    }
    places.push_back({one, level + ", 1 thread"});
    places.push_back({open(level.c_str(), 2, options.poison), level + ", 2 threads"});
    levels += (levels.empty() ? "" : " and ") + level;
  }
}

// Each sequence alone, in one piece, on one thread: the full prefix. Never poisoned:
// where both read what nobody has written, NaN would equal NaN.
void Check::forwardFull() {
  kvc_session *session = open(nullptr, 1, /*poison=*/false);
  for (int64_t s = 0; s < kSequences; ++s) {
    full[s].resize(count * rowBytes);
    kvc_chunk chunk = {s, tokens[s].data(), count, KVC_OUTPUTS_ALL};
    must(kvc_forward(session, &chunk, 1, full[s].data(), count));
  }
  kvc_session_destroy(session);
}

void Check::compare(const char *row, int64_t sequence, int64_t position,
                    const std::string &where) {
  const char *expected = &full[sequence][position * rowBytes];
  ++rows;
  if (!memcmp(row, expected, rowBytes) || different++)
    return;
  int64_t at = 0;
  while (!memcmp(row + at * element, expected + at * element, element))
    ++at;
  auto number = [&](const char *from) {
    double wide;
    float narrow;
    memcpy(&wide, from + at * element, element == 8 ? 8 : 0);
    memcpy(&narrow, from + at * element, 4);
    return element == 8 ? wide : double(narrow);
  };
  progress.clear();
  printf("first difference: %s, sequence %lld, position %lld, logit %lld: "
         "%.17g, but %.17g of the full prefix\n",
         where.c_str(), static_cast<long long>(sequence),
         static_cast<long long>(position), static_cast<long long>(at),
         number(row), number(expected));
}

// All sequences to their ends, by steps of random chunks of some of them.
Batch Check::randomBatch() {
  Batch batch;
  int64_t done[kSequences] = {};
  int64_t largest = 1 + below(count);
  auto left = [&](int64_t s) { return count - done[s]; };
  while (left(0) || left(1) || left(2)) {
    std::vector<kvc_chunk> &chunks = batch.emplace_back();
    int64_t first = below(kSequences);
    for (int64_t i = 0; i < kSequences; ++i) {
      int64_t s = (first + i) % kSequences;
      if (!left(s) || (!chunks.empty() && below(3) == 0))
        continue;
      int64_t size = 1 + below(std::min(left(s), largest));
      chunks.push_back({s, &tokens[s][done[s]], size, KVC_OUTPUTS_ALL});
      done[s] += size;
    }
  }
  return batch;
}

void Check::forwardRagged(const Batch &batch, const Place &place) {
  must(kvc_session_reset(place.session));
  std::vector<char> logits;
  for (const std::vector<kvc_chunk> &chunks : batch) {
    int64_t wanted = 0;
    for (const kvc_chunk &chunk : chunks)
      wanted += chunk.count;
    logits.resize(wanted * rowBytes);
    must(kvc_forward(place.session, chunks.data(), int64_t(chunks.size()),
                     logits.data(), wanted));
    const char *row = logits.data();
    for (const kvc_chunk &chunk : chunks)
      for (int64_t t = 0; t < chunk.count; ++t, row += rowBytes)
        compare(row, chunk.sequence,
                chunk.tokens + t - tokens[chunk.sequence].data(), place.name);
  }
}

bool Check::run() {
  progress.show("computing the full prefix");
  forwardFull();
  progress.clear();
  openAll();
  for (int64_t i = 0; i < options.equivalence; ++i) {
    progress.show("batch %lld of %lld", static_cast<long long>(i + 1),
                  static_cast<long long>(options.equivalence));
    Batch batch = randomBatch();
    for (const Place &place : places)
      forwardRagged(batch, place);
  }
  progress.clear();
  for (const Place &place : places)
    kvc_session_destroy(place.session);
  printf("%lld rows of %lld logits from %lld ragged batches of %lld sequences, "
         "each at %s on 1 and 2 threads: %lld differ from the full prefix\n",
         static_cast<long long>(rows), static_cast<long long>(info.vocab),
         static_cast<long long>(options.equivalence),
         static_cast<long long>(kSequences), levels.c_str(),
         static_cast<long long>(different));
  return different == 0;
}

} // namespace

bool checkEquivalence(const kvc_library *library, const kvc_model *model,
                      const Options &options, Progress &progress) {
  return Check(library, model, options, progress).run();
}
