// The weights of a decoder: named by a front end, walked and checked here.
#ifndef KVC_COMPILER_FRONTEND_WEIGHTS_H
#define KVC_COMPILER_FRONTEND_WEIGHTS_H

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/TensorFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kvc {

// Names of a format's tensors, without ".weight" or ".bias"; "{}" stands for
// the layer's number.
struct WeightNames {
  std::string tokenEmbedding;
  std::string positionEmbedding; // learned positions only
  std::string attentionNorm;
  std::string query, key, value;
  // Where not empty: query, key and value in one tensor, in this order.
  std::string fused;
  std::string output;
  std::string feedForwardNorm;
  std::string gate; // gated only
  std::string up, down;
  std::string finalNorm;
  std::string head; // tied: of its bias only

  bool attentionBias = false; // of query, key and value
  bool outputBias = false;
  bool feedForwardBias = false;
  bool headBias = false;
  bool tiedHead = false;     // the head is the token embedding
  bool transposed = false;   // matrices of the layers are [columns, rows]
  int64_t pairedHeadDim = 0; // of query and key
};

// Sets the weights of `spec`, whose sizes, norm and positions are set. Norms
// have a bias iff they are LayerNorm.
void nameWeights(ModelSpec &spec, const WeightNames &names);

// Calls `visit` for each weight that the model has, with its role in words
// ("query_bias"), in the order of the computation.
void forEachWeight(
    const ModelSpec &spec,
    llvm::function_ref<void(llvm::StringRef role, const WeightSpec &)> visit);

// The tensor of one layer: "{}" of the source replaced.
std::string tensorName(const WeightSpec &weight, int64_t layer);

// Notes how each weight is stored. Fails unless `file` has every weight of every
// layer in the right shape.
llvm::Error findWeights(ModelSpec &spec, const WeightFile &file);

// Fails on a tensor that no weight reads, unless `harmless` says that it can't
// change the function.
llvm::Error
checkNothingElse(const ModelSpec &spec, const TensorFile &file,
                 llvm::function_ref<bool(llvm::StringRef)> harmless);

// A C identifier made of `text`: other characters become "_".
std::string identifier(llvm::StringRef text);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_WEIGHTS_H
