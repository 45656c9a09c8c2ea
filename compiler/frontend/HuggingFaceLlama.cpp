// What config.json says of Llama and of what is Llama by another name: Mistral
// (a sliding window), and Qwen2 (biases of query, key and value; a window in some
// layers).
#include "compiler/frontend/FrontEnds.h"
#include "compiler/frontend/Geometry.h"
#include "compiler/frontend/Weights.h"

using namespace llvm;

namespace kvc {

static void readScaling(Fields &scaling, bool typeNeeded, RotarySpec &rotary) {
  // "type" is the older spelling; some versions write both.
  StringRef key = scaling.has("rope_type") ? "rope_type" : "type";
  std::string type = "default";
  if (typeNeeded || scaling.has(key))
    type = scaling.text(key);
  scaling.require("type", type);
  // Part of a head, or a factor of the cosines: not so in these families.
  scaling.require("partial_rotary_factor", 1);
  scaling.require("attention_factor", 1);

  if (type == "linear")
    rotary.divisors = {scaling.positive("factor")};
  else if (type == "llama3")
    readLlama3Scaling(scaling,
                      {"factor", "low_freq_factor", "high_freq_factor",
                       "original_max_position_embeddings"},
                      rotary);
  else if (type != "default")
    scaling.expected(key, "default, linear or llama3");
  scaling.finish();
}

// Two spellings: "rope_theta" beside "rope_scaling" (which may be null), and
// "rope_parameters" that holds both.
static void readRotary(Fields &config, ModelSpec &spec) {
  spec.rotary.dims = spec.headDim;
  checkRotaryDims(config, "head_dim", spec.rotary.dims, spec.headDim);
  // Llama's pairs are (i, i + dims/2); this asks for (2i, 2i + 1).
  config.require("rope_interleaved", false);
  config.require("partial_rotary_factor", 1);

  bool parameters = config.has("rope_parameters");
  bool scaling = config.has("rope_scaling");
  if (!parameters && !scaling) {
    spec.rotary.theta = config.positive("rope_theta");
    return;
  }
  if (parameters && scaling)
    config.require("rope_scaling", config.any("rope_parameters"));
  Fields nested =
      config.object(parameters ? "rope_parameters" : "rope_scaling");
  bool here = nested.has("rope_theta");
  if (here && config.has("rope_theta"))
    config.require("rope_theta", nested.any("rope_theta"));
  bool above = !here && (scaling || config.has("rope_theta"));
  spec.rotary.theta = (above ? config : nested).positive("rope_theta");
  readScaling(nested, /*typeNeeded=*/!parameters, spec.rotary);
}

// Mistral's window is every layer's, Qwen2's those layers' that layer_types says,
// or of the layers from max_window_layers on; Llama has none.
static void readWindow(Fields &config, StringRef modelType, ModelSpec &spec) {
  bool qwen2 = modelType == "qwen2";
  int64_t slides = 0; // every layer's
  if (qwen2 && !config.flag("use_sliding_window", false))
    config.ignore({"sliding_window", "max_window_layers"});
  // Absent, Mistral's is 4096.
  else if (modelType == "mistral" && !config.given("sliding_window"))
    config.expected("sliding_window", "a number or null");
  else if (config.has("sliding_window")) {
    int64_t window = config.size("sliding_window");
    if (modelType == "llama" && window < spec.context)
      return config.expected("sliding_window",
                             "null or at least max_position_embeddings (" +
                                 Twine(spec.context) + ")");
    if (qwen2) {
      int64_t first = config.size("max_window_layers");
      return readWindows(config, window,
                         [&](int64_t layer) { return layer >= first; }, spec);
    }
    if (modelType == "mistral")
      slides = window;
    if (slides < spec.context)
      spec.windows.assign(spec.layers, slides);
  }
  if (config.has("layer_types"))
    config.require("layer_types", std::vector<std::string>(
                                      spec.layers, layerType(slides).str()));
}

static void readWeights(Fields &config, StringRef modelType, ModelSpec &spec) {
  WeightNames names;
  std::string layer = "model.layers.{}.";
  names.tokenEmbedding = "model.embed_tokens";
  names.attentionNorm = layer + "input_layernorm";
  names.query = layer + "self_attn.q_proj";
  names.key = layer + "self_attn.k_proj";
  names.value = layer + "self_attn.v_proj";
  names.output = layer + "self_attn.o_proj";
  names.feedForwardNorm = layer + "post_attention_layernorm";
  names.gate = layer + "mlp.gate_proj";
  names.up = layer + "mlp.up_proj";
  names.down = layer + "mlp.down_proj";
  names.finalNorm = "model.norm";
  names.head = "lm_head";
  names.tiedHead = config.flag("tie_word_embeddings", false);
  if (modelType == "llama") {
    names.attentionBias = config.flag("attention_bias", false);
    names.outputBias = names.attentionBias;
    names.feedForwardBias = config.flag("mlp_bias", false);
  } else {
    config.require("attention_bias", modelType == "qwen2");
    config.require("mlp_bias", false);
    names.attentionBias = modelType == "qwen2";
  }
  nameWeights(spec, names);
}

void readLlamaConfig(Fields &config, StringRef modelType, ModelSpec &spec) {
  spec.architecture = modelType.str();
  spec.norm = NormKind::RMSNorm;
  spec.positions = PositionKind::Rotary;
  spec.gated = true;
  readGeometry(config,
               {"vocab_size", "hidden_size", "num_hidden_layers",
                "num_attention_heads", "num_key_value_heads", "head_dim",
                "intermediate_size", "max_position_embeddings"},
               spec);
  // Absent, not null, it is a number of these families' own.
  if (modelType != "llama" && !config.given("num_key_value_heads"))
    config.expected("num_key_value_heads", "a number or null");
  spec.normEpsilon = config.positive("rms_norm_eps");
  spec.activation = readHuggingFaceActivation(config, "hidden_act");
  readRotary(config, spec);
  readWindow(config, modelType, spec);
  readWeights(config, modelType, spec);
}

} // namespace kvc
