// What a GGUF file's metadata says of a decoder (GGUF specification, ggml,
// docs/gguf.md): architectures llama, qwen2 and gpt2.
#include "compiler/frontend/Files.h"
#include "compiler/frontend/FrontEnds.h"
#include "compiler/frontend/Geometry.h"
#include "compiler/frontend/Weights.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace llvm;

namespace kvc {

static constexpr StringLiteral frequencies = "rope_freqs.weight";

// The keys of one architecture, its name taken off.
static json::Object keysOf(const json::Object &metadata, StringRef prefix) {
  json::Object keys;
  for (const auto &[key, value] : metadata)
    if (StringRef rest = key; rest.consume_front(prefix))
      keys[rest] = value;
  return keys;
}

// llama3's scaling comes as a tensor: a divisor for each pair.
static Error readFrequencies(const TensorFile &file, RotarySpec &rotary) {
  if (!file.has(frequencies))
    return Error::success();
  int64_t pairs = rotary.dims / 2;
  std::vector<double> divisors(pairs);
  if (Error error = file.read(frequencies, pairs, 0, pairs, divisors.data()))
    return error;
  double factor = rotary.divisors.empty() ? 1 : rotary.divisors[0];
  for (double &divisor : divisors) {
    if (!std::isfinite(divisor) || divisor <= 0)
      return invalid(file.path(), frequencies +
                                      ": expected positive numbers, but got " +
                                      Twine(std::to_string(divisor)));
    divisor *= factor;
  }
  rotary.divisors = std::move(divisors);
  return Error::success();
}

static void readRotary(Fields &keys, bool paired, ModelSpec &spec) {
  RotarySpec &rotary = spec.rotary;
  rotary.theta = keys.positive("rope.freq_base");
  StringRef dims = "rope.dimension_count";
  rotary.dims = keys.size(dims, spec.headDim);
  checkRotaryDims(keys, dims, rotary.dims, spec.headDim);
  // The order of rows in a head that is rotated in part isn't known here.
  if (paired && rotary.dims != spec.headDim)
    keys.fail(dims, "expected the width of a head (" + Twine(spec.headDim) +
                        "), but got " + Twine(rotary.dims));

  // A factor without a type is linear scaling's, as llama.cpp has it; older
  // files call it scale_linear.
  StringRef factor = "rope.scaling.factor", older = "rope.scale_linear";
  if (keys.has(factor) && keys.has(older))
    keys.require(older, keys.any(factor));
  else if (keys.has(older))
    factor = older;
  std::string type = keys.has(factor) ? "linear" : "none";
  if (keys.has("rope.scaling.type"))
    type = keys.text("rope.scaling.type");
  if (type == "linear")
    rotary.divisors = {keys.positive(factor)};
  else if (type == "none")
    keys.require(factor, 1);
  else
    keys.expected("rope.scaling.type", "none or linear");
  // Of use to other types only.
  keys.ignore({"rope.scaling.original_context_length",
               "rope.scaling.finetuned"});
}

static WeightNames tensorNames(const TensorFile &file) {
  std::string layer = "blk.{}.";
  WeightNames names;
  names.tokenEmbedding = "token_embd";
  names.attentionNorm = layer + "attn_norm";
  names.query = layer + "attn_q";
  names.key = layer + "attn_k";
  names.value = layer + "attn_v";
  names.output = layer + "attn_output";
  names.feedForwardNorm = layer + "ffn_norm";
  names.gate = layer + "ffn_gate";
  names.up = layer + "ffn_up";
  names.down = layer + "ffn_down";
  names.finalNorm = "output_norm";
  names.head = "output";
  names.tiedHead = !file.has("output.weight");
  names.outputBias = file.has("blk.0.attn_output.bias");
  names.feedForwardBias = file.has("blk.0.ffn_up.bias");
  return names;
}

static void readLlama(Fields &keys, const TensorFile &file, ModelSpec &spec) {
  spec.norm = NormKind::RMSNorm;
  spec.normEpsilon = keys.positive("attention.layer_norm_rms_epsilon");
  spec.positions = PositionKind::Rotary;
  spec.activation = ActivationKind::SiLU;
  spec.gated = true;
  // llama's rows are in pair order, qwen2's in half order.
  bool paired = spec.architecture == "llama";
  readRotary(keys, paired, spec);
  keys.require("expert_count", 0);
  keys.require("expert_used_count", 0);

  WeightNames names = tensorNames(file);
  names.attentionBias = file.has("blk.0.attn_q.bias");
  names.pairedHeadDim = paired ? spec.headDim : 0;
  nameWeights(spec, names);
}

static void readGPT2(Fields &keys, const TensorFile &file, ModelSpec &spec) {
  spec.norm = NormKind::LayerNorm;
  spec.normEpsilon = keys.positive("attention.layer_norm_epsilon");
  spec.positions = PositionKind::Learned;
  spec.activation = ActivationKind::GELUTanh;
  spec.gated = false;

  WeightNames names = tensorNames(file);
  names.positionEmbedding = "position_embd";
  names.fused = "blk.{}.attn_qkv";
  names.attentionBias = true;
  nameWeights(spec, names);
}

static void readKeys(Fields &keys, const TensorFile &file, ModelSpec &spec) {
  // The vocabulary's size is the embedding's; the key is not always there.
  const Tensor *embedding = file.find("token_embd.weight");
  if (embedding && embedding->shape.size() == 2 && embedding->shape[0] > 0 &&
      embedding->shape[0] <= maxSize)
    spec.vocab = embedding->shape[0];
  else
    keys.fail("vocab_size", "expected token_embd.weight to be a matrix with a "
                            "row for each token");
  keys.require("vocab_size", spec.vocab);

  readGeometry(keys,
               {"", "embedding_length", "block_count", "attention.head_count",
                "attention.head_count_kv", "attention.key_length",
                "feed_forward_length", "context_length"},
               spec);
  // One width serves keys and values.
  if (keys.has("attention.key_length") || keys.has("attention.value_length"))
    if (keys.size("attention.value_length") != spec.headDim)
      keys.expected("attention.value_length", "the width of a key (" +
                                                  Twine(spec.headDim) + ")");
  keys.require("attention.causal", true);
  if (spec.architecture == "gpt2")
    readGPT2(keys, file, spec);
  else
    readLlama(keys, file, spec);
  keys.finish();
}

Expected<ModelSpec> readGGUFModel(StringRef path) {
  json::Object metadata;
  auto file = openGGUF(path, &metadata);
  if (!file)
    return file.takeError();

  ModelSpec spec;
  Fields general(path, metadata);
  general.require("general.type", "model");
  general.require("split.count", 1);
  spec.architecture = general.text("general.architecture");
  if (spec.architecture != "llama" && spec.architecture != "qwen2" &&
      spec.architecture != "gpt2")
    general.expected("general.architecture", "llama, qwen2 or gpt2");
  if (Error error = general.takeError())
    return std::move(error);

  std::string prefix = spec.architecture + ".";
  json::Object object = keysOf(metadata, prefix);
  Fields keys(path, object, prefix);
  readKeys(keys, **file, spec);
  if (Error error = keys.takeError())
    return std::move(error);
  spec.name = identifier(sys::path::stem(path));
  spec.weights = path.str();

  if (Error error = findWeights(spec, **file))
    return std::move(error);
  if (Error error = readFrequencies(**file, spec.rotary))
    return std::move(error);
  bool rotary = spec.positions == PositionKind::Rotary;
  auto isHarmless = [&](StringRef tensor) {
    return rotary && tensor == frequencies;
  };
  if (Error error = checkNothingElse(spec, **file, isHarmless))
    return std::move(error);
  return spec;
}

} // namespace kvc
