#include "compiler/frontend/Geometry.h"
#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/TensorFile.h"
#include "compiler/frontend/Weights.h"
#include "llvm/ADT/SetVector.h"
#include <algorithm>
#include <charconv>

using namespace llvm;

namespace kvc {

// The shortest text that reads back as the same number.
static std::string number(double value) {
  char text[32];
  std::to_chars_result result = std::to_chars(text, text + sizeof text, value);
  return std::string(text, result.ptr);
}

static StringRef name(ActivationKind kind) {
  switch (kind) {
  case ActivationKind::GELU:
    return "gelu";
  case ActivationKind::GELUTanh:
    return "gelu_tanh";
  case ActivationKind::SiLU:
    return "silu";
  case ActivationKind::ReLU:
    return "relu";
  }
  __builtin_unreachable();
}

static StringRef name(NormKind kind) {
  switch (kind) {
  case NormKind::LayerNorm:
    return "layer_norm";
  case NormKind::RMSNorm:
    return "rms_norm";
  }
  __builtin_unreachable();
}

static void printPositions(const ModelSpec &spec, raw_ostream &os) {
  if (spec.positions == PositionKind::Learned) {
    os << "positions: learned\n";
    return;
  }
  os << "positions: rotary\nrotary_dims: " << spec.rotary.dims
     << "\nrotary_theta: " << number(spec.rotary.theta) << "\n";
  if (spec.rotary.divisors.empty())
    return;
  os << "rotary_divisors:";
  for (double divisor : spec.rotary.divisors)
    os << " " << number(divisor);
  os << "\n";
}

// In the words of the formats that have windows.
static void printWindows(const ModelSpec &spec, raw_ostream &os) {
  int64_t window = *std::max_element(spec.windows.begin(), spec.windows.end());
  if (!window)
    return;
  os << "sliding_window: " << window << "\nlayer_types:";
  for (int64_t own : spec.windows)
    os << " " << layerType(own);
  os << "\n";
}

static void printWeight(StringRef role, const WeightSpec &weight,
                        raw_ostream &os) {
  os << role << ": @" << weight.symbol << " = \"" << weight.source << "\" "
     << printShape(weight.shape);
  SetVector<const Storage *> storages(weight.storages.begin(), weight.storages.end());
  for (const Storage *storage : storages)
    if (storage)
      os << " " << storage->name;
  if (weight.transposed)
    os << " transposed";
  if (weight.firstRow)
    os << " first_row " << *weight.firstRow;
  if (weight.pairedHeadDim)
    os << " paired " << weight.pairedHeadDim;
  os << "\n";
}

void print(const ModelSpec &spec, raw_ostream &os) {
  os << "name: " << spec.name << "\narchitecture: " << spec.architecture
     << "\nvocab: " << spec.vocab << "\nwidth: " << spec.width
     << "\nlayers: " << spec.layers << "\nheads: " << spec.heads
     << "\nkv_heads: " << spec.kvHeads << "\nhead_dim: " << spec.headDim
     << "\nhidden: " << spec.hidden << "\ncontext: " << spec.context
     << "\nnorm: " << name(spec.norm) << "\nnorm_epsilon: " << number(spec.normEpsilon) << "\n";
  printPositions(spec, os);
  os << "activation: " << name(spec.activation)
     << "\ngated: " << (spec.gated ? "true" : "false")
     << "\nattention_scale: " << number(spec.attentionScale) << "\n";
  printWindows(spec, os);
  os << "arithmetic: " << spec.arithmetic << "\n";
  os << "weights: " << spec.weights << "\n";
  forEachWeight(spec, [&](StringRef role, const WeightSpec &weight) {
    printWeight(role, weight, os);
  });
}

} // namespace kvc
