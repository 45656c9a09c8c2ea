// Our own description of a decoder. docs/spec.md is the definition.
#include "compiler/frontend/Files.h"
#include "compiler/frontend/FrontEnds.h"
#include "compiler/frontend/Geometry.h"
#include "compiler/frontend/Weights.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace kvc {

static void readNorm(Fields norm, ModelSpec &spec) {
  std::string kind = norm.text("kind");
  if (kind == "layer_norm")
    spec.norm = NormKind::LayerNorm;
  else if (kind == "rms_norm")
    spec.norm = NormKind::RMSNorm;
  else
    norm.expected("kind", "layer_norm or rms_norm");
  spec.normEpsilon = norm.positive("epsilon");
  norm.finish();
}

static void readScaling(Fields scaling, RotarySpec &rotary) {
  std::string type = scaling.text("type");
  if (type == "linear")
    rotary.divisors = {scaling.positive("factor")};
  else if (type == "llama3")
    readLlama3Scaling(scaling,
                      {"factor", "low_freq_factor", "high_freq_factor",
                       "original_context"},
                      rotary);
  else
    scaling.expected("type", "linear or llama3");
  scaling.finish();
}

static void readPositions(Fields positions, ModelSpec &spec) {
  std::string kind = positions.text("kind");
  if (kind == "learned") {
    spec.positions = PositionKind::Learned;
  } else if (kind == "rotary") {
    spec.positions = PositionKind::Rotary;
    spec.rotary.theta = positions.positive("theta");
    spec.rotary.dims = positions.size("dims", spec.headDim);
    checkRotaryDims(positions, "dims", spec.rotary.dims, spec.headDim);
    if (positions.has("scaling"))
      readScaling(positions.object("scaling"), spec.rotary);
  } else {
    positions.expected("kind", "learned or rotary");
  }
  positions.finish();
}

static void readWindow(Fields &fields, ModelSpec &spec) {
  if (fields.has("sliding_window"))
    readWindows(fields, fields.size("sliding_window"),
                [](int64_t) { return true; }, spec);
}

static void readActivation(Fields &fields, ModelSpec &spec) {
  std::string name = fields.text("activation");
  if (name == "gelu")
    spec.activation = ActivationKind::GELU;
  else if (name == "gelu_tanh")
    spec.activation = ActivationKind::GELUTanh;
  else if (name == "silu")
    spec.activation = ActivationKind::SiLU;
  else if (name == "relu")
    spec.activation = ActivationKind::ReLU;
  else
    fields.expected("activation", "gelu, gelu_tanh, silu or relu");
}

static void readArithmetic(Fields &fields, ModelSpec &spec) {
  if (!fields.has("arithmetic"))
    return;
  spec.arithmetic = fields.text("arithmetic");
  if (spec.arithmetic != "f64" && spec.arithmetic != "f32")
    fields.expected("arithmetic", "f32 or f64");
}

static void readWeights(Fields &fields, ModelSpec &spec) {
  WeightNames names;
  names.tokenEmbedding = "token_embedding";
  names.positionEmbedding = "position_embedding";
  names.attentionNorm = "layers.{}.attention_norm";
  names.query = "layers.{}.query";
  names.key = "layers.{}.key";
  names.value = "layers.{}.value";
  names.output = "layers.{}.output";
  names.feedForwardNorm = "layers.{}.feed_forward_norm";
  names.gate = "layers.{}.gate";
  names.up = "layers.{}.up";
  names.down = "layers.{}.down";
  names.finalNorm = "final_norm";
  names.head = "head";
  names.tiedHead = fields.flag("tied_head", false);
  if (fields.has("biases")) {
    Fields biases = fields.object("biases");
    names.attentionBias = biases.flag("attention", false);
    names.outputBias = biases.flag("output", false);
    names.feedForwardBias = biases.flag("feed_forward", false);
    names.headBias = biases.flag("head", false);
    biases.finish();
  }
  nameWeights(spec, names);
}

Expected<ModelSpec> readSpecJSON(StringRef path) {
  Expected<json::Object> object = readJSON(path);
  if (!object)
    return object.takeError();
  if (!object->get("kvc_spec") &&
      (object->get("model_type") || object->get("weight_map")))
    return invalid(path, "expected a spec (kvc_spec), but got a file of a "
                         "Hugging Face directory; give the directory");
  Fields fields(path, *object);
  ModelSpec spec;
  spec.architecture = "spec";
  if (fields.size("kvc_spec") != 1)
    fields.expected("kvc_spec", "version 1");
  spec.name = fields.text("name");
  if (spec.name != identifier(spec.name))
    fields.expected("name", "a C identifier");
  readGeometry(fields,
               {"vocab", "width", "layers", "heads", "kv_heads", "head_dim",
                "hidden", "context"},
               spec);
  readNorm(fields.object("norm"), spec);
  readPositions(fields.object("positions"), spec);
  readWindow(fields, spec);
  readActivation(fields, spec);
  spec.gated = fields.flag("gated", false);
  readArithmetic(fields, spec);
  readWeights(fields, spec);

  spec.weights = fields.text("weights");
  fields.finish();
  if (Error error = fields.takeError())
    return std::move(error);

  if (!StringRef(spec.weights).starts_with("random:") &&
      !sys::path::is_absolute(spec.weights)) {
    SmallString<128> file = sys::path::parent_path(path);
    sys::path::append(file, spec.weights);
    spec.weights = file.str().str();
  }
  auto file = openWeights(spec.weights);
  if (!file)
    return invalid(path, "weights: " + toString(file.takeError()));
  if (Error error = findWeights(spec, **file))
    return std::move(error);
  return spec;
}

} // namespace kvc
