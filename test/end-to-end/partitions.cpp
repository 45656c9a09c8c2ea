// kvc-partitions: checks on a compiled model that a cache changes nothing.
//
//   kvc-partitions DIR [--partitions 500] [--capacity N] [--greedy 100]
//                  [--seed 1]
//
// DIR is what kvc-opt wrote. Two sequences of 17 random tokens, forwarded at
// once, are the reference; everything else must give the same bits. Cache and
// workspace start as NaN. Prints a line for each check; fails when one fails.
#include "compiled_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using Tokens = std::vector<int32_t>;
using Bytes = std::vector<char>;

constexpr int64_t kSequences = 2;
constexpr int64_t kTokens = 17;
constexpr int64_t kPrompt = 5; // of these, what greedy continuation starts from

// Prints the result of a check and remembers a failure.
bool allPassed = true;
void report(bool passed, const std::string &what) {
  printf("%s: %s\n", passed ? "ok" : "FAILED", what.c_str());
  allPassed &= passed;
}

struct Test {
  const kvc_library *library;
  kvc_model *model;
  int64_t capacity; // of every session
  int64_t rowBytes; // of one row of logits
  std::mt19937_64 random;
  std::vector<Tokens> tokens; // [kSequences][capacity + 1], random
  Bytes reference;            // [kSequences][kTokens][vocab]

  kvc_session *session(int32_t threads = 2, const char *level = nullptr) {
    kvc_session_params params;
    kvc_session_params_init(&params);
    params.sequences = kSequences;
    params.capacity = capacity;
    params.threads = threads;
    params.cpu_level = level;
    params.poison = 1;
    kvc_session *session = nullptr;
    must(kvc_session_create(model, &params, &session));
    return session;
  }

  int64_t below(int64_t bound) {
    return std::uniform_int_distribution<int64_t>(0, bound - 1)(random);
  }

  bool sameRow(const char *row, int64_t sequence, int64_t position) const {
    return !memcmp(row, &reference[(sequence * kTokens + position) * rowBytes],
                   rowBytes);
  }

  // Forwards the reference's tokens at once. [kSequences][kTokens][vocab]
  Bytes forwardAll(kvc_session *session) {
    must(kvc_session_reset(session));
    std::vector<kvc_chunk> chunks;
    for (int64_t s = 0; s < kSequences; ++s)
      chunks.push_back({s, tokens[s].data(), kTokens, KVC_OUTPUTS_ALL});
    Bytes logits(kSequences * kTokens * rowBytes);
    must(kvc_forward(session, chunks.data(), kSequences, logits.data(),
                     kSequences * kTokens));
    return logits;
  }

  // Appends one token and returns its row of logits.
  Bytes step(kvc_session *session, int64_t sequence, int32_t token) {
    Bytes row(rowBytes);
    kvc_chunk chunk = {sequence, &token, 1, KVC_OUTPUTS_LAST};
    must(kvc_forward(session, &chunk, 1, row.data(), 1));
    return row;
  }

  void referenceIsFinite() {
    bool finite = true;
    for (size_t at = 0; at < reference.size();) {
      if (library->arithmetic == KVC_TYPE_F64) {
        double value;
        memcpy(&value, &reference[at], sizeof value);
        finite &= std::isfinite(value);
        at += sizeof value;
      } else {
        float value;
        memcpy(&value, &reference[at], sizeof value);
        finite &= std::isfinite(value);
        at += sizeof value;
      }
    }
    report(finite, "logits are finite");
  }

  // Each sequence alone, after the other is long gone.
  void alone() {
    kvc_session *user = session();
    bool same = true;
    for (int64_t s = kSequences - 1; s >= 0; --s) {
      must(kvc_session_reset(user));
      Bytes logits(kTokens * rowBytes);
      kvc_chunk chunk = {s, tokens[s].data(), kTokens, KVC_OUTPUTS_ALL};
      must(kvc_forward(user, &chunk, 1, logits.data(), kTokens));
      for (int64_t t = 0; t < kTokens; ++t)
        same &= sameRow(&logits[t * rowBytes], s, t);
    }
    report(same, "a sequence alone equals the batch");
    kvc_session_destroy(user);
  }

  // Feeds each sequence its own chunks; in each call one or both advance.
  bool ragged(kvc_session *user,
              const std::vector<std::vector<int64_t>> &sizes) {
    must(kvc_session_reset(user));
    std::vector<int64_t> done(kSequences), next(kSequences);
    bool same = true;
    while (done[0] < kTokens || done[1] < kTokens) {
      std::vector<kvc_chunk> chunks;
      int64_t rows = 0, first = below(kSequences);
      for (int64_t i = 0; i < kSequences; ++i) {
        int64_t s = (first + i) % kSequences;
        if (done[s] == kTokens || (!chunks.empty() && below(3) == 0))
          continue;
        int64_t count = sizes[s][next[s]++];
        chunks.push_back({s, &tokens[s][done[s]], count, KVC_OUTPUTS_ALL});
        rows += count;
      }
      Bytes logits(rows * rowBytes);
      must(
          kvc_forward(user, chunks.data(), chunks.size(), logits.data(), rows));
      const char *row = logits.data();
      for (const kvc_chunk &chunk : chunks)
        for (int64_t t = 0; t < chunk.count; ++t, row += rowBytes)
          same &= sameRow(row, chunk.sequence, done[chunk.sequence]++);
    }
    return same;
  }

  std::vector<int64_t> randomPartition() {
    std::vector<int64_t> sizes;
    int64_t largest = 1 + below(kTokens);
    for (int64_t left = kTokens; left > 0; left -= sizes.back())
      sizes.push_back(1 + below(std::min(left, largest)));
    return sizes;
  }

  void partitions(int64_t count) {
    kvc_session *user = session();
    report(ragged(user, {{5, 3, 1, 8}, {5, 3, 1, 8}}), "chunks of 5, 3, 1, 8");
    std::vector<int64_t> ones(kTokens, 1);
    report(ragged(user, {ones, ones}), "chunks of 1");
    int64_t same = 0;
    std::set<std::vector<int64_t>> distinct;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<std::vector<int64_t>> sizes = {randomPartition(),
                                                 randomPartition()};
      distinct.insert(sizes.begin(), sizes.end());
      same += ragged(user, sizes);
    }
    report(same == count,
           std::to_string(same) + " of " + std::to_string(count) +
               " ragged batches bit-identical, " +
               std::to_string(distinct.size()) + " distinct partitions");
    kvc_session_destroy(user);
  }

  // The comparison must be able to fail: without its prefix a chunk differs.
  void forgottenPrefix() {
    kvc_session *user = session();
    Bytes row = step(user, 0, tokens[0][kPrompt]);
    report(!sameRow(row.data(), 0, kPrompt),
           "a token without its prefix differs");
    kvc_session_destroy(user);
  }

  void greedy(int64_t wanted) {
    kvc_session *cached = session(), *full = session();
    int64_t count = std::min(wanted, capacity - kPrompt + 1);
    Tokens generated(count);
    int64_t given = 0;
    must(kvc_generate(cached, 1, tokens[0].data(), kPrompt, count, nullptr,
                      nullptr, 0, nullptr, nullptr, generated.data(), &given));
    kvc_sampler *sampler = nullptr;
    must(kvc_sampler_create(nullptr, library->vocab, library->arithmetic,
                            &sampler));
    Tokens ids(tokens[0].begin(), tokens[0].begin() + kPrompt);
    Bytes row(rowBytes);
    for (int64_t i = 0; i < count; ++i) {
      must(kvc_session_reset(full));
      kvc_chunk chunk = {0, ids.data(), int64_t(ids.size()), KVC_OUTPUTS_LAST};
      must(kvc_forward(full, &chunk, 1, row.data(), 1));
      int32_t token = 0;
      must(kvc_sampler_sample(sampler, row.data(), &token));
      ids.push_back(token);
    }
    bool same = given == count && std::equal(generated.begin(), generated.end(),
                                             ids.begin() + kPrompt);
    report(same, std::to_string(count) +
                     " greedy tokens equal with and without cache");
    kvc_sampler_destroy(sampler);
    kvc_session_destroy(full);
    kvc_session_destroy(cached);
  }

  void lengthsAre(kvc_session *user, int64_t first, int64_t second,
                  const char *when) {
    int64_t lengths[kSequences];
    for (int64_t s = 0; s < kSequences; ++s)
      must(kvc_sequence_length(user, s, &lengths[s]));
    report(lengths[0] == first && lengths[1] == second,
           std::string("lengths ") + std::to_string(lengths[0]) + " and " +
               std::to_string(lengths[1]) + " " + when);
  }

  void capacityHolds() {
    kvc_session *user = session();
    std::vector<kvc_chunk> fill = {
        {0, tokens[0].data(), capacity, KVC_OUTPUTS_LAST},
        {1, tokens[1].data(), kPrompt, KVC_OUTPUTS_NONE}};
    Bytes last(rowBytes);
    must(kvc_forward(user, fill.data(), fill.size(), last.data(), 1));
    lengthsAre(user, capacity, kPrompt, "after filling the first sequence");

    // One more is refused, and so is a batch of which only a part fits.
    std::vector<kvc_chunk> over = {
        {1, &tokens[1][kPrompt], 3, KVC_OUTPUTS_NONE},
        {0, &tokens[0][capacity], 1, KVC_OUTPUTS_NONE}};
    kvc_status one = kvc_forward(user, &over[1], 1, nullptr, 0);
    kvc_status part = kvc_forward(user, over.data(), over.size(), nullptr, 0);
    report(one == KVC_OUT_OF_CAPACITY && part == KVC_OUT_OF_CAPACITY,
           "position " + std::to_string(capacity + 1) +
               " is refused: " + kvc_last_error());
    lengthsAre(user, capacity, kPrompt, "after the refusals");

    // The session goes on: the other sequence, the last token again, all anew.
    Bytes row = step(user, 1, tokens[1][kPrompt]);
    report(sameRow(row.data(), 1, kPrompt), "the other sequence goes on");
    must(kvc_sequence_truncate(user, 0, capacity - 1));
    row = step(user, 0, tokens[0][capacity - 1]);
    report(row == last, "the last position again gives the same bits");
    report(forwardAll(user) == reference, "the session starts anew");
    kvc_session_destroy(user);
  }

  void threadsAndLevels() {
    for (int32_t threads : {1, 2, 3}) {
      kvc_session *user = session(threads);
      report(forwardAll(user) == reference,
             "threads " + std::to_string(threads));
      kvc_session_destroy(user);
    }
    for (int64_t i = 0; i < library->kernels_count; ++i) {
      const char *level = library->kernels[i].level;
      kvc_session_params params;
      kvc_session_params_init(&params);
      params.cpu_level = level;
      kvc_session *probe = nullptr;
      kvc_status status = kvc_session_create(model, &params, &probe);
      if (status == KVC_INCOMPATIBLE) {
        printf("skipped: CPU level %s, which this machine lacks\n", level);
        continue;
      }
      must(status);
      kvc_session_destroy(probe);
      kvc_session *user = session(2, level);
      report(forwardAll(user) == reference, std::string("CPU level ") + level);
      kvc_session_destroy(user);
    }
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    die("expected kvc-partitions DIR [--partitions N] [--capacity N] [--greedy "
        "N] [--seed N]");
  int64_t partitions = 500, capacity = 0, greedy = 100, seed = 1;
  for (int i = 2; i < argc; i += 2) {
    std::string option = argv[i];
    int64_t *value = option == "--partitions" ? &partitions
                     : option == "--capacity" ? &capacity
                     : option == "--greedy"   ? &greedy
                     : option == "--seed"     ? &seed
                                              : nullptr;
    if (!value || i + 1 == argc)
      die("expected --partitions, --capacity, --greedy or --seed with a "
          "number, "
          "but got %s",
          argv[i]);
    char *end = nullptr;
    *value = strtoll(argv[i + 1], &end, 10);
    if (*end || *value < 1)
      die("%s: expected a positive number, but got %s", argv[i], argv[i + 1]);
  }

  CompiledModel compiled(argv[1]);
  Test test;
  test.library = compiled.library;
  test.model = compiled.model;
  test.rowBytes = compiled.rowBytes;
  test.capacity = capacity ? capacity : test.library->capacity;
  if (test.capacity < kTokens)
    die("expected a capacity of at least %ld, but got %ld", long(kTokens),
        long(test.capacity));
  test.random.seed(seed);
  for (int64_t s = 0; s < kSequences; ++s) {
    test.tokens.emplace_back();
    for (int64_t t = 0; t <= test.capacity; ++t)
      test.tokens[s].push_back(int32_t(test.below(test.library->vocab)));
  }
  kvc_session *session = test.session();
  test.reference = test.forwardAll(session);
  kvc_session_destroy(session);
  printf("%s: vocab %ld, %ld layers, capacity %ld, 2 sequences of %ld tokens\n",
         compiled.name.c_str(), long(test.library->vocab), long(test.library->layers),
         long(test.capacity), long(kTokens));

  test.referenceIsFinite();
  test.forgottenPrefix();
  test.alone();
  test.partitions(partitions);
  test.greedy(greedy);
  test.capacityHolds();
  test.threadsAndLevels();
  kvc_model_close(test.model);
  puts(allPassed ? "all passed" : "some FAILED");
  return allPassed ? 0 : 1;
}
