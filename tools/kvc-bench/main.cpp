// kvc-bench: measures a model that kvc-opt wrote.
#include "BenchOptions.h"
#include "Json.h"
#include "Plot.h"
#include "Sweep.h"
#include "Table.h"

#include "tools/kvc-run/Common.h"
#include "tools/kvc-run/Equivalence.h"
#include "tools/kvc-run/Library.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

// Dies now of a file that couldn't be written in the end.
static void demandWritable(const std::string &path) {
  FILE *file = path.empty() ? nullptr : fopen(path.c_str(), "a");
  if (file)
    fclose(file);
  else if (!path.empty())
    die("%s: %s", path.c_str(), strerror(errno));
}

int main(int argc, char **argv) {
  BenchOptions options = parseBenchOptions(argc, argv);
  demandWritable(options.json);
  demandWritable(options.plot);
  Progress progress;
  Library library = loadLibrary(options.directory);
  kvc_model *model = nullptr;
  must(kvc_model_open(library.library, library.weightsPath.c_str(), nullptr,
                      &model));
  Options check;
  check.equivalence = options.checks;
  if (!checkEquivalence(library.library, model, check, progress))
    die("expected the same bits as the full prefix; nothing was measured");
  Results results = measure(model, library.weightsPath, options, progress);
  printTable(results, options);
  if (!options.json.empty())
    writeJson(results, options);
  if (!options.plot.empty())
    writePlot(results, options);
  kvc_model_close(model);
  return 0;
}
