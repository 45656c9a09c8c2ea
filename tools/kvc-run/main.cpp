// kvc-run: runs a model that kvc-opt wrote.
#include "Common.h"
#include "Equivalence.h"
#include "Generation.h"
#include "Interrupt.h"
#include "Library.h"
#include "Options.h"
#include "Progress.h"
#include "Text.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

struct Times {
  double start = now();
  double loaded, ready;       // library and tokenizer; session
  std::vector<double> tokens; // when each token was there
};

// Time to the first token, and the rate of the others.
void printRate(const Times &times, size_t promptCount) {
  if (times.tokens.empty()) {
    if (interrupted())
      fprintf(stderr, "prompt of %zu tokens, interrupted\n", promptCount);
    return;
  }
  fprintf(stderr, "prompt of %zu tokens, first token after %.1f ms",
          promptCount, 1e3 * (times.tokens.front() - times.ready));
  size_t others = times.tokens.size() - 1;
  double seconds = times.tokens.back() - times.tokens.front();
  if (others)
    fprintf(stderr, "; %zu more in %.3f s: %.1f tokens/s", others, seconds,
            double(others) / seconds);
  fputc('\n', stderr);
}

void printDetails(const Times &times, const kvc_model *model,
                  const kvc_session *session) {
  kvc_model_info info;
  kvc_model_info_init(&info);
  must(kvc_model_query(model, &info));
  kvc_session_info state;
  kvc_session_info_init(&state);
  must(kvc_session_query(session, &state));
  fprintf(stderr, "loaded in %.3f s, session ready in %.3f s\n",
          times.loaded - times.start, times.ready - times.loaded);
  if (times.tokens.size() > 1) {
    std::vector<double> steps;
    for (size_t i = 1; i < times.tokens.size(); ++i)
      steps.push_back(times.tokens[i] - times.tokens[i - 1]);
    std::sort(steps.begin(), steps.end());
    fprintf(
        stderr, "a token: median %.3f ms, fastest %.3f ms, slowest %.3f ms\n",
        1e3 * steps[steps.size() / 2], 1e3 * steps.front(), 1e3 * steps.back());
    fprintf(stderr, "a token: %lld parallel regions\n",
            static_cast<long long>(state.parallel_regions));
  }
  fprintf(stderr, "%d threads, CPU level %s, numerics %s\n", state.threads,
          state.cpu_level, info.numerics == KVC_NUMERICS_TILES ? "tiles" : "fma");
  fprintf(stderr,
          "bytes: weights %lld (padding %lld), cache %lld of %lld reserved, "
          "workspace %lld\n",
          static_cast<long long>(info.weights_bytes),
          static_cast<long long>(info.weights_padding),
          static_cast<long long>(state.cache_bytes),
          static_cast<long long>(state.cache_reserved_bytes),
          static_cast<long long>(state.workspace_bytes));
}

// The ABI has CPU levels and no other device.
void checkDevice(const kvc_model *model, const std::string &device) {
  kvc_model_info info;
  kvc_model_info_init(&info);
  must(kvc_model_query(model, &info));
  if (device != "cpu")
    die("--device: expected cpu (all that library %s has code for), but got %s",
        info.name, device.c_str());
}

kvc_session *createSession(const kvc_model *model, const Options &options) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.threads = options.threads;
  params.capacity = options.capacity;
  params.cpu_level =
      options.cpuLevel.empty() ? nullptr : options.cpuLevel.c_str();
  params.poison = options.poison;
  kvc_session *session = nullptr;
  must(kvc_session_create(model, &params, &session));
  return session;
}

} // namespace

int main(int argc, char **argv) {
  Options options = parseOptions(argc, argv);
  Progress progress;
  Times times;
  progress.show("loading %s", options.directory.c_str());
  Library library = loadLibrary(options.directory);
  kvc_model *model = nullptr;
  must(kvc_model_open(library.library, library.weightsPath.c_str(), nullptr,
                      &model));
  checkDevice(model, options.device);
  if (options.equivalence) {
    bool same = checkEquivalence(library.library, model, options, progress);
    kvc_model_close(model);
    return same ? 0 : 1;
  }
  Text text(options.directory, /*optional=*/options.ids.has_value());
  times.loaded = now();

  std::vector<int32_t> prompt = options.ids ? *options.ids
                                : options.chat
                                    ? text.encodeChat(*options.chat)
                                    : text.encodePrompt(*options.prompt);
  kvc_session *session = createSession(model, options);
  bool printText = text.present() && !options.printIds;
  if (printText)
    text.begin(prompt);
  catchInterrupt();
  {
    Generation generation(model, session, options, prompt);
    times.ready = now();
    generation.run(
        [&](int64_t done) {
          progress.show("reading the prompt: %lld of %zu tokens",
                        static_cast<long long>(done), prompt.size());
          return !interrupted();
        },
        [&](int32_t token) {
          progress.clear();
          times.tokens.push_back(now());
          bool end = text.isEnd(token) && !options.ignoreEnd;
          if (printText)
            text.print(token);
          else
            printf("%s%d", times.tokens.size() > 1 ? "," : "", token);
          fflush(stdout);
          return !end && !interrupted();
        });
  }
  progress.clear();
  if (printText)
    text.finish();
  putchar('\n');
  if (fflush(stdout) != 0 || ferror(stdout))
    die("expected to write all of the output");
  printRate(times, prompt.size());
  if (options.time)
    printDetails(times, model, session);
  kvc_session_destroy(session);
  kvc_model_close(model);
  return interrupted() ? 128 + SIGINT : 0;
}
