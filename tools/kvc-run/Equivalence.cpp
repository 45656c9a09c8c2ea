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
constexpr int64_t kTokens = 48; // of a sequence: three groups of 16 keys

class Check {
public:
  Check(const kvc_library *library, const kvc_model *model,
        const Options &options)
      : library(library), model(model), options(options),
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
  kvc_session *open(const char *level, int32_t threads);
  void forwardFull();
  void forwardRagged(kvc_session *session, const std::string &where);
  void compare(const char *row, int64_t sequence, int64_t position,
               const std::string &where);

  const kvc_library *library;
  const kvc_model *model;
  const Options &options;
  std::mt19937_64 random;
  kvc_model_info info;
  int64_t count, element, rowBytes;
  std::vector<int32_t> tokens[kSequences];
  std::vector<char> full[kSequences]; // [count, vocab]
  int64_t rows = 0, different = 0;
};

// Null where the machine lacks the level.
kvc_session *Check::open(const char *level, int32_t threads) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = kSequences;
  params.capacity = options.capacity;
  params.threads = threads;
  params.cpu_level = level;
  params.poison = options.poison;
  kvc_session *session = nullptr;
  kvc_status status = kvc_session_create(model, &params, &session);
  if (status == KVC_INCOMPATIBLE)
    return nullptr;
  must(status);
  return session;
}

// Each sequence alone, in one piece, on one thread: the full prefix.
void Check::forwardFull() {
  kvc_session *session = open(nullptr, 1);
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
  printf("first difference: %s, sequence %lld, position %lld, logit %lld: "
         "%.17g, but %.17g of the full prefix\n",
         where.c_str(), static_cast<long long>(sequence),
         static_cast<long long>(position), static_cast<long long>(at),
         number(row), number(expected));
}

// All sequences to their ends, by steps of random chunks of some of them.
void Check::forwardRagged(kvc_session *session, const std::string &where) {
  must(kvc_session_reset(session));
  int64_t done[kSequences] = {};
  int64_t largest = 1 + below(count);
  auto left = [&](int64_t s) { return count - done[s]; };
  std::vector<char> logits;
  while (left(0) || left(1) || left(2)) {
    std::vector<kvc_chunk> chunks;
    int64_t wanted = 0, first = below(kSequences);
    for (int64_t i = 0; i < kSequences; ++i) {
      int64_t s = (first + i) % kSequences;
      if (!left(s) || (!chunks.empty() && below(3) == 0))
        continue;
      int64_t size = 1 + below(std::min(left(s), largest));
      chunks.push_back({s, &tokens[s][done[s]], size, KVC_OUTPUTS_ALL});
      wanted += size;
    }
    logits.resize(wanted * rowBytes);
    must(kvc_forward(session, chunks.data(), int64_t(chunks.size()),
                     logits.data(), wanted));
    const char *row = logits.data();
    for (const kvc_chunk &chunk : chunks)
      for (int64_t t = 0; t < chunk.count; ++t, row += rowBytes)
        compare(row, chunk.sequence, done[chunk.sequence]++, where);
  }
}

bool Check::run() {
  forwardFull();
  std::vector<std::pair<kvc_session *, std::string>> sessions;
  for (int64_t i = 0; i < library->kernels_count; ++i) {
    const char *level = library->kernels[i].level;
    for (int32_t threads : {1, 2}) {
      std::string where =
          std::string(level) + ", " + std::to_string(threads) + " threads";
      if (kvc_session *session = open(level, threads))
        sessions.push_back({session, where});
      else
        printf("skipped: %s, which this machine lacks\n", where.c_str());
    }
  }
  for (int64_t i = 0; i < options.equivalence; ++i) {
    auto &[session, where] = sessions[i % sessions.size()];
    forwardRagged(session, where);
  }
  for (auto &[session, where] : sessions)
    kvc_session_destroy(session);
  printf("%lld rows of %lld logits from %lld ragged batches of %lld sequences: "
         "%lld differ from the full prefix\n",
         static_cast<long long>(rows), static_cast<long long>(info.vocab),
         static_cast<long long>(options.equivalence),
         static_cast<long long>(kSequences), static_cast<long long>(different));
  return different == 0;
}

} // namespace

bool checkEquivalence(const kvc_library *library, const kvc_model *model,
                      const Options &options) {
  return Check(library, model, options).run();
}
