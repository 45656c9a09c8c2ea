#include "Options.h"

#include "CommandLine.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static const char help[] =
    R"(kvc-run DIR (--prompt TEXT | --chat TEXT | --ids 1,2,3) [options]
kvc-run DIR --check-equivalence N [--seed S] [--capacity N] [--poison]

Runs a model that kvc-opt wrote to DIR, and prints what follows the prompt; or
compares N random ragged batches, each on 1 and 2 threads and at every CPU level,
with the full prefix bit for bit.

Prompt, one of
  --prompt TEXT      continue this text
  --chat TEXT        answer this message, in the model's chat form
  --file FILE        continue this file's text, without its last newline
  -                  continue the text of standard input; --prompt -, --chat -
                     and --file - read it too
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

  -h, --help         print this
  --version          print the version

Ctrl-C ends the answer, a second one the program.
)";

namespace {

const Option<Options> table[] = {
    {"--prompt", [](Options &o, const Argument &a) { o.prompt = a.value; }},
    {"--chat", [](Options &o, const Argument &a) { o.chat = a.value; }},
    {"--file", [](Options &o, const Argument &a) { o.file = a.text(); }},
    {"-", [](Options &o, const Argument &) { o.file = "-"; }, noValue},
    {"--ids",
     [](Options &o, const Argument &a) {
       std::vector<int64_t> ids =
           a.list(0, INT32_MAX, "token ids separated by commas, such as 1,2,3");
       o.ids.emplace(ids.begin(), ids.end());
     }},
    {"-n",
     [](Options &o, const Argument &a) {
       o.count = a.integer(0, INT64_MAX, "a number of tokens");
     }},
    {"--temperature",
     [](Options &o, const Argument &a) {
       o.temperature =
           a.real([](double t) { return t >= 0 && std::isfinite(t); },
                  "a finite number that is not negative");
     }},
    {"--top-k",
     [](Options &o, const Argument &a) {
       o.topK = a.integer(1, INT64_MAX, "a number of tokens above 0");
     }},
    {"--top-p",
     [](Options &o, const Argument &a) {
       o.topP = a.real([](double p) { return p > 0 && p <= 1; },
                       "a number above 0 and at most 1");
     }},
    {"--seed", [](Options &o, const Argument &a) { o.seed = a.seed(); }},
    {"--check-equivalence",
     [](Options &o, const Argument &a) {
       o.equivalence = a.integer(1, INT64_MAX, "a number of batches above 0");
     }},
    {"--chunks",
     [](Options &o, const Argument &a) {
       o.chunks =
           a.list(1, INT64_MAX,
                  "chunk sizes above 0 separated by commas, such as 5,3,1");
     }},
    {"--logits", [](Options &o, const Argument &a) { o.logits = a.text(); }},
    {"--threads",
     [](Options &o, const Argument &a) {
       o.threads = int32_t(a.integer(1, 1024, "a number from 1 to 1024"));
     }},
    {"--capacity",
     [](Options &o, const Argument &a) {
       o.capacity = a.integer(1, INT64_MAX, "a number of positions above 0");
     }},
    {"--device", [](Options &o, const Argument &a) { o.device = a.text(); }},
    {"--cpu", [](Options &o, const Argument &a) { o.cpuLevel = a.text(); }},
    {"--no-cache", [](Options &o, const Argument &) { o.noCache = true; },
     noValue},
    {"--print-ids", [](Options &o, const Argument &) { o.printIds = true; },
     noValue},
    {"--ignore-end", [](Options &o, const Argument &) { o.ignoreEnd = true; },
     noValue},
    {"--time", [](Options &o, const Argument &) { o.time = true; }, noValue},
    {"--poison", [](Options &o, const Argument &) { o.poison = true; },
     noValue},
    {"--help", [](Options &, const Argument &) { print(help); }, noValue},
    {"-h", [](Options &, const Argument &) { print(help); }, noValue},
    {"--version",
     [](Options &, const Argument &) { print("kvc-run " KVC_VERSION "\n"); },
     noValue},
};

void checkTogether(const Options &options, const std::set<std::string> &given) {
  if (options.equivalence) {
    for (const std::string &name : given)
      if (name != "--check-equivalence" && name != "--seed" &&
          name != "--capacity" && name != "--poison" && name != "--device")
        die("--check-equivalence: expected no %s with it", name.c_str());
    return;
  }
  size_t prompts = 0;
  for (const char *name : {"--prompt", "--chat", "--file", "-", "--ids"})
    prompts += given.count(name);
  if (prompts != 1)
    die("expected one of --prompt, --chat, --file, - and --ids, but got %s",
        prompts ? "several" : "none");
  for (const char *name : {"--top-k", "--top-p", "--seed"})
    if (given.count(name) && options.temperature == 0)
      die("%s: expected a --temperature above 0 with it", name);
  if (options.noCache && !options.chunks.empty())
    die("--chunks: expected no --no-cache with it, which forwards whole "
        "prefixes");
}

// All of a file, or of standard input for "-", but its last newline.
std::string readText(const std::string &path) {
  bool standard = path == "-";
  const char *name = standard ? "standard input" : path.c_str();
  FILE *file = standard ? stdin : fopen(path.c_str(), "rb");
  if (!file)
    die("%s: %s", name, strerror(errno));
  constexpr size_t most = size_t(64) << 20; // some special files never end
  std::string text;
  char part[1 << 16];
  for (size_t got; (got = fread(part, 1, sizeof part, file)) != 0;) {
    text.append(part, got);
    if (text.size() > most)
      die("%s: expected a prompt of at most %zu bytes, but got more", name,
          most);
  }
  if (ferror(file))
    die("%s: %s", name, strerror(errno));
  if (!standard)
    fclose(file);
  if (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

} // namespace

Options parseOptions(int argc, char **argv) {
  Options options;
  checkTogether(options,
                parseCommandLine(argc, argv, "kvc-run", table, options));
  for (std::optional<std::string> *text : {&options.prompt, &options.chat})
    if (*text == "-")
      *text = readText("-");
  if (options.file)
    options.prompt = readText(*options.file);
  return options;
}
