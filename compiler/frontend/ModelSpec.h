// ModelSpec: the one in-memory description that every front end produces and
// from which the IR is built. It names weights; it holds none.
#ifndef KVC_COMPILER_FRONTEND_MODELSPEC_H
#define KVC_COMPILER_FRONTEND_MODELSPEC_H

#include "dialect/storage/Storage.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvc {

// Where a weight's numbers come from, as `kvc.weight` says it in the IR.
// A matrix is [rows = outputs, columns = inputs], whatever the file does.
struct WeightSpec {
  // Symbol in the IR, from the model's own name without "{}" and ".weight":
  // "blk.attn_q", "model.layers.self_attn.q_proj", "h.attn.c_attn.q".
  std::string symbol;
  // Tensor in the file; "{}" stands for the layer's number.
  std::string source;
  // Shape of one layer's weight: {rows, columns} or {rows}.
  std::vector<int64_t> shape;
  bool perLayer = false;
  // The file stores [columns, rows] (GPT-2's Conv1D).
  bool transposed = false;
  // First of our rows among the rows of the file's tensor, of which we have only
  // some (fused QKV).
  std::optional<int64_t> firstRow;
  // Non-zero where the rows of each head stand in pair order (2i, 2i+1), as in
  // GGUF's Llama: the head's width. They are read in half order (i, i+d/2).
  int64_t pairedHeadDim = 0;
  // As the file has it, layer by layer; null where the numbers stand nowhere
  // (random weights).
  std::vector<const Storage *> storages;
};

enum class NormKind { LayerNorm, RMSNorm };
enum class PositionKind { Learned, Rotary };
enum class ActivationKind { GELU /*erf*/, GELUTanh, SiLU, ReLU };

// Rotary embedding in half order: pair i is (x[i], x[i + dims/2]), its angle
// position * theta^(-2i/dims) / divisor(i).
struct RotarySpec {
  int64_t dims = 0; // even, <= headDim; the rest of the head passes unchanged
  double theta = 0;
  // Scaling of the frequencies: empty (none), one (linear), or dims/2 (llama3).
  std::vector<double> divisors;
};

struct ModelSpec {
  std::string name;         // a C identifier
  std::string architecture; // "llama", "gpt2", "spec": for people
  int64_t vocab = 0, width = 0, layers = 0, heads = 0, kvHeads = 0;
  int64_t headDim = 0, hidden = 0;
  int64_t context = 0; // positions the model was made for; learned: table rows

  NormKind norm = NormKind::RMSNorm;
  double normEpsilon = 0;
  PositionKind positions = PositionKind::Rotary;
  RotarySpec rotary;
  ActivationKind activation = ActivationKind::SiLU;
  bool gated = true;
  double attentionScale = 0; // usually 1/sqrt(headDim)
  // Keys that a query sees in each layer, its own and those before; 0: all.
  std::vector<int64_t> windows;

  std::string arithmetic = "f32"; // "f64" or "f32"

  // Weights. Optional ones are absent where the model has none.
  WeightSpec tokenEmbedding;
  std::optional<WeightSpec> positionEmbedding; // learned positions only
  WeightSpec attentionNorm;
  std::optional<WeightSpec> attentionNormBias;
  WeightSpec query, key, value, output;
  std::optional<WeightSpec> queryBias, keyBias, valueBias, outputBias;
  WeightSpec feedForwardNorm;
  std::optional<WeightSpec> feedForwardNormBias;
  std::optional<WeightSpec> gate; // gated only
  std::optional<WeightSpec> gateBias;
  WeightSpec up, down;
  std::optional<WeightSpec> upBias, downBias;
  WeightSpec finalNorm;
  std::optional<WeightSpec> finalNormBias;
  std::optional<WeightSpec> head; // absent: tied to tokenEmbedding
  std::optional<WeightSpec> headBias;

  // What `openWeights` takes: a path, or "random:<seed>".
  std::string weights;
};

// Reads the model at `path`: a directory (Hugging Face), a .gguf file or a
// .json file (our spec). Every tensor that the spec names has been checked to
// be there with the right shape. Errors name file and field:
//   model/config.json: num_key_value_heads: expected a divisor of
//   num_attention_heads (32), but got 5
llvm::Expected<ModelSpec> readModel(llvm::StringRef path);

// Prints one `field: value` a line, then one `role: @symbol = "source" [shape]`
// a weight (--emit=spec).
void print(const ModelSpec &spec, llvm::raw_ostream &os);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_MODELSPEC_H
