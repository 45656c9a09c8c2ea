// A Hugging Face directory: config.json, and model.safetensors or several
// files with model.safetensors.index.json.
#include "compiler/frontend/Files.h"
#include "compiler/frontend/FrontEnds.h"
#include "compiler/frontend/Weights.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>

using namespace llvm;

namespace kvc {

// Fields that transformers writes and that can't change the logits of one
// forward pass: training, generation, tokens' numbers, labels, bookkeeping.
static const StringLiteral harmlessFields[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash",
    "_name_or_path", "_num_labels", "architectures", "attention_dropout",
    "attn_implementation", "bad_words_ids", "begin_suppress_tokens",
    "bos_token_id", "chunk_size_feed_forward", "cls_token_id",
    "cross_attention_hidden_size", "decoder_start_token_id",
    "diversity_penalty", "do_sample", "dtype", "early_stopping",
    "encoder_no_repeat_ngram_size", "eos_token_id",
    "exponential_decay_length_penalty", "finetuning_task",
    "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing",
    "hidden_dropout", "id2label", "initializer_range", "is_decoder",
    "is_llama_config", "label2id", "length_penalty", "max_length",
    "min_length", "name_or_path", "no_repeat_ngram_size", "num_beam_groups",
    "num_beams", "num_labels", "num_return_sequences", "output_attentions",
    "output_hidden_states", "output_past", "output_scores", "pad_token_id",
    "prefix", "pretraining_tp", "problem_type", "remove_invalid_values",
    "repetition_penalty", "return_dict", "return_dict_in_generate",
    "sep_token_id", "suppress_tokens", "task_specific_params", "temperature",
    "tf_legacy_loss", "tie_encoder_decoder", "tokenizer_class", "top_k",
    "top_p", "torch_dtype", "torchscript", "transformers.js_config",
    "transformers_version", "typical_p", "unk_token_id", "unsloth_fixed",
    "unsloth_version", "use_bfloat16", "use_cache"};

ActivationKind readHuggingFaceActivation(Fields &config, StringRef key) {
  std::string name = config.text(key);
  auto kind = StringSwitch<std::optional<ActivationKind>>(name)
                  .Case("gelu", ActivationKind::GELU)
                  .Cases({"gelu_new", "gelu_pytorch_tanh", "gelu_fast"},
                         ActivationKind::GELUTanh)
                  .Cases({"silu", "swish"}, ActivationKind::SiLU)
                  .Case("relu", ActivationKind::ReLU)
                  .Default(std::nullopt);
  if (!kind)
    config.expected(key, "silu, gelu, gelu_new, gelu_pytorch_tanh or relu");
  return kind.value_or(ActivationKind::SiLU);
}

static std::string inside(StringRef directory, StringRef name) {
  SmallString<128> path = directory;
  sys::path::append(path, name);
  return path.str().str();
}

static Expected<std::unique_ptr<TensorFile>> openFiles(StringRef directory) {
  std::string single = inside(directory, "model.safetensors");
  std::string index = inside(directory, "model.safetensors.index.json");
  if (!sys::fs::exists(single) && sys::fs::exists(index))
    return openSafetensorsIndex(index);
  return openSafetensors(single);
}

static void readConfig(Fields &config, const TensorFile &file,
                       ModelSpec &spec) {
  std::string modelType = config.text("model_type");
  if (modelType == "llama" || modelType == "mistral" || modelType == "qwen2")
    readLlamaConfig(config, modelType, spec);
  else if (modelType == "gpt2")
    readGPT2Config(config, file, spec);
  else
    config.expected("model_type", "llama, mistral, qwen2 or gpt2");
  config.require("is_encoder_decoder", false);
  config.require("pruned_heads", json::Object());
  config.ignore(harmlessFields);
  config.finish();
}

// A file with a head of its own, though the config ties it: some versions of
// transformers use the one, some the other, so they must be the same.
static Error checkTiedHead(const ModelSpec &spec, const TensorFile &file) {
  const Tensor *head = file.find("lm_head.weight");
  if (spec.head || !head)
    return Error::success();
  const Tensor *embedding = file.find(spec.tokenEmbedding.source);
  if (head->typeName == embedding->typeName &&
      head->shape == embedding->shape &&
      std::memcmp(head->data, embedding->data, head->bytes) == 0)
    return Error::success();
  return invalid(file.path(), "lm_head.weight: expected the values of " +
                                  spec.tokenEmbedding.source +
                                  ", since tie_word_embeddings is true");
}

// Buffers that a model's class makes again by itself.
static bool isHarmless(StringRef tensor) {
  return tensor == "lm_head.weight" || // checked to be the tied one
         tensor.ends_with(".rotary_emb.inv_freq") ||
         tensor.ends_with(".attn.bias") ||
         tensor.ends_with(".attn.masked_bias");
}

// "." is named as the directory that it is, and what a hub's cache keeps in
// models--<org>--<name>/snapshots/<revision> as its model.
static std::string modelName(StringRef directory) {
  SmallString<128> path;
  if (sys::fs::real_path(directory, path))
    path = directory;
  StringRef snapshots = sys::path::parent_path(path);
  StringRef model = sys::path::filename(sys::path::parent_path(snapshots));
  if (sys::path::filename(snapshots) == "snapshots" &&
      model.starts_with("models--"))
    return identifier(model.rsplit("--").second);
  return identifier(sys::path::filename(path));
}

Expected<ModelSpec> readHuggingFace(StringRef directory) {
  std::string path = inside(directory, "config.json");
  Expected<json::Object> object = readJSON(path);
  if (!object)
    return object.takeError();
  auto file = openFiles(directory);
  if (!file)
    return file.takeError();

  ModelSpec spec;
  Fields config(path, *object);
  readConfig(config, **file, spec);
  if (Error error = config.takeError())
    return std::move(error);
  spec.name = modelName(directory);
  spec.weights = (*file)->path().str();

  if (Error error = findWeights(spec, **file))
    return std::move(error);
  if (Error error = checkTiedHead(spec, **file))
    return std::move(error);
  if (Error error = checkNothingElse(spec, **file, isHarmless))
    return std::move(error);
  return spec;
}

} // namespace kvc
