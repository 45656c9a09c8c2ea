//===- HuggingFace.cpp - tokenizer.json and what lies beside it -----------===//

#include "Error.h"
#include "HuggingFacePipeline.h"
#include "Json.h"
#include "MappedFile.h"
#include "Tokenizer.h"
#include "Vocabulary.h"

using namespace kvc::tokenizer;

// The token that a field names by its spelling; absent: unchanged.
static kvc_status readToken(const JsonField &field,
                            const Vocabulary &vocabulary, int32_t &id) {
  std::string spelling;
  KVC_TRY(field.readOptional(spelling));
  if (field.isNull())
    return KVC_OK;
  id = vocabulary.find(spelling);
  return id < 0 ? field.expected("a token of the vocabulary") : KVC_OK;
}

// Settings of a model that must have the value which changes nothing.
static kvc_status checkUnused(const JsonField &model) {
  for (const char *name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    std::string affix;
    KVC_TRY(model[name].readOptional(affix));
    if (!affix.empty())
      return model[name].expected("nothing", KVC_INCOMPATIBLE);
  }
  const JsonValue &dropout = model["dropout"].get();
  if (dropout.kind != JsonValue::Null && (dropout.number || dropout.real))
    return model["dropout"].expected("nothing", KVC_INCOMPATIBLE);
  return KVC_OK;
}

static kvc_status readVocabulary(const JsonField &field, bool byteFallback,
                                 Vocabulary &vocabulary) {
  KVC_TRY(field.isA(JsonValue::Object));
  const JsonValue &object = field.get();
  std::string where = field.where();
  for (size_t i = 0; i < object.items.size(); ++i) {
    const std::string &spelling = object.keys[i];
    if (object.items[i].kind != JsonValue::Integer)
      return field[spelling.c_str()].isA(JsonValue::Integer);
    bool byte = byteFallback && spelledByte(spelling) >= 0;
    KVC_TRY(vocabulary.add(where, spelling, object.items[i].number,
                           byte ? TokenKind::Byte : TokenKind::Normal));
  }
  return KVC_OK;
}

// A merge is "left right" or ["left", "right"].
static kvc_status readMerges(const JsonField &field,
                             const Vocabulary &vocabulary, MergeTable &merges) {
  KVC_TRY(field.isA(JsonValue::Array));
  std::string where = field.where();
  for (size_t i = 0; i < field.size(); ++i) {
    const JsonValue &merge = field.get().items[i];
    std::string_view left, right;
    size_t space = merge.string.find(' ');
    if (merge.kind == JsonValue::String && space != std::string::npos &&
        merge.string.find(' ', space + 1) == std::string::npos) {
      left = std::string_view(merge.string).substr(0, space);
      right = std::string_view(merge.string).substr(space + 1);
    } else if (merge.kind == JsonValue::Array && merge.items.size() == 2) {
      for (size_t side : {0, 1})
        KVC_TRY(field[i][side].isA(JsonValue::String));
      left = merge.items[0].string;
      right = merge.items[1].string;
    } else {
      return field[i].expected("two tokens");
    }
    KVC_TRY(vocabulary.addMerge(where, left, right, i, merges));
  }
  return KVC_OK;
}

static kvc_status readAddedToken(const JsonField &field, bool normalises,
                                 Vocabulary &vocabulary) {
  int64_t id;
  bool special = false, normalized = false;
  KVC_TRY(field.isA(JsonValue::Object));
  KVC_TRY(field["id"].read(id));
  JsonField content = field["content"];
  KVC_TRY(content.isA(JsonValue::String));
  KVC_TRY(field["special"].readOptional(special));
  KVC_TRY(field["normalized"].readOptional(normalized));
  // Its spelling would be sought in normalised text.
  if (normalized && normalises)
    return field["normalized"].expected("false", KVC_INCOMPATIBLE);
  for (const char *name : {"lstrip", "rstrip", "single_word"}) {
    bool set = false;
    KVC_TRY(field[name].readOptional(set));
    if (set)
      return field[name].expected("false", KVC_INCOMPATIBLE);
  }
  TokenKind kind = special ? TokenKind::Special : TokenKind::Added;
  const std::string &spelling = content.get().string;
  if (int32_t known = vocabulary.find(spelling); known >= 0 && known == id)
    vocabulary.setKind(known, kind);
  else
    KVC_TRY(vocabulary.add(field.where(), spelling, id, kind));
  return KVC_OK;
}

static kvc_status readModel(const JsonField &root, Tokenizer &tokenizer,
                            Vocabulary &vocabulary) {
  JsonField model = root["model"];
  KVC_TRY(model.isA(JsonValue::Object));
  // Older files don't name it, GPT-2's own among them.
  std::string type =
      model["vocab"].isNull() || model["merges"].isNull() ? "" : "BPE";
  KVC_TRY(model["type"].readOptional(type));
  if (type != "BPE")
    return model["type"].expected("BPE", KVC_INCOMPATIBLE);
  KVC_TRY(checkUnused(model));
  bool ignoreMerges = false;
  KVC_TRY(model["byte_fallback"].readOptional(tokenizer.byteFallback));
  KVC_TRY(model["fuse_unk"].readOptional(tokenizer.fuseUnknown));
  KVC_TRY(model["ignore_merges"].readOptional(ignoreMerges));
  KVC_TRY(readNormalizer(root["normalizer"], tokenizer));
  bool normalises = !tokenizer.normaliser.empty();
  KVC_TRY(readPreTokenizer(root["pre_tokenizer"], tokenizer));
  if (tokenizer.byteFallback && tokenizer.byteLevel)
    return model["byte_fallback"].expected("false beside ByteLevel",
                                           KVC_INCOMPATIBLE);
  std::vector<NormaliserStep> decoded;
  KVC_TRY(readDecoder(root["decoder"], tokenizer, decoded));

  KVC_TRY(readVocabulary(model["vocab"], tokenizer.byteFallback, vocabulary));
  KVC_TRY(readMerges(model["merges"], vocabulary, tokenizer.merges));
  JsonField added = root["added_tokens"];
  if (!added.isNull())
    KVC_TRY(added.isA(JsonValue::Array));
  for (size_t i = 0; i < added.size(); ++i)
    KVC_TRY(readAddedToken(added[i], normalises, vocabulary));
  KVC_TRY(vocabulary.finish(decoded, ignoreMerges, tokenizer));
  return readToken(model["unk_token"], vocabulary, tokenizer.unknown);
}

// tokenizer_config.json names a token by its spelling or by an object.
static kvc_status readConfigToken(const JsonField &field,
                                  const Vocabulary &vocabulary, int32_t &id) {
  if (field.get().kind == JsonValue::Object)
    return readToken(field["content"], vocabulary, id);
  return readToken(field, vocabulary, id);
}

// add_bos_token and add_eos_token decide over what the post-processor says.
static kvc_status readAdd(const JsonField &field, const char *name, int32_t id,
                          std::vector<int32_t> &around) {
  if (field.isNull())
    return KVC_OK;
  bool add = false;
  KVC_TRY(field.readOptional(add));
  if (add && id < 0)
    return field.expected(std::string("false, since there is no ") + name);
  around.clear();
  if (add)
    around.push_back(id);
  return KVC_OK;
}

// A template, or a list of named ones of which "default" is taken.
static kvc_status readChatTemplate(const JsonField &field,
                                   Tokenizer &tokenizer) {
  if (field.isNull())
    return KVC_OK;
  tokenizer.chatTemplateSource = field.where();
  if (field.get().kind != JsonValue::Array)
    return field.read(tokenizer.chatTemplate);
  tokenizer.chatTemplateSource += ": default";
  for (size_t i = 0; i < field.size(); ++i) {
    std::string name;
    KVC_TRY(field[i]["name"].read(name));
    if (name == "default")
      KVC_TRY(field[i]["template"].read(tokenizer.chatTemplate));
  }
  return KVC_OK;
}

static kvc_status readConfig(const std::string &path,
                             const Vocabulary &vocabulary,
                             Tokenizer &tokenizer) {
  JsonValue value;
  KVC_TRY(readJson(path, value));
  JsonField config(path, value);
  KVC_TRY(config.isA(JsonValue::Object));
  KVC_TRY(readConfigToken(config["bos_token"], vocabulary, tokenizer.bos));
  KVC_TRY(readConfigToken(config["eos_token"], vocabulary, tokenizer.eos));
  KVC_TRY(readAdd(config["add_bos_token"], "bos_token", tokenizer.bos,
                  tokenizer.before));
  KVC_TRY(readAdd(config["add_eos_token"], "eos_token", tokenizer.eos,
                  tokenizer.after));
  return readChatTemplate(config["chat_template"], tokenizer);
}

kvc_status kvc::tokenizer::readEnds(const std::string &path,
                                    std::vector<int32_t> &ends) {
  JsonValue value;
  KVC_TRY(readJson(path, value));
  JsonField root(path, value);
  KVC_TRY(root.isA(JsonValue::Object));
  JsonField eos = root["eos_token_id"];
  if (eos.isNull())
    return KVC_OK;
  bool several = eos.get().kind == JsonValue::Array;
  std::vector<int32_t> found;
  for (size_t i = 0; i < (several ? eos.size() : 1); ++i) {
    JsonField field = several ? eos[i] : eos;
    int64_t id;
    KVC_TRY(field.read(id));
    if (id < 0 || id > INT32_MAX)
      return field.expected("a token of 0 or more");
    found.push_back(static_cast<int32_t>(id));
  }
  ends.insert(ends.end(), found.begin(), found.end());
  return KVC_OK;
}

kvc_status kvc::tokenizer::loadHuggingFace(const std::string &path,
                                           Tokenizer &tokenizer) {
  JsonValue value;
  KVC_TRY(readJson(path, value));
  JsonField root(path, value);
  KVC_TRY(root.isA(JsonValue::Object));
  // How texts are made equally long for training; an encoded one stays whole.
  for (const char *name : {"truncation", "padding"})
    if (!root[name].isNull())
      tokenizer.warnings += root[name].where() +
                            ": set aside; a text is encoded whole and alone\n";

  Vocabulary vocabulary(path + ": model.vocab");
  KVC_TRY(readModel(root, tokenizer, vocabulary));
  KVC_TRY(readPostProcessor(root["post_processor"], tokenizer));
  if (!tokenizer.before.empty())
    tokenizer.bos = tokenizer.before.front();
  if (!tokenizer.after.empty())
    tokenizer.eos = tokenizer.after.back();

  size_t slash = path.rfind('/');
  std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
  tokenizer.chatTemplateSource =
      folder + "tokenizer_config.json and chat_template.jinja";
  if (std::string config = folder + "tokenizer_config.json"; fileExists(config))
    KVC_TRY(readConfig(config, vocabulary, tokenizer));
  std::string chatFile = folder + "chat_template.jinja";
  if (fileExists(chatFile)) {
    MappedFile file;
    KVC_TRY(file.open(chatFile));
    tokenizer.chatTemplate = file.bytes();
    tokenizer.chatTemplateSource = chatFile;
  }
  addEnds(tokenizer);
  if (std::string model = folder + "config.json"; fileExists(model))
    KVC_TRY(readEnds(model, tokenizer.ends));
  // Some are no JSON, and were never read by a strict reader: the rest of the
  // model doesn't depend on this file.
  std::string generation = folder + "generation_config.json";
  if (fileExists(generation) && readEnds(generation, tokenizer.ends) != KVC_OK)
    tokenizer.warnings +=
        std::string(lastError()) + "; its eos_token_id ends no answer\n";
  return KVC_OK;
}
