#include "Table.h"

#include <cstdio>
#include <cstring>

std::string machineName() {
  std::string name = "unknown";
  char line[512];
  if (FILE *file = fopen("/proc/cpuinfo", "r")) {
    while (name == "unknown" && fgets(line, sizeof line, file))
      if (strncmp(line, "model name", 10) == 0)
        if (const char *colon = strchr(line, ':')) {
          name = colon + 2;
          name.erase(name.find_last_not_of("\n") + 1);
        }
    fclose(file);
  }
  return name;
}

std::string layoutsOf(const kvc_model_info &info) {
  std::string text;
  for (int64_t i = 0; i < info.groups_count; ++i)
    text += (i ? ", " : "") + std::string(info.groups[i].layout);
  return text;
}

std::string identityOf(const kvc_model_info &info) {
  std::string text;
  char digits[3];
  for (uint8_t byte : info.identity) {
    snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

namespace {

long long wide(int64_t number) { return static_cast<long long>(number); }

// Milliseconds: the median, and in brackets the least and the most.
void printSamples(const std::vector<double> &samples) {
  printf("%10.3f  (%.3f - %.3f)", 1e3 * median(samples), 1e3 * least(samples),
         1e3 * most(samples));
}

template <typename Function>
void printAll(const Results &results, Kind kind, const char *title,
              Function print) {
  bool first = true;
  for (const Measurement &what : results.all) {
    if (what.kind != kind)
      continue;
    if (first)
      printf("\n%s\n", title);
    first = false;
    print(what);
    putchar('\n');
  }
}

} // namespace

void printTable(const Results &results, const BenchOptions &options) {
  const kvc_model_info &info = results.info;
  printf("%s %.8s: %lld layers of width %lld, vocabulary %lld, weights %.1f "
         "MB, cache "
         "%lld bytes a position, %s\n",
         info.name, identityOf(info).c_str(), wide(info.layers),
         wide(info.width), wide(info.vocab), double(info.weights_bytes) / 1e6,
         wide(info.cache_bytes_per_position), layoutsOf(info).c_str());
  printf(
      "%s, CPU level %s; medians of %lld rounds, with the least and the most\n",
      machineName().c_str(), results.level.c_str(), wide(options.rounds));
  for (const std::string &size : results.leftOut)
    printf("left out, since the capacity is %lld positions: %s\n",
           wide(info.capacity), size.c_str());

  puts("\nThis machine: reading the weight file, and fused multiply-adds of "
       "f32\n"
       "threads     GB/s  (least - most)        GFLOP/s  (least - most)");
  for (const Peak &peak : results.peaks)
    printf("%7lld %8.1f  (%.1f - %.1f) %12.0f  (%.0f - %.0f)\n",
           wide(peak.threads), median(peak.read) / 1e9, least(peak.read) / 1e9,
           most(peak.read) / 1e9, median(peak.fma) / 1e9, least(peak.fma) / 1e9,
           most(peak.fma) / 1e9);

  printAll(results, Kind::firstToken,
           "Time to the first token\n"
           "threads  prompt   tokens/s          ms  (least - most)",
           [](const Measurement &what) {
             printf("%7lld %7lld %10.1f  ", wide(what.threads),
                    wide(what.prompt),
                    double(what.prompt) / median(what.seconds));
             printSamples(what.seconds);
           });
  printAll(
      results, Kind::decode,
      "A step of decoding; of the roof: the time in which as many threads read "
      "the weight file and the cache, over the step's\n"
      "threads   depth   batch   tokens/s   of the roof          ms  (least - "
      "most)",
      [](const Measurement &what) {
        printf("%7lld %7lld %7lld %10.1f %13.2f  ", wide(what.threads),
               wide(what.depth), wide(what.batch),
               double(what.batch) / median(what.seconds),
               median(what.roof) / median(what.seconds));
        printSamples(what.seconds);
      });
  const Measurement *cached = nullptr;
  bool first = true;
  for (const Measurement &what : results.all) {
    if (what.kind == Kind::cached)
      cached = &what;
    if (what.kind != Kind::uncached)
      continue;
    if (first)
      printf("\nTokens behind a prompt of %lld: with the cache, and the whole "
             "prefix "
             "again for each\n"
             "threads  tokens   cached ms  (least - most)   whole ms  (least - "
             "most)   "
             "whole/cached\n",
             wide(kGeneratePrompt));
    first = false;
    printf("%7lld %7lld  ", wide(what.threads), wide(what.tokens));
    printSamples(cached->seconds);
    printf("  ");
    printSamples(what.seconds);
    printf("  %8.2f\n", median(what.seconds) / median(cached->seconds));
  }
}
