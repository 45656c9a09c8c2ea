// The command line of kvc-run.
#ifndef KVC_RUN_OPTIONS_H
#define KVC_RUN_OPTIONS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct Options {
  std::string directory;

  int64_t equivalence = 0; // ragged batches to compare; then no prompt

  // Else exactly one of these; a file's text becomes the prompt.
  std::optional<std::string> prompt;
  std::optional<std::string> chat;
  std::optional<std::string> file;
  std::optional<std::vector<int32_t>> ids;

  std::optional<int64_t> count; // of tokens to generate
  double temperature = 0;
  int64_t topK = 0;
  double topP = 1;
  uint64_t seed = 0;

  std::vector<int64_t> chunks; // empty: as the runtime likes it
  bool noCache = false;
  std::string logits; // empty: not wanted
  bool printIds = false;
  bool ignoreEnd = false;
  bool time = false;
  bool poison = false;

  std::string device = "cpu";
  int32_t threads = 0;  // 0: all CPUs
  int64_t capacity = 0; // 0: the model's
  std::string cpuLevel; // empty: the best
};

// Prints the help or the version and exits with 0 where it is asked for; dies
// of options that are unknown, incomplete, repeated or contradictory. Reads the
// prompt where it comes from a file or standard input.
Options parseOptions(int argc, char **argv);

#endif
