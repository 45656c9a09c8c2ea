#include "Sweep.h"

#include "tools/kvc-run/Common.h"

#include <algorithm>
#include <cstring>

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  size_t half = samples.size() / 2;
  return samples.size() % 2 ? samples[half]
                            : (samples[half - 1] + samples[half]) / 2;
}

double least(const std::vector<double> &samples) {
  return *std::min_element(samples.begin(), samples.end());
}

double most(const std::vector<double> &samples) {
  return *std::max_element(samples.begin(), samples.end());
}

namespace {

// The sizes of a sweep that fit `room`. Others are an error where they were given,
// or else are left out by name.
std::vector<int64_t> fitting(const std::vector<int64_t> &sizes, bool given,
                             int64_t room, const char *name, Results &results) {
  std::vector<int64_t> fit;
  for (int64_t size : sizes) {
    if (size <= room) {
      fit.push_back(size);
    } else if (given) {
      die("%s: expected at most %lld, which fit the capacity of %lld "
          "positions, but "
          "got %lld",
          name, static_cast<long long>(room),
          static_cast<long long>(results.info.capacity),
          static_cast<long long>(size));
    } else {
      results.leftOut.push_back(std::string(name) + " " + std::to_string(size));
    }
  }
  return fit;
}

// Bytes of the keys and values that a token behind `depth` others reads.
int64_t cachedBytes(const kvc_model_info &info, int64_t depth) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < info.groups_count; ++i) {
    const kvc_group &group = info.groups[i];
    int64_t seen = group.window ? std::min(depth, group.window) : depth;
    for (int64_t j = 0; j < group.sections_count; ++j) {
      const kvc_section &section = group.sections[j];
      bytes += seen * section.rows * section.pieces * section.bytes;
    }
  }
  return bytes;
}

// A session with some threads. Its last sequence, the stem, holds a text of the
// greatest depth, of which others are forks.
class Bench {
public:
  Bench(const kvc_model *model, const BenchOptions &options, int64_t threads,
        int64_t capacity, int64_t batch)
      : threads(threads), batch(batch) {
    kvc_model_info_init(&info);
    must(kvc_model_query(model, &info));
    kvc_session_params params;
    kvc_session_params_init(&params);
    params.threads = int32_t(threads);
    params.capacity = capacity;
    params.sequences = batch + 1;
    params.cpu_level =
        options.cpuLevel.empty() ? nullptr : options.cpuLevel.c_str();
    must(kvc_session_create(model, &params, &session));
    must(kvc_sampler_create(nullptr, info.vocab, info.arithmetic, &sampler));
    rowBytes = info.vocab * (info.arithmetic == KVC_TYPE_F64 ? 8 : 4);
    logits.resize(size_t(batch * rowBytes));
    next.resize(size_t(batch));
    // Any tokens: the same for every measurement, round and machine.
    uint64_t state = 1;
    for (int64_t i = 0; i < capacity; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text.push_back(int32_t((state >> 33) % uint64_t(info.vocab)));
    }
  }
  ~Bench() {
    kvc_sampler_destroy(sampler);
    kvc_session_destroy(session);
  }
  Bench(const Bench &) = delete;
  Bench &operator=(const Bench &) = delete;

  const char *level() const {
    kvc_session_info state;
    kvc_session_info_init(&state);
    must(kvc_session_query(session, &state));
    return state.cpu_level;
  }

  void growStem(int64_t depth) {
    if (depth)
      forward(batch, 0, depth, KVC_OUTPUTS_NONE);
  }
  void copyStem(const Bench &other) {
    must(kvc_sequence_copy(other.session, other.batch, session, batch));
  }

  double firstToken(int64_t prompt) {
    must(kvc_sequence_remove(session, 0));
    double begin = now();
    forward(0, 0, prompt, KVC_OUTPUTS_LAST);
    sample(1);
    return now() - begin;
  }

  // Makes a sequence the first `depth` tokens of the stem: a fork that is cut back, or
  // computed anew where the cache has forgotten what that takes.
  void startAt(int64_t sequence, int64_t depth) {
    must(kvc_sequence_fork(session, batch, sequence));
    kvc_sequence_info state;
    kvc_sequence_info_init(&state);
    must(kvc_sequence_query(session, sequence, &state));
    bool isKept = depth >= state.shortest;
    must(kvc_sequence_truncate(session, sequence, isKept ? depth : 0));
    if (!isKept && depth)
      forward(sequence, 0, depth, KVC_OUTPUTS_NONE);
  }

  void decode(const Measurement &what, int64_t steps,
              std::vector<double> &seconds) {
    std::vector<kvc_chunk> chunks;
    for (int64_t s = 0; s < what.batch; ++s) {
      startAt(s, what.depth);
      next[s] = text[s % int64_t(text.size())];
      chunks.push_back({s, &next[s], 1, KVC_OUTPUTS_LAST});
    }
    // The first step copies the pages that are the stem's, too.
    for (int64_t step = 0; step <= steps; ++step) {
      double begin = now();
      must(kvc_forward(session, chunks.data(), what.batch, logits.data(),
                       what.batch));
      sample(what.batch);
      if (step)
        seconds.push_back(now() - begin);
    }
    for (int64_t s = 0; s < what.batch; ++s)
      must(kvc_sequence_remove(session, s));
  }

  // Leaves the ids in `tokens`.
  double generate(int64_t prompt, int64_t count, bool cached,
                  std::vector<int32_t> &tokens) {
    must(kvc_sequence_remove(session, 0));
    tokens.assign(text.begin(), text.begin() + prompt);
    double begin = now();
    for (int64_t made = 0, done = 0; made < count; ++made) {
      if (!cached && done)
        must(kvc_sequence_truncate(session, 0, done = 0));
      int64_t length = int64_t(tokens.size());
      forward(0, done, length - done, KVC_OUTPUTS_LAST, tokens.data());
      done = length;
      sample(1);
      tokens.push_back(next[0]);
    }
    return now() - begin;
  }

  const int64_t threads;

private:
  void forward(int64_t sequence, int64_t first, int64_t count,
               kvc_outputs outputs, const int32_t *tokens = nullptr) {
    kvc_chunk chunk = {sequence, (tokens ? tokens : text.data()) + first, count,
                       outputs};
    must(kvc_forward(session, &chunk, 1, logits.data(),
                     outputs == KVC_OUTPUTS_LAST));
  }
  void sample(int64_t rows) {
    for (int64_t row = 0; row < rows; ++row)
      must(kvc_sampler_sample(sampler, logits.data() + row * rowBytes,
                              &next[row]));
  }

  const int64_t batch;
  kvc_model_info info;
  kvc_session *session = nullptr;
  kvc_sampler *sampler = nullptr;
  std::vector<char> logits;  // [batch, vocab]
  std::vector<int32_t> next; // [batch]
  std::vector<int32_t> text; // [capacity]
  int64_t rowBytes;
};

int64_t greatest(const std::vector<int64_t> &sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

} // namespace

Results measure(const kvc_model *model, const std::string &weightsPath,
                const BenchOptions &options, Progress &progress) {
  Results results;
  kvc_model_info &info = results.info;
  kvc_model_info_init(&info);
  must(kvc_model_query(model, &info));
  results.threads = options.threads;
  if (results.threads.empty()) {
    kvc_session *session;
    kvc_session_info state;
    kvc_session_info_init(&state);
    must(kvc_session_create(model, nullptr, &session));
    must(kvc_session_query(session, &state));
    kvc_session_destroy(session);
    results.threads = {1};
    if (state.threads > 1)
      results.threads.push_back(state.threads);
  }
  std::vector<int64_t> prompts = fitting(options.prompts, options.promptsGiven,
                                         info.capacity, "--prompt", results);
  std::vector<int64_t> depths =
      fitting(options.depths, options.depthsGiven,
              info.capacity - options.steps - 1, "--depth", results);
  std::vector<int64_t> generate =
      fitting(options.generate, options.generateGiven,
              info.capacity - kGeneratePrompt + 1, "--generate", results);
  int64_t batch = std::max<int64_t>(1, greatest(options.batches));
  int64_t deepest = greatest(depths);
  int64_t capacity = std::min(
      info.capacity, std::max({greatest(prompts), deepest + options.steps + 1,
                               greatest(generate) + kGeneratePrompt}));

  for (int64_t threads : results.threads) {
    for (int64_t prompt : prompts)
      results.all.push_back({Kind::firstToken, threads, prompt});
    for (int64_t depth : depths)
      for (int64_t size : options.batches)
        if (depth == depths.front() || size == options.batches.front())
          results.all.push_back({Kind::decode, threads, 0, depth, size});
    for (int64_t tokens : generate)
      for (Kind kind : {Kind::cached, Kind::uncached})
        results.all.push_back({kind, threads, kGeneratePrompt, 0, 0, tokens});
    results.peaks.push_back({threads});
  }
  if (results.all.empty())
    die("expected something to measure, but every sweep is empty");

  std::vector<std::unique_ptr<Bench>> benches;
  for (int64_t threads : results.threads) {
    progress.show("preparing %lld threads", static_cast<long long>(threads));
    benches.push_back(
        std::make_unique<Bench>(model, options, threads, capacity, batch));
  }
  benches.back()->growStem(deepest);
  for (size_t i = 0; i + 1 < benches.size(); ++i)
    benches[i]->copyStem(*benches.back());
  results.level = benches.back()->level();
  bool wide = results.level.find("v4") != std::string::npos ||
              (results.level.find("v3") == std::string::npos &&
               __builtin_cpu_supports("avx512f"));
  Bytes weights = Bytes::file(weightsPath);
  int64_t cacheBytes = 0;
  for (Measurement &what : results.all)
    if (what.kind == Kind::decode) {
      int64_t cached = what.batch * cachedBytes(info, what.depth);
      what.bytes = weights.size + cached;
      cacheBytes = std::max(cacheBytes, cached);
    }
  Bytes cache = Bytes::memory(cacheBytes);

  // The first round warms up: files, pages, clocks. Its samples are dropped.
  std::vector<int32_t> withCache, without;
  for (int64_t round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < benches.size(); ++i) {
      Peak &peak = results.peaks[i];
      double seconds =
          readSeconds({{weights.begin, weights.size}}, peak.threads);
      double rate = fmaRate(wide, peak.threads);
      if (round) {
        peak.read.push_back(double(weights.size) / seconds);
        peak.fma.push_back(rate);
      }
    }
    for (size_t i = 0; i < results.all.size(); ++i) {
      Measurement &what = results.all[i];
      progress.show("round %lld of %lld: measurement %zu of %zu",
                    static_cast<long long>(round),
                    static_cast<long long>(options.rounds), i + 1,
                    results.all.size());
      auto bench =
          std::find_if(benches.begin(), benches.end(), [&](const auto &some) {
            return some->threads == what.threads;
          });
      std::vector<double> seconds;
      double roof = 0;
      switch (what.kind) {
      case Kind::firstToken:
        seconds = {(*bench)->firstToken(what.prompt)};
        break;
      case Kind::decode:
        roof = readSeconds({{weights.begin, weights.size},
                            {cache.begin, what.bytes - weights.size}},
                           what.threads);
        (*bench)->decode(what, options.steps, seconds);
        break;
      case Kind::cached:
        seconds = {
            (*bench)->generate(what.prompt, what.tokens, true, withCache)};
        break;
      case Kind::uncached:
        seconds = {
            (*bench)->generate(what.prompt, what.tokens, false, without)};
        if (withCache != without)
          die("expected the same %lld tokens with and without the cache, but "
              "they "
              "differ",
              static_cast<long long>(what.tokens));
        break;
      }
      if (round == 0)
        continue;
      what.seconds.insert(what.seconds.end(), seconds.begin(), seconds.end());
      if (what.kind == Kind::decode)
        what.roof.push_back(roof);
    }
  }
  progress.clear();
  return results;
}
