#include "HuggingFacePipeline.h"

#include "Error.h"
#include "PreTokenizers.h"

using namespace kvc::tokenizer;

static kvc_status unsupported(const JsonField &field,
                              const std::string &expected) {
  return field.expected(expected, KVC_INCOMPATIBLE);
}

// Every step is an object with a type.
static kvc_status readType(const JsonField &step, std::string &type) {
  KVC_TRY(step.isA(JsonValue::Object));
  return step["type"].read(type);
}

// A pattern is {"String": ...} or {"Regex": ...}.
static kvc_status readString(const JsonField &pattern, std::string &text) {
  KVC_TRY(pattern["String"].read(text));
  return text.empty() ? pattern["String"].expected("a text") : KVC_OK;
}

static std::string escaped(std::string_view text) {
  std::string expression;
  for (char c : text) {
    if (std::string_view("\\^$.[]|()?*+{}#-").find(c) != std::string_view::npos)
      expression += '\\';
    expression += c;
  }
  return expression;
}

//===----------------------------------------------------------------------===//
// Normalizers
//===----------------------------------------------------------------------===//

kvc_status kvc::tokenizer::readNormalizer(const JsonField &field,
                                          Tokenizer &tokenizer) {
  if (field.isNull())
    return KVC_OK;
  std::string type;
  KVC_TRY(readType(field, type));
  if (type == "Sequence") {
    JsonField steps = field["normalizers"];
    KVC_TRY(steps.isA(JsonValue::Array));
    for (size_t i = 0; i < steps.size(); ++i)
      KVC_TRY(readNormalizer(steps[i], tokenizer));
    return KVC_OK;
  }
  NormaliserStep step;
  if (type == "Prepend") {
    step.kind = NormaliserStep::Prepend;
    KVC_TRY(field["prepend"].read(step.text));
  } else if (type == "Replace") {
    step.kind = NormaliserStep::Replace;
    KVC_TRY(readString(field["pattern"], step.text));
    KVC_TRY(field["content"].read(step.by));
  } else if (type == "NFC") {
    step.kind = NormaliserStep::Nfc;
  } else {
    return unsupported(field["type"], "Sequence, Prepend, Replace or NFC");
  }
  tokenizer.normaliser.push_back(std::move(step));
  return KVC_OK;
}

//===----------------------------------------------------------------------===//
// Pre-tokenizers
//===----------------------------------------------------------------------===//

static kvc_status addSplitter(const JsonField &field,
                              std::string_view expression, Splitter::Keep keep,
                              Tokenizer &tokenizer) {
  Splitter splitter;
  KVC_TRY(splitter.compile(field.where().c_str(), expression, keep));
  tokenizer.splitters.push_back(std::move(splitter));
  return KVC_OK;
}

static kvc_status readSplit(const JsonField &field, Tokenizer &tokenizer) {
  JsonField pattern = field["pattern"];
  std::string expression;
  if (pattern["Regex"].isNull()) {
    KVC_TRY(readString(pattern, expression));
    expression = escaped(expression);
  } else {
    KVC_TRY(pattern["Regex"].read(expression));
  }
  std::string behavior;
  bool invert = false;
  KVC_TRY(field["behavior"].read(behavior));
  KVC_TRY(field["invert"].readOptional(invert));
  Splitter::Keep keep = Splitter::Both;
  if (behavior == "Removed")
    keep = invert ? Splitter::Matches : Splitter::Gaps;
  else if (behavior != "Isolated")
    return unsupported(field["behavior"], "Isolated or Removed");
  return addSplitter(pattern, expression, keep, tokenizer);
}

// Text is spelled as in SentencePiece: a mark for each space, and one in front.
static kvc_status readMetaspace(const JsonField &field, Tokenizer &tokenizer) {
  bool split = true;
  std::string mark, scheme = "always";
  KVC_TRY(field["replacement"].read(mark));
  KVC_TRY(field["prepend_scheme"].readOptional(scheme));
  KVC_TRY(field["split"].readOptional(split));
  if (split)
    return unsupported(field["split"], "false");
  tokenizer.normaliser.push_back(
      {NormaliserStep::Replace, " ", mark, /*atStartOnly=*/false});
  if (scheme != "always" && scheme != "first")
    return scheme == "never"
               ? KVC_OK
               : unsupported(field["prepend_scheme"], "always, first or never");
  tokenizer.normaliser.push_back(
      {NormaliserStep::PrependOnce, mark, "", scheme == "first"});
  return KVC_OK;
}

static kvc_status readByteLevel(const JsonField &field, Tokenizer &tokenizer) {
  bool addPrefixSpace = true, useRegex = true;
  KVC_TRY(field["add_prefix_space"].readOptional(addPrefixSpace));
  KVC_TRY(field["use_regex"].readOptional(useRegex));
  // A space would come before each piece of the steps before.
  if (addPrefixSpace && !tokenizer.splitters.empty())
    return unsupported(field["add_prefix_space"],
                       "false after another pre-tokenizer");
  if (addPrefixSpace)
    tokenizer.normaliser.push_back(
        {NormaliserStep::PrependOnce, " ", "", /*atStartOnly=*/false});
  tokenizer.byteLevel = true;
  if (!useRegex)
    return KVC_OK;
  return addSplitter(field["use_regex"], gpt2Words, Splitter::Both, tokenizer);
}

kvc_status kvc::tokenizer::readPreTokenizer(const JsonField &field,
                                            Tokenizer &tokenizer) {
  if (field.isNull())
    return KVC_OK;
  std::string type;
  KVC_TRY(readType(field, type));
  // ByteLevel changes the text into its alphabet, which later steps would see.
  if (tokenizer.byteLevel)
    return unsupported(field["type"], "nothing after ByteLevel");
  if (type == "Sequence") {
    JsonField steps = field["pretokenizers"];
    KVC_TRY(steps.isA(JsonValue::Array));
    for (size_t i = 0; i < steps.size(); ++i)
      KVC_TRY(readPreTokenizer(steps[i], tokenizer));
    return KVC_OK;
  }
  if (type == "Split")
    return readSplit(field, tokenizer);
  if (type == "Digits") {
    bool individual = false;
    KVC_TRY(field["individual_digits"].readOptional(individual));
    return addSplitter(field, individual ? oneDigit : R"(\p{N}+)",
                       Splitter::Both, tokenizer);
  }
  if (type == "ByteLevel")
    return readByteLevel(field, tokenizer);
  if (type != "Metaspace")
    return unsupported(field["type"],
                       "Sequence, Split, Digits, ByteLevel or Metaspace");
  if (!tokenizer.splitters.empty())
    return unsupported(field["type"], "nothing before Metaspace");
  return readMetaspace(field, tokenizer);
}

//===----------------------------------------------------------------------===//
// Decoders
//===----------------------------------------------------------------------===//

namespace {
struct DecoderSteps {
  bool byteLevel = false, byteFallback = false, fused = false;
};
} // namespace

static kvc_status readDecoderStep(const JsonField &field, Tokenizer &tokenizer,
                                  std::vector<NormaliserStep> &decoded,
                                  DecoderSteps &steps) {
  std::string type;
  KVC_TRY(readType(field, type));
  if (type == "Sequence") {
    JsonField inner = field["decoders"];
    KVC_TRY(inner.isA(JsonValue::Array));
    for (size_t i = 0; i < inner.size(); ++i)
      KVC_TRY(readDecoderStep(inner[i], tokenizer, decoded, steps));
  } else if (type == "ByteLevel") {
    steps.byteLevel = true;
  } else if (type == "ByteFallback") {
    steps.byteFallback = true;
  } else if (type == "Fuse") {
    steps.fused = true;
  } else if (type == "Replace" && !steps.fused) {
    NormaliserStep step{NormaliserStep::Replace, "", "", false};
    KVC_TRY(readString(field["pattern"], step.text));
    KVC_TRY(field["content"].read(step.by));
    decoded.push_back(std::move(step));
  } else if (type == "Strip" && steps.fused) {
    // Before Fuse it would strip each token.
    std::string content;
    int64_t stop;
    KVC_TRY(field["content"].read(content));
    KVC_TRY(field["start"].read(tokenizer.stripSpaces));
    KVC_TRY(field["stop"].read(stop));
    if (content != " ")
      return unsupported(field["content"], "a space");
    if (stop != 0)
      return unsupported(field["stop"], "0");
  } else {
    return unsupported(field["type"],
                       "ByteLevel, or Replace, ByteFallback, Fuse and Strip in "
                       "this order");
  }
  return KVC_OK;
}

kvc_status kvc::tokenizer::readDecoder(const JsonField &field,
                                       Tokenizer &tokenizer,
                                       std::vector<NormaliserStep> &decoded) {
  DecoderSteps steps;
  if (!field.isNull())
    KVC_TRY(readDecoderStep(field, tokenizer, decoded, steps));
  if (steps.byteLevel != tokenizer.byteLevel)
    return unsupported(field,
                       tokenizer.byteLevel
                           ? "ByteLevel, as the pre-tokenizer is"
                           : "no ByteLevel, as the pre-tokenizer is not");
  if (steps.byteFallback != tokenizer.byteFallback)
    return unsupported(field, tokenizer.byteFallback
                                  ? "a step ByteFallback, as the model has it"
                                  : "no ByteFallback, as the model has none");
  return KVC_OK;
}

//===----------------------------------------------------------------------===//
// Post-processors
//===----------------------------------------------------------------------===//

static kvc_status readTemplate(const JsonField &field, Tokenizer &tokenizer) {
  JsonField single = field["single"];
  KVC_TRY(single.isA(JsonValue::Array));
  bool afterText = false;
  for (size_t i = 0; i < single.size(); ++i) {
    JsonField special = single[i]["SpecialToken"];
    if (special.isNull()) {
      KVC_TRY(single[i]["Sequence"].isA(JsonValue::Object));
      if (afterText)
        return unsupported(single[i], "one Sequence");
      afterText = true;
      continue;
    }
    std::string name;
    KVC_TRY(special["id"].read(name));
    JsonField ids = field["special_tokens"][name.c_str()]["ids"];
    KVC_TRY(ids.isA(JsonValue::Array));
    for (size_t k = 0; k < ids.size(); ++k) {
      int64_t id;
      KVC_TRY(ids[k].read(id));
      if (id > INT32_MAX || !tokenizer.isToken(static_cast<int32_t>(id)))
        return ids[k].expected("a token of the vocabulary");
      (afterText ? tokenizer.after : tokenizer.before)
          .push_back(static_cast<int32_t>(id));
    }
  }
  return afterText ? KVC_OK : single.expected("a Sequence");
}

kvc_status kvc::tokenizer::readPostProcessor(const JsonField &field,
                                             Tokenizer &tokenizer) {
  if (field.isNull())
    return KVC_OK;
  std::string type;
  KVC_TRY(readType(field, type));
  if (type == "TemplateProcessing")
    return readTemplate(field, tokenizer);
  if (type == "ByteLevel") // trims offsets, which this library does not give
    return KVC_OK;
  if (type != "Sequence")
    return unsupported(field["type"],
                       "Sequence, TemplateProcessing or ByteLevel");
  JsonField steps = field["processors"];
  KVC_TRY(steps.isA(JsonValue::Array));
  for (size_t i = 0; i < steps.size(); ++i)
    KVC_TRY(readPostProcessor(steps[i], tokenizer));
  return KVC_OK;
}
