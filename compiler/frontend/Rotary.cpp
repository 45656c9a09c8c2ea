#include "compiler/frontend/Rotary.h"
#include <cmath>

using namespace llvm;

namespace kvc {

void readLlama3Scaling(Fields &fields, const Llama3Names &names,
                       RotarySpec &rotary) {
  double factor = fields.positive(names.factor);
  double low = fields.positive(names.lowFactor);
  double high = fields.positive(names.highFactor);
  double context = double(fields.size(names.originalContext));
  if (low >= high)
    return fields.expected(names.highFactor, "more than " + names.lowFactor);
  for (int64_t i = 0; i < rotary.dims / 2; ++i) {
    double frequency =
        std::pow(rotary.theta, -2.0 * double(i) / double(rotary.dims));
    double wavelength = 2 * M_PI / frequency;
    double t = (context / wavelength - low) / (high - low);
    double divisor = t >= 1   ? 1
                     : t <= 0 ? factor
                              : 1 / ((1 - t) / factor + t);
    rotary.divisors.push_back(divisor);
  }
}

void checkRotaryDims(Fields &fields, StringRef key, int64_t dims,
                     int64_t headDim) {
  if (dims % 2 != 0)
    fields.fail(key, "expected an even number of rotary dims, but got " +
                         Twine(dims));
  if (dims > headDim)
    fields.fail(key, "expected at most the width of a head (" +
                         Twine(headDim) + "), but got " + Twine(dims));
}

} // namespace kvc
