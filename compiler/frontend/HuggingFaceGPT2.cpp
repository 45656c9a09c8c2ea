// What config.json says of GPT-2: LayerNorm, learned positions, query, key and
// value fused in one Conv1D, whose matrices are [inputs, outputs].
#include "compiler/frontend/FrontEnds.h"
#include "compiler/frontend/Geometry.h"
#include "compiler/frontend/Weights.h"

using namespace llvm;

namespace kvc {

static void readWeights(Fields &config, const TensorFile &file,
                        ModelSpec &spec) {
  // The bare model's file has no prefix.
  std::string prefix = file.has("transformer.wte.weight") ? "transformer." : "";
  std::string layer = prefix + "h.{}.";
  WeightNames names;
  names.tokenEmbedding = prefix + "wte";
  names.positionEmbedding = prefix + "wpe";
  names.attentionNorm = layer + "ln_1";
  names.fused = layer + "attn.c_attn";
  names.output = layer + "attn.c_proj";
  names.feedForwardNorm = layer + "ln_2";
  names.up = layer + "mlp.c_fc";
  names.down = layer + "mlp.c_proj";
  names.finalNorm = prefix + "ln_f";
  names.head = "lm_head";
  names.tiedHead = config.flag("tie_word_embeddings", true);
  names.attentionBias = names.outputBias = names.feedForwardBias = true;
  names.transposed = true;
  nameWeights(spec, names);
}

void readGPT2Config(Fields &config, const TensorFile &file, ModelSpec &spec) {
  spec.architecture = "gpt2";
  spec.norm = NormKind::LayerNorm;
  spec.positions = PositionKind::Learned;
  spec.gated = false;
  // "n_inner" absent or null: four times the width.
  readGeometry(config,
               {"vocab_size", "n_embd", "n_layer", "n_head", "", "", "n_inner",
                "n_positions"},
               spec, std::min(4 * config.size("n_embd"), maxSize));
  spec.normEpsilon = config.positive("layer_norm_epsilon");
  spec.activation = readHuggingFaceActivation(config, "activation_function");
  if (!config.flag("scale_attn_weights", true))
    spec.attentionScale = 1;
  config.require("scale_attn_by_inverse_layer_idx", false);
  config.require("add_cross_attention", false);
  config.require("n_ctx", spec.context); // an older name of n_positions
  config.ignore({"reorder_and_upcast_attn"}); // the order of roundings
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop",
                 "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type",
                 "summary_use_proj"});
  readWeights(config, file, spec);
}

} // namespace kvc
