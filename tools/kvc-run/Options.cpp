#include "Options.h"

#include "Common.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

static const char help[] =
    R"(kvc-run DIR (--prompt TEXT | --chat TEXT | --ids 1,2,3) [options]
kvc-run DIR --check-equivalence N [--seed S] [--capacity N] [--poison]

Runs a model that kvc-opt wrote to DIR, and prints what follows the prompt; or
compares N random ragged batches, each on 1 and 2 threads and at every CPU level,
with the full prefix bit for bit.

Prompt, one of
  --prompt TEXT      continue this text
  --chat TEXT        answer this message, in the model's chat form
  --ids 1,2,3        continue these token ids; the only form for a model without
                     a tokenizer

Generation
  -n N               generate at most N tokens (default: 128, or as many as fit);
                     0 forwards nothing, or just the prompt for --logits
  --temperature T    sample at temperature T > 0 (default: 0, the likeliest)
  --top-k K          among scores that are at least the K-th largest
  --top-p P          among the likeliest tokens whose probabilities reach P
  --seed S           seed of the sampling (default: 0)
  --ignore-end       go on after a token that ends the text

Output
  --print-ids        print the new token ids, as 1,2,3, and no text (so it is for
                     a model without a tokenizer)
  --logits FILE.npy  write the logits of the prompt's tokens: [positions, vocab]
                     in the model's arithmetic type
  --time             print where time and memory went, to standard error

How it runs; none of these changes a bit of the output
  --device cpu       where: cpu (default), all that libraries have code for now
  --chunks 5,3,1     feed the prompt in chunks of these sizes, repeated until it
                     is used up
  --no-cache         forward the whole prefix again for each token
  --threads N        threads (default: one for each CPU)
  --capacity N       positions of the cache (default: the model's)
  --cpu LEVEL        one of the library's CPU levels (default: the best)
  --poison           fill memory that nobody has written with NaN

  --help             print this
)";

namespace {

// An option with its value, and errors that name both.
struct Argument {
  const char *name, *value;

  [[noreturn]] void reject(const char *expected) const {
    die("%s: expected %s, but got %s", name, expected, value);
  }

  int64_t integer(int64_t least, int64_t most, const char *expected) const {
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number < least || number > most)
      reject(expected);
    return number;
  }

  uint64_t seed() const {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (!(*value >= '0' && *value <= '9') || *end || errno)
      reject("an integer from 0 to 2^64 - 1");
    return number;
  }

  double real(bool (*holds)(double), const char *expected) const {
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !holds(number))
      reject(expected);
    return number;
  }

  // Integers separated by commas.
  std::vector<int64_t> list(int64_t least, int64_t most,
                            const char *expected) const {
    std::vector<int64_t> numbers;
    for (const char *at = value;; ++at) {
      char *end;
      errno = 0;
      long long number = strtoll(at, &end, 10);
      if (end == at || (*end && *end != ',') || errno || number < least ||
          number > most)
        reject(expected);
      numbers.push_back(number);
      at = end;
      if (!*at)
        return numbers;
    }
  }
};

// True when the argument was one of the switches.
bool setSwitch(Options &options, const std::string &name) {
  bool *flag = name == "--no-cache"     ? &options.noCache
               : name == "--print-ids"  ? &options.printIds
               : name == "--ignore-end" ? &options.ignoreEnd
               : name == "--time"       ? &options.time
               : name == "--poison"     ? &options.poison
                                        : nullptr;
  if (flag)
    *flag = true;
  return flag;
}

// True when the option is one that takes a value.
bool setValue(Options &options, const Argument &argument) {
  std::string name = argument.name;
  if (name == "--prompt")
    options.prompt = argument.value;
  else if (name == "--chat")
    options.chat = argument.value;
  else if (name == "--ids") {
    std::vector<int64_t> ids = argument.list(
        0, INT32_MAX, "token ids separated by commas, such as 1,2,3");
    options.ids.emplace(ids.begin(), ids.end());
  } else if (name == "-n")
    options.count = argument.integer(0, INT64_MAX, "a number of tokens");
  else if (name == "--temperature")
    options.temperature =
        argument.real([](double t) { return t >= 0 && std::isfinite(t); },
                      "a finite number that is not negative");
  else if (name == "--top-k")
    options.topK = argument.integer(1, INT64_MAX, "a number of tokens above 0");
  else if (name == "--top-p")
    options.topP = argument.real([](double p) { return p > 0 && p <= 1; },
                                 "a number above 0 and at most 1");
  else if (name == "--check-equivalence")
    options.equivalence =
        argument.integer(1, INT64_MAX, "a number of batches above 0");
  else if (name == "--seed")
    options.seed = argument.seed();
  else if (name == "--chunks")
    options.chunks = argument.list(
        1, INT64_MAX, "chunk sizes above 0 separated by commas, such as 5,3,1");
  else if (name == "--logits")
    options.logits = argument.value;
  else if (name == "--threads")
    options.threads =
        int32_t(argument.integer(1, 1024, "a number from 1 to 1024"));
  else if (name == "--capacity")
    options.capacity =
        argument.integer(1, INT64_MAX, "a number of positions above 0");
  else if (name == "--device")
    options.device = argument.value;
  else if (name == "--cpu")
    options.cpuLevel = argument.value;
  else
    return false;
  return true;
}

void checkTogether(const Options &options, const std::set<std::string> &given) {
  if (options.directory.empty())
    die("expected a directory that kvc-opt wrote (see kvc-run --help)");
  if (options.equivalence) {
    for (const std::string &name : given)
      if (name != "--check-equivalence" && name != "--seed" &&
          name != "--capacity" && name != "--poison" && name != "--device")
        die("--check-equivalence: expected no %s with it", name.c_str());
    return;
  }
  int prompts = options.prompt.has_value() + options.chat.has_value() +
                options.ids.has_value();
  if (prompts != 1)
    die("expected one of --prompt, --chat and --ids, but got %s",
        prompts ? "several" : "none");
  for (const char *name : {"--top-k", "--top-p", "--seed"})
    if (given.count(name) && options.temperature == 0)
      die("%s: expected a --temperature above 0 with it", name);
  if (options.noCache && !options.chunks.empty())
    die("--chunks: expected no --no-cache with it, which forwards whole "
        "prefixes");
  const struct {
    const char *name;
    const std::string &value;
  } names[] = {{"--logits", options.logits},
               {"--device", options.device},
               {"--cpu", options.cpuLevel}};
  for (const auto &[name, value] : names)
    if (given.count(name) && value.empty())
      die("%s: expected a name, but got nothing", name);
}

} // namespace

Options parseOptions(int argc, char **argv) {
  Options options;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help") {
      fputs(help, stdout);
      exit(0);
    }
    if (name.empty() || name[0] != '-') {
      if (!options.directory.empty() || name.empty())
        die("expected one directory, but got %s too", argv[i]);
      options.directory = name;
      continue;
    }
    if (!given.insert(name).second)
      die("%s: expected it once", argv[i]);
    if (setSwitch(options, name))
      continue;
    // A value may begin with '-', as a text does.
    Argument argument = {argv[i], i + 1 < argc ? argv[i + 1] : nullptr};
    Options scratch;
    if (!argument.value) {
      argument.value = "1"; // asks only whether the option exists
      if (!setValue(scratch, argument))
        die("unknown option %s (see kvc-run --help)", argv[i]);
      die("%s: expected a value", argv[i]);
    }
    if (!setValue(options, argument))
      die("unknown option %s (see kvc-run --help)", argv[i]);
    ++i;
  }
  checkTogether(options, given);
  return options;
}
