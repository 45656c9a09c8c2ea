#include "compiler/frontend/Weights.h"
#include "compiler/frontend/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace kvc {

// "blk.{}.attn_q" -> "blk.attn_q"
static std::string withoutLayer(StringRef stem) {
  auto [before, after] = stem.split("{}.");
  return (before + after).str();
}

// One tensor, or a slice of its rows, as weight and as bias.
namespace {
struct Slice {
  std::string stem;
  std::string suffix; // of the symbol: ".q" of a fused tensor
  std::optional<int64_t> firstRow = std::nullopt;
};
} // namespace

static WeightSpec weightOf(const Slice &slice, std::vector<int64_t> shape) {
  WeightSpec weight;
  weight.symbol = withoutLayer(slice.stem) + slice.suffix;
  weight.source = slice.stem + ".weight";
  weight.shape = std::move(shape);
  weight.perLayer = StringRef(slice.stem).contains("{}");
  weight.firstRow = slice.firstRow;
  return weight;
}

static WeightSpec biasOf(const Slice &slice, int64_t rows) {
  WeightSpec bias = weightOf(slice, {rows});
  bias.symbol += ".bias";
  bias.source = slice.stem + ".bias";
  return bias;
}

static void nameAttention(ModelSpec &spec, const WeightNames &names) {
  int64_t queries = spec.heads * spec.headDim;
  int64_t keys = spec.kvHeads * spec.headDim;
  bool fused = !names.fused.empty();
  Slice query = fused ? Slice{names.fused, ".q", 0} : Slice{names.query, ""};
  Slice key = fused ? Slice{names.fused, ".k", queries} : Slice{names.key, ""};
  Slice value = fused ? Slice{names.fused, ".v", queries + keys}
                      : Slice{names.value, ""};
  auto matrix = [&](const Slice &slice, int64_t rows, int64_t columns) {
    WeightSpec weight = weightOf(slice, {rows, columns});
    weight.transposed = names.transposed;
    return weight;
  };
  spec.query = matrix(query, queries, spec.width);
  spec.key = matrix(key, keys, spec.width);
  spec.value = matrix(value, keys, spec.width);
  spec.output = matrix({names.output, ""}, spec.width, queries);
  if (names.attentionBias) {
    spec.queryBias = biasOf(query, queries);
    spec.keyBias = biasOf(key, keys);
    spec.valueBias = biasOf(value, keys);
  }
  if (names.outputBias)
    spec.outputBias = biasOf({names.output, ""}, spec.width);
  for (WeightSpec *weight : {&spec.query, &spec.key})
    weight->pairedHeadDim = names.pairedHeadDim;
  for (std::optional<WeightSpec> *bias : {&spec.queryBias, &spec.keyBias})
    if (*bias)
      (*bias)->pairedHeadDim = names.pairedHeadDim;
}

static void nameFeedForward(ModelSpec &spec, const WeightNames &names) {
  auto set = [&](const std::string &stem, int64_t rows, int64_t columns,
                 std::optional<WeightSpec> &bias) {
    WeightSpec weight = weightOf({stem, ""}, {rows, columns});
    weight.transposed = names.transposed;
    if (names.feedForwardBias)
      bias = biasOf({stem, ""}, rows);
    return weight;
  };
  if (spec.gated)
    spec.gate = set(names.gate, spec.hidden, spec.width, spec.gateBias);
  spec.up = set(names.up, spec.hidden, spec.width, spec.upBias);
  spec.down = set(names.down, spec.width, spec.hidden, spec.downBias);
}

void nameWeights(ModelSpec &spec, const WeightNames &names) {
  auto norm = [&](const std::string &stem, WeightSpec &weight,
                  std::optional<WeightSpec> &bias) {
    weight = weightOf({stem, ""}, {spec.width});
    if (spec.norm == NormKind::LayerNorm)
      bias = biasOf({stem, ""}, spec.width);
  };
  spec.tokenEmbedding =
      weightOf({names.tokenEmbedding, ""}, {spec.vocab, spec.width});
  if (spec.positions == PositionKind::Learned)
    spec.positionEmbedding =
        weightOf({names.positionEmbedding, ""}, {spec.context, spec.width});
  norm(names.attentionNorm, spec.attentionNorm, spec.attentionNormBias);
  nameAttention(spec, names);
  norm(names.feedForwardNorm, spec.feedForwardNorm, spec.feedForwardNormBias);
  nameFeedForward(spec, names);
  norm(names.finalNorm, spec.finalNorm, spec.finalNormBias);
  if (!names.tiedHead)
    spec.head = weightOf({names.head, ""}, {spec.vocab, spec.width});
  if (names.headBias)
    spec.headBias = biasOf({names.head, ""}, spec.vocab);
}

template <typename Spec, typename Visit>
static void visitWeights(Spec &spec, Visit visit) {
  auto maybe = [&](StringRef role, auto &weight) {
    if (weight)
      visit(role, *weight);
  };
  visit("token_embedding", spec.tokenEmbedding);
  maybe("position_embedding", spec.positionEmbedding);
  visit("attention_norm", spec.attentionNorm);
  maybe("attention_norm_bias", spec.attentionNormBias);
  visit("query", spec.query);
  maybe("query_bias", spec.queryBias);
  visit("key", spec.key);
  maybe("key_bias", spec.keyBias);
  visit("value", spec.value);
  maybe("value_bias", spec.valueBias);
  visit("output", spec.output);
  maybe("output_bias", spec.outputBias);
  visit("feed_forward_norm", spec.feedForwardNorm);
  maybe("feed_forward_norm_bias", spec.feedForwardNormBias);
  maybe("gate", spec.gate);
  maybe("gate_bias", spec.gateBias);
  visit("up", spec.up);
  maybe("up_bias", spec.upBias);
  visit("down", spec.down);
  maybe("down_bias", spec.downBias);
  visit("final_norm", spec.finalNorm);
  maybe("final_norm_bias", spec.finalNormBias);
  maybe("head", spec.head);
  maybe("head_bias", spec.headBias);
}

void forEachWeight(const ModelSpec &spec,
                   function_ref<void(StringRef, const WeightSpec &)> visit) {
  visitWeights(spec, visit);
}

std::string tensorName(const WeightSpec &weight, int64_t layer) {
  if (!weight.perLayer)
    return weight.source;
  auto [before, after] = StringRef(weight.source).split("{}");
  return (before + Twine(layer) + after).str();
}

Error findWeights(ModelSpec &spec, const WeightFile &file) {
  StringMap<int64_t> rows; // of the file's tensor: its slices together
  forEachWeight(spec, [&](StringRef, const WeightSpec &weight) {
    rows[weight.source] += weight.shape[0];
  });
  Error result = Error::success();
  visitWeights(spec, [&](StringRef, WeightSpec &weight) {
    std::vector<int64_t> shape = weight.shape;
    shape[0] = rows[weight.source];
    if (weight.transposed)
      std::swap(shape[0], shape[1]);
    int64_t layers = weight.perLayer ? spec.layers : 1;
    weight.storages.clear();
    for (int64_t layer = 0; layer < layers && !result; ++layer) {
      std::string name = tensorName(weight, layer);
      result = file.check(name, shape);
      weight.storages.push_back(file.storage(name));
    }
  });
  return result;
}

Error checkNothingElse(const ModelSpec &spec, const TensorFile &file,
                       function_ref<bool(StringRef)> harmless) {
  StringSet<> used;
  forEachWeight(spec, [&](StringRef, const WeightSpec &weight) {
    for (int64_t i = 0, e = weight.perLayer ? spec.layers : 1; i < e; ++i)
      used.insert(tensorName(weight, i));
  });
  for (StringRef name : file.names())
    if (!used.contains(name) && !harmless(name))
      return invalid(file.path(), name + ": is not understood: no weight of "
                                         "the model is read from it");
  return Error::success();
}

std::string identifier(StringRef text) {
  // Nothing would be left of a name in another alphabet.
  if (none_of(text, [](char c) { return isAlnum(c); }))
    return "model";
  std::string result;
  for (char c : text)
    result += isAlnum(c) ? c : '_';
  if (isDigit(result[0]))
    result = "model_" + result;
  return result;
}

} // namespace kvc
