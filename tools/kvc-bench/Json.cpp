#include "Json.h"

#include "Table.h"

#include "tools/kvc-run/Common.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

// Members of objects, one a line.
class Writer {
public:
  explicit Writer(const std::string &path)
      : path(path), file(fopen(path.c_str(), "w")) {
    if (!file)
      die("%s: %s", path.c_str(), strerror(errno));
  }
  void close() {
    fputc('\n', file);
    bool failed = ferror(file);
    if (fclose(file) != 0 || failed)
      die("%s: %s", path.c_str(), strerror(errno));
  }
  void open(const char *bracket, const char *name = nullptr) {
    member(name);
    fputs(bracket, file);
    empty = true;
    ++depth;
  }
  void shut(const char *bracket) {
    --depth;
    line();
    fputs(bracket, file);
    empty = false;
  }
  void text(const char *name, const std::string &value) {
    member(name);
    fputc('"', file);
    for (unsigned char c : value)
      if (c == '"' || c == '\\')
        fprintf(file, "\\%c", c);
      else if (c < 0x20)
        fprintf(file, "\\u%04x", c);
      else
        fputc(c, file);
    fputc('"', file);
  }
  void number(const char *name, int64_t value) {
    member(name);
    fprintf(file, "%lld", static_cast<long long>(value));
  }
  void samples(const char *name, const std::vector<double> &values) {
    member(name);
    const char *before = "[";
    for (double value : values) {
      fprintf(file, "%s%.9g", before, value);
      before = ", ";
    }
    fputs("]", file);
  }

private:
  void line() { fprintf(file, "\n%*s", 2 * depth, ""); }
  void member(const char *name) {
    if (!empty)
      fputc(',', file);
    if (depth)
      line();
    if (name)
      fprintf(file, "\"%s\": ", name);
    empty = false;
  }

  std::string path;
  FILE *file;
  int depth = 0;
  bool empty = true; // nothing stands in the bracket yet
};

} // namespace

void writeJson(const Results &results, const BenchOptions &options) {
  const kvc_model_info &info = results.info;
  Writer json(options.json);
  json.open("{");
  json.text("tool", "kvc-bench " KVC_VERSION);
  json.open("{", "model");
  json.text("name", info.name);
  json.text("identity", identityOf(info));
  json.text("layout", layoutsOf(info));
  json.number("layers", info.layers);
  json.number("width", info.width);
  json.number("vocab", info.vocab);
  json.number("capacity", info.capacity);
  json.number("weights_bytes", info.weights_bytes);
  json.number("cache_bytes_per_position", info.cache_bytes_per_position);
  json.shut("}");
  json.text("machine", machineName());
  json.text("cpu_level", results.level);
  json.number("rounds", options.rounds);
  json.open("[", "peaks");
  for (const Peak &peak : results.peaks) {
    json.open("{");
    json.number("threads", peak.threads);
    json.samples("read_bytes_per_second", peak.read);
    json.samples("fma_flop_per_second", peak.fma);
    json.shut("}");
  }
  json.shut("]");
  json.open("[", "measurements");
  for (const Measurement &what : results.all) {
    json.open("{");
    json.number("threads", what.threads);
    switch (what.kind) {
    case Kind::firstToken:
      json.text("what", "first token");
      json.number("prompt", what.prompt);
      break;
    case Kind::decode:
      json.text("what", "decode");
      json.number("depth", what.depth);
      json.number("batch", what.batch);
      json.number("bytes", what.bytes);
      json.samples("roof_seconds", what.roof);
      break;
    case Kind::cached:
    case Kind::uncached:
      json.text("what", what.kind == Kind::cached ? "cached" : "whole prefix");
      json.number("prompt", what.prompt);
      json.number("tokens", what.tokens);
      break;
    }
    json.samples("seconds", what.seconds);
    json.shut("}");
  }
  json.shut("]");
  json.open("[", "left_out");
  for (const std::string &size : results.leftOut)
    json.text(nullptr, size);
  json.shut("]");
  json.shut("}");
  json.close();
}
