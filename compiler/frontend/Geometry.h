// What every format says under names of its own: the sizes of a decoder, and how
// rotary frequencies are scaled (RotarySpec::divisors).
#ifndef KVC_COMPILER_FRONTEND_GEOMETRY_H
#define KVC_COMPILER_FRONTEND_GEOMETRY_H

#include "compiler/frontend/Fields.h"
#include "compiler/frontend/ModelSpec.h"

namespace kvc {

// A format's names for them; empty where it has none.
struct GeometryNames {
  llvm::StringRef vocab, width, layers, heads;
  llvm::StringRef kvHeads; // absent field: as many as heads
  llvm::StringRef headDim; // absent field: width / heads
  llvm::StringRef hidden, context;
};

// Reads the sizes into `spec`, their relations checked, and sets the usual
// scale of attention scores, 1/sqrt(headDim).
void readGeometry(Fields &fields, const GeometryNames &names, ModelSpec &spec,
                  std::optional<int64_t> defaultHidden = {});

// The kind of a layer with this window, as `layer_types` names it.
llvm::StringRef layerType(int64_t window);

// Reads `layer_types`, where it is given, and sets the windows of `spec`: `window`,
// in those layers that it says; without it, in those that `slides` says. A window
// that holds the whole context is none.
void readWindows(Fields &fields, int64_t window,
                 llvm::function_ref<bool(int64_t layer)> slides, ModelSpec &spec);

// The "llama3" scaling (Llama 3.1), its parameters named by each format.
struct Llama3Names {
  llvm::StringRef factor, lowFactor, highFactor, originalContext;
};

// Reads the parameters and computes a divisor for each pair of `rotary`, whose
// dims and theta are set. With wavelength w = 2 pi / frequency and t =
// (originalContext / w - low) / (high - low): 1 where t >= 1, factor where
// t <= 0, else 1 / ((1 - t) / factor + t).
void readLlama3Scaling(Fields &fields, const Llama3Names &names,
                       RotarySpec &rotary);

// Fails on an odd number of dims, or more of them than a head has.
void checkRotaryDims(Fields &fields, llvm::StringRef key, int64_t dims,
                     int64_t headDim);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_GEOMETRY_H
