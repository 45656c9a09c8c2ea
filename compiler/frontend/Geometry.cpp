#include "compiler/frontend/Geometry.h"
#include <cmath>

using namespace llvm;

namespace kvc {

// More than any model has; bounds the work of checking each layer's tensors.
static constexpr int64_t maxLayers = 4096;

static void readHeads(Fields &fields, const GeometryNames &names,
                      ModelSpec &spec) {
  spec.heads = fields.size(names.heads);
  spec.kvHeads = names.kvHeads.empty()
                     ? spec.heads
                     : fields.size(names.kvHeads, spec.heads);
  if (spec.heads % spec.kvHeads != 0)
    fields.fail(names.kvHeads, "expected a divisor of " + names.heads + " (" +
                                   Twine(spec.heads) + "), but got " +
                                   Twine(spec.kvHeads));

  if (!names.headDim.empty() && fields.has(names.headDim)) {
    spec.headDim = fields.size(names.headDim);
  } else {
    if (spec.width % spec.heads != 0)
      fields.fail(names.heads, "expected a divisor of " + names.width + " (" +
                                   Twine(spec.width) + "), but got " +
                                   Twine(spec.heads));
    spec.headDim = std::max<int64_t>(1, spec.width / spec.heads);
  }
  if (spec.heads * spec.headDim > maxSize)
    fields.fail(names.heads, "expected heads of at most 2147483647 elements "
                             "in all, but got " +
                                 Twine(spec.heads) + " of " +
                                 Twine(spec.headDim));
  spec.attentionScale = 1 / std::sqrt(double(spec.headDim));
}

void readGeometry(Fields &fields, const GeometryNames &names, ModelSpec &spec,
                  std::optional<int64_t> defaultHidden) {
  if (!names.vocab.empty())
    spec.vocab = fields.size(names.vocab);
  spec.width = fields.size(names.width);
  spec.layers = fields.size(names.layers);
  if (spec.layers > maxLayers) {
    fields.fail(names.layers, "expected at most " + Twine(maxLayers) +
                                  " layers, but got " + Twine(spec.layers));
    spec.layers = 1; // safe to go on computing with
  }
  readHeads(fields, names, spec);
  spec.windows.assign(spec.layers, 0);
  spec.hidden = fields.size(names.hidden, defaultHidden);
  spec.context = fields.size(names.context);

  // Rounded, but far from what 64 bits of bytes hold.
  double width = double(spec.width);
  double layer =
      width * (2.0 * double(spec.headDim) * double(spec.heads + spec.kvHeads) +
               3.0 * double(spec.hidden));
  double elements = double(spec.layers) * layer +
                    width * (2.0 * double(spec.vocab) + double(spec.context));
  if (elements > 0x1p56)
    fields.fail(names.width, "expected at most 2^56 weights in all, but got "
                             "more with this width (" +
                                 Twine(spec.width) + ")");
}

StringRef layerType(int64_t window) {
  return window ? "sliding_attention" : "full_attention";
}

void readWindows(Fields &fields, int64_t window,
                 function_ref<bool(int64_t)> slides, ModelSpec &spec) {
  std::vector<bool> sliding;
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    sliding.push_back(slides(layer));
  if (fields.has("layer_types")) {
    const json::Array *types = fields.any("layer_types").getAsArray();
    bool valid = types && types->size() == sliding.size();
    for (size_t layer = 0; valid && layer < types->size(); ++layer) {
      sliding[layer] = (*types)[layer] == layerType(1);
      valid = sliding[layer] || (*types)[layer] == layerType(0);
    }
    if (!valid)
      fields.expected("layer_types",
                      layerType(0) + " or " + layerType(1) + " for each of " +
                          Twine(spec.layers) + " layers");
  }
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    spec.windows[layer] = sliding[layer] && window < spec.context ? window : 0;
}

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
