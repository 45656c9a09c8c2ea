// "random:<seed>": weights that are a function of seed and name only, so that
// any program can make the same bits. docs/spec.md is the definition.
#include "compiler/frontend/WeightFile.h"
#include "compiler/frontend/Files.h"
#include "compiler/frontend/TensorFile.h"
#include <cmath>

using namespace llvm;

// 1 + 0.1 * r is two roundings, on every machine.
#pragma clang fp contract(off)

namespace kvc {
namespace {

uint64_t fnv1a(StringRef name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name.bytes())
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// The finaliser of splitmix64.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class RandomWeights final : public WeightFile {
public:
  RandomWeights(StringRef path, uint64_t seed) : text(path), seed(seed) {}

  StringRef path() const override { return text; }

  Error check(StringRef name, ArrayRef<int64_t> shape) const override {
    if (shape.empty() || shape.size() > 2 || !elementCount(shape))
      return invalid(text, name + ": expected a vector or a matrix of at most "
                                  "2^63 elements, but got shape " +
                               printShape(shape));
    return Error::success();
  }

  Expected<std::vector<int64_t>> shape(StringRef name) const override {
    return invalid(text, name + ": random weights have no shape of their own");
  }

  const Storage *storage(StringRef name) const override { return nullptr; }

  Expected<const char *> bytes(StringRef name, ArrayRef<int64_t>, int64_t,
                               int64_t) const override {
    return invalid(text, name + ": random weights stand nowhere");
  }

  Error read(StringRef name, ArrayRef<int64_t> shape, int64_t first,
             int64_t count, double *out) const override {
    if (Error error = check(name, shape))
      return error;
    bool matrix = shape.size() == 2;
    double base = matrix || name.ends_with(".bias") ? 0 : 1;
    double scale = matrix ? std::sqrt(3.0 / double(shape[1])) : 0.1;
    uint64_t key = mix(seed ^ fnv1a(name));
    for (int64_t i = 0; i < count; ++i) {
      uint64_t u = mix(key + uint64_t(first + i + 1) * 0x9e3779b97f4a7c15);
      double r = double(u >> 11) * 0x1p-52 - 1; // in [-1, 1), exact
      out[i] = base + scale * r;
    }
    return Error::success();
  }

private:
  std::string text;
  uint64_t seed;
};

} // namespace

Expected<std::unique_ptr<WeightFile>> openRandomWeights(StringRef path) {
  uint64_t seed;
  StringRef digits = path;
  if (!digits.consume_front("random:") || digits.getAsInteger(10, seed))
    return invalid(path, "expected \"random:\" and a whole number below 2^64");
  return std::make_unique<RandomWeights>(path, seed);
}

} // namespace kvc
