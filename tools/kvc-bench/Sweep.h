// Measures a model over the sweeps of the command line.
#ifndef KVC_BENCH_SWEEP_H
#define KVC_BENCH_SWEEP_H

#include "BenchOptions.h"
#include "Roof.h"

#include "tools/kvc-run/Progress.h"

#include <kvc/kvc.h>
#include <memory>

// What is measured; the sizes that don't apply are 0.
enum class Kind {
  firstToken, // an empty sequence is given `prompt` tokens, and the next is chosen
  decode,   // one more token for each of `batch` sequences of `depth` positions
  cached,   // `tokens` behind a prompt, each forwarded once
  uncached, // the same, with the whole prefix forwarded again for each
};

struct Measurement {
  Kind kind;
  int64_t threads;
  int64_t prompt = 0, depth = 0, batch = 0, tokens = 0;
  std::vector<double> seconds = {}; // a sample a round; decode: of each step
  // decode: bytes of weights and cache that a step reads, and the seconds in which
  // as many threads read them, a sample a round.
  int64_t bytes = 0;
  std::vector<double> roof = {};
};

// The machine's own rates, a sample a round.
struct Peak {
  int64_t threads;
  std::vector<double> read = {}; // bytes a second, of the weight file
  std::vector<double> fma = {};  // operations a second
};

struct Results {
  kvc_model_info info;
  std::string level;            // CPU level
  std::vector<int64_t> threads; // that were measured
  std::vector<Measurement> all;
  std::vector<Peak> peaks;
  std::vector<std::string> leftOut; // sizes that the model's capacity is below
};

// Prompt of Kind::cached and Kind::uncached.
constexpr int64_t kGeneratePrompt = 5;

Results measure(const kvc_model *model, const std::string &weightsPath,
                const BenchOptions &options, Progress &progress);

double median(std::vector<double> samples);
double least(const std::vector<double> &samples);
double most(const std::vector<double> &samples);

#endif
