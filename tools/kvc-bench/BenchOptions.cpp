#include "BenchOptions.h"

#include "tools/kvc-run/CommandLine.h"

static const char help[] =
    R"(kvc-bench DIR [options]

Measures a model that kvc-opt wrote to DIR. First compares random ragged batches with
the full prefix, bit for bit, and stops where they differ. Then measures everything
once a round, round after round, so that each figure sees the machine at all times;
beside it, in the same process, how fast as many threads read the bytes that a step
needs, and their peak of fused multiply-adds.

Sweeps; an empty list leaves one out
  --prompt 32,128,512   time to the first token of prompts of so many tokens
  --depth 0,512,1024    a step of decoding, behind so many cached positions
  --batch 1,2,4,8       a step of decoding of so many sequences, at the first depth
  --generate 8,24,48    so many tokens behind a prompt of 5, with the cache and
                        with the whole prefix again for each
  --threads 1,2         all of it with so many threads (default: 1 and one for each
                        CPU)

How
  -n N                  steps in a sample of decoding (default: 32)
  --rounds N            samples of each (default: 5)
  --check N             ragged batches to compare (default: 2)
  --cpu LEVEL           one of the library's CPU levels (default: the best)

Output: a table, and
  --json FILE           every sample
  --plot FILE.svg       the sweeps as a picture

  -h, --help            print this
  --version             print the version
)";

namespace {

// A sweep, ascending and each size once.
std::vector<int64_t> sweep(const Argument &argument, int64_t least,
                           int64_t most) {
  if (!*argument.value)
    return {};
  std::vector<int64_t> sizes =
      argument.list(least, most, "sizes separated by commas, such as 1,2,4");
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

constexpr int64_t kMost = 1 << 30; // positions

const Option<BenchOptions> table[] = {
    {"--prompt",
     [](BenchOptions &o, const Argument &a) {
       o.prompts = sweep(a, 1, kMost);
       o.promptsGiven = true;
     }},
    {"--depth",
     [](BenchOptions &o, const Argument &a) {
       o.depths = sweep(a, 0, kMost);
       o.depthsGiven = true;
     }},
    {"--batch",
     [](BenchOptions &o, const Argument &a) { o.batches = sweep(a, 1, 4096); }},
    {"--generate",
     [](BenchOptions &o, const Argument &a) {
       o.generate = sweep(a, 1, kMost);
       o.generateGiven = true;
     }},
    {"--threads",
     [](BenchOptions &o, const Argument &a) { o.threads = sweep(a, 1, 1024); }},
    {"-n",
     [](BenchOptions &o, const Argument &a) {
       o.steps = a.integer(1, kMost, "a number of steps above 0");
     }},
    {"--rounds",
     [](BenchOptions &o, const Argument &a) {
       o.rounds = a.integer(1, 10000, "a number of rounds from 1 to 10000");
     }},
    {"--check",
     [](BenchOptions &o, const Argument &a) {
       o.checks = a.integer(1, kMost, "a number of batches above 0");
     }},
    {"--cpu",
     [](BenchOptions &o, const Argument &a) { o.cpuLevel = a.text(); }},
    {"--json", [](BenchOptions &o, const Argument &a) { o.json = a.text(); }},
    {"--plot", [](BenchOptions &o, const Argument &a) { o.plot = a.text(); }},
    {"--help", [](BenchOptions &, const Argument &) { print(help); }, noValue},
    {"-h", [](BenchOptions &, const Argument &) { print(help); }, noValue},
    {"--version",
     [](BenchOptions &, const Argument &) { print("kvc-bench " KVC_VERSION "\n"); },
     noValue},
};

} // namespace

BenchOptions parseBenchOptions(int argc, char **argv) {
  BenchOptions options;
  std::set<std::string> given =
      parseCommandLine(argc, argv, "kvc-bench", table, options);
  if (given.count("--threads") && options.threads.empty())
    die("--threads: expected numbers of threads, but got nothing");
  return options;
}
