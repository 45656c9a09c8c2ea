// The command line of kvc-bench.
#ifndef KVC_BENCH_BENCH_OPTIONS_H
#define KVC_BENCH_BENCH_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

// Each list is a sweep; an empty one is left out.
struct BenchOptions {
  std::string directory;

  std::vector<int64_t> prompts{32, 128, 512}; // tokens
  std::vector<int64_t> depths{0, 512, 1024};  // cached positions before a step
  std::vector<int64_t> batches{1, 2, 4, 8};   // sequences of a step
  std::vector<int64_t> generate{8, 24, 48};   // tokens, with and without cache
  std::vector<int64_t> threads;               // empty: 1 and all CPUs
  // A list that was given must fit the model; of one that wasn't, the rest is left
  // out by name.
  bool promptsGiven = false, depthsGiven = false, generateGiven = false;

  int64_t steps = 32;     // of a sample of decoding
  int64_t rounds = 5;     // samples of each measurement
  int64_t checks = 2;     // ragged batches compared before
  std::string cpuLevel;   // empty: the best
  std::string json, plot; // files; empty: not wanted
};

// Prints the help or the version and exits with 0 where it is asked for; dies of
// what can't be understood.
BenchOptions parseBenchOptions(int argc, char **argv);

#endif
