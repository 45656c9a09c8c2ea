//===- Gguf.cpp - a tokenizer from the metadata of a GGUF file ------------===//
//
// The keys are those of the format's description (ggml's docs/gguf.md); what
// absent ones mean is how llama.cpp reads the same files.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "GgufMetadata.h"
#include "PreTokenizers.h"
#include "Tokenizer.h"
#include "Utf8.h"
#include "Vocabulary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

using namespace kvc::tokenizer;

static constexpr char tokensKey[] = "tokenizer.ggml.tokens";
static constexpr char mergesKey[] = "tokenizer.ggml.merges";

// How SentencePiece writes a space, U+2581.
static constexpr char spaceMark[] = "\xE2\x96\x81";

// tokenizer.ggml.token_type: 1 normal, 2 unknown, 3 control, 4 user-defined,
// 5 unused, 6 byte.
static std::string indexed(const std::string &where, size_t index) {
  return where + '[' + std::to_string(index) + ']';
}

static kvc_status readKind(const std::string &where, size_t index,
                           int32_t type, std::string_view spelling,
                           TokenKind &kind) {
  static constexpr TokenKind kinds[] = {TokenKind::Normal,  TokenKind::Special,
                                        TokenKind::Special, TokenKind::Added,
                                        TokenKind::Unused,  TokenKind::Byte};
  constexpr int32_t most = std::size(kinds);
  if (type < 1 || type > most)
    return fail(KVC_IO, "%s: expected a type from 1 to %d, but got %d",
                indexed(where, index).c_str(), most, type);
  kind = kinds[type - 1];
  if (kind == TokenKind::Byte && spelledByte(spelling) < 0)
    return fail(KVC_IO,
                "%s: expected a byte's token to be spelled like <0x0A>, but "
                "got %s",
                indexed(where, index).c_str(), quotedText(spelling).c_str());
  return KVC_OK;
}

static kvc_status readVocabulary(const GgufMetadata &metadata,
                                 Vocabulary &vocabulary) {
  std::vector<std::string_view> spellings;
  std::vector<int32_t> types;
  std::string where = metadata.where(tokensKey);
  KVC_TRY(metadata.read(tokensKey, spellings));
  if (spellings.empty())
    return fail(KVC_IO, "%s: expected tokens, but there are none",
                where.c_str());
  constexpr char typesKey[] = "tokenizer.ggml.token_type";
  std::string typesAt = metadata.where(typesKey);
  KVC_TRY(metadata.read(typesKey, types));
  if (metadata.has(typesKey) && types.size() != spellings.size())
    return fail(KVC_IO,
                "%s: expected one type for each of %zu tokens, but got "
                "%zu",
                typesAt.c_str(), spellings.size(), types.size());
  for (size_t i = 0; i < spellings.size(); ++i) {
    TokenKind kind = TokenKind::Normal;
    if (!types.empty())
      KVC_TRY(readKind(typesAt, i, types[i], spellings[i], kind));
    KVC_TRY(vocabulary.add(where, spellings[i], static_cast<int64_t>(i), kind,
                           /*mayRepeat=*/true));
  }
  return KVC_OK;
}

static kvc_status readId(const GgufMetadata &metadata, std::string_view key,
                         const Tokenizer &tokenizer, int32_t &id) {
  int64_t value = id;
  KVC_TRY(metadata.read(key, value));
  // Some converters write that there is none as -1, in 32 bits without a sign.
  if (value == -1 || value == UINT32_MAX) {
    id = -1;
    return KVC_OK;
  }
  int64_t count = static_cast<int64_t>(tokenizer.tokens.size());
  if (value < 0 || value >= count)
    return fail(KVC_IO, "%s: expected a token from 0 to %lld, but got %lld",
                metadata.where(key).c_str(), static_cast<long long>(count - 1),
                static_cast<long long>(value));
  id = static_cast<int32_t>(value);
  return KVC_OK;
}

// `id` is what the model adds in front or behind, if it does.
static kvc_status readAdd(const GgufMetadata &metadata, std::string_view key,
                          bool adds, int32_t id, const char *idKey,
                          std::vector<int32_t> &around) {
  KVC_TRY(metadata.read(key, adds));
  if (!adds)
    return KVC_OK;
  if (id < 0)
    return fail(KVC_IO,
                "%s: expected a token, since the model adds it to each "
                "text, but there is none",
                metadata.where(idKey).c_str());
  around.push_back(id);
  return KVC_OK;
}

// Merges in the order of the file; absent ones are none.
static kvc_status readMerges(const GgufMetadata &metadata,
                             const Vocabulary &vocabulary, MergeTable &merges) {
  std::string where = metadata.where(mergesKey);
  std::vector<std::string_view> pairs;
  KVC_TRY(metadata.read(mergesKey, pairs));
  for (size_t i = 0; i < pairs.size(); ++i) {
    size_t space = pairs[i].find(' ');
    if (space == std::string_view::npos)
      return fail(KVC_IO, "%s: expected two tokens, but got %s",
                  indexed(where, i).c_str(), quotedText(pairs[i]).c_str());
    KVC_TRY(vocabulary.addMerge(where, pairs[i].substr(0, space),
                                pairs[i].substr(space + 1), i, merges));
  }
  return KVC_OK;
}

//===----------------------------------------------------------------------===//
// Byte-level BPE: merges as the file lists them
//===----------------------------------------------------------------------===//

static kvc_status readByteLevel(const GgufMetadata &metadata,
                                const Vocabulary &vocabulary,
                                Tokenizer &tokenizer, bool &addsBos) {
  constexpr char preKey[] = "tokenizer.ggml.pre";
  std::string_view pre = "default"; // as llama.cpp does
  KVC_TRY(metadata.read(preKey, pre));
  if (!metadata.has(preKey))
    tokenizer.warnings += metadata.where(preKey) +
                          ": missing; text is cut into words by \"default\"\n";
  const PreTokenizer *preTokenizer = findPreTokenizer(pre);
  if (!preTokenizer)
    return fail(KVC_INCOMPATIBLE,
                "%s: expected a known pre-tokenizer (gpt-2, smollm, llama-bpe, "
                "qwen2, ...), but got %s",
                metadata.where(preKey).c_str(), quotedText(pre).c_str());
  for (std::string_view expression : preTokenizer->expressions) {
    if (expression.empty())
      break;
    Splitter splitter;
    KVC_TRY(splitter.compile(preKey, expression, Splitter::Both));
    tokenizer.splitters.push_back(std::move(splitter));
  }
  if (preTokenizer->nfc)
    tokenizer.normaliser.push_back({NormaliserStep::Nfc, "", "", false});
  addsBos = preTokenizer->addsBos;

  if (!metadata.has(mergesKey))
    return fail(KVC_IO, "%s: expected an array of strings, but got nothing",
                metadata.where(mergesKey).c_str());
  KVC_TRY(readMerges(metadata, vocabulary, tokenizer.merges));
  tokenizer.byteLevel = true;
  return vocabulary.finish({}, preTokenizer->ignoreMerges, tokenizer);
}

//===----------------------------------------------------------------------===//
// SentencePiece: any two symbols whose whole is a token merge, the highest
// score first and equal ones from left to right. Some converters wrote scores
// that are all equal, and the order as merges: where there are any, they count.
//===----------------------------------------------------------------------===//

namespace {

/// Finds the pairs of symbols that make each token.
class ScoredMerges {
public:
  ScoredMerges(const Vocabulary &vocabulary, Tokenizer &tokenizer)
      : vocabulary(vocabulary), tokenizer(tokenizer) {}

  /// Adds every pair that makes token `id`; whether there is one.
  bool add(int32_t id, uint32_t rank) {
    std::string_view whole =
        vocabulary.entries()[static_cast<size_t>(id)].spelling;
    size_t before = tokenizer.merges.size();
    for (size_t cut = utf8Step(whole).length; cut < whole.size();
         cut += utf8Step(whole.substr(cut)).length) {
      int32_t left = symbol(whole.substr(0, cut));
      int32_t right = left < 0 ? -1 : symbol(whole.substr(cut));
      if (right >= 0)
        tokenizer.merges.insert(left, right, {rank, id});
    }
    return tokenizer.merges.size() != before;
  }

private:
  // A normal token or a character; -1: neither, so no merge can make it.
  int32_t symbol(std::string_view spelling) {
    int32_t id = vocabulary.find(spelling);
    if (id >= 0 &&
        vocabulary.entries()[static_cast<size_t>(id)].kind == TokenKind::Normal)
      return id;
    Utf8Step step = utf8Step(spelling);
    if (step.length != spelling.size())
      return -1;
    int32_t next = static_cast<int32_t>(tokenizer.tokens.size() +
                                        tokenizer.extraSymbols.size());
    if (const int32_t *known = tokenizer.characterSymbols.find(step.character))
      return *known;
    tokenizer.characterSymbols.insert(step.character, next);
    tokenizer.extraSymbols.emplace_back(spelling);
    return next;
  }

  const Vocabulary &vocabulary;
  Tokenizer &tokenizer;
};

} // namespace

// Each token's place among the different scores, the highest first.
static std::vector<uint32_t> ranks(const std::vector<float> &scores) {
  std::vector<float> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<uint32_t> places;
  for (float score : scores)
    places.push_back(
        static_cast<uint32_t>(std::lower_bound(sorted.begin(), sorted.end(),
                                               score, std::greater<>()) -
                              sorted.begin()));
  return places;
}

static kvc_status readScores(const GgufMetadata &metadata,
                             const Vocabulary &vocabulary,
                             Tokenizer &tokenizer) {
  constexpr char scoresKey[] = "tokenizer.ggml.scores";
  const std::vector<Vocabulary::Entry> &entries = vocabulary.entries();
  std::vector<float> scores;
  KVC_TRY(metadata.read(scoresKey, scores));
  if (scores.size() != entries.size())
    return fail(
        KVC_IO, "%s: expected one score for each of %zu tokens, but got %zu",
        metadata.where(scoresKey).c_str(), entries.size(), scores.size());

  // Longer pieces would make the search for their merges slow; trained ones
  // have some tens of bytes.
  constexpr size_t maxBytes = 4096;
  std::vector<uint32_t> rank = ranks(scores);
  ScoredMerges merges(vocabulary, tokenizer);
  std::vector<uint32_t> used; // of the tokens that merges make
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!std::isfinite(scores[i]))
      return fail(KVC_IO, "%s: expected a finite score, but got %f",
                  indexed(metadata.where(scoresKey), i).c_str(),
                  static_cast<double>(scores[i]));
    if (entries[i].kind != TokenKind::Normal || entries[i].spelling.empty())
      continue;
    if (entries[i].spelling.size() > maxBytes)
      return fail(KVC_IO, "%s: expected at most %zu bytes, but got %zu",
                  indexed(metadata.where(tokensKey), i).c_str(), maxBytes,
                  entries[i].spelling.size());
    if (merges.add(static_cast<int32_t>(i), rank[i]))
      used.push_back(rank[i]);
  }
  if (used.size() > 1 && std::equal(used.begin() + 1, used.end(), used.begin()))
    return fail(KVC_IO,
                "%s: expected scores that order the merges, or "
                "tokenizer.ggml.merges, but all are equal and there are none",
                metadata.where(scoresKey).c_str());
  return KVC_OK;
}

static kvc_status readSentencePiece(const GgufMetadata &metadata,
                                    const Vocabulary &vocabulary,
                                    Tokenizer &tokenizer) {
  tokenizer.byteFallback = true;
  NormaliserStep toSpace{NormaliserStep::Replace, spaceMark, " ", false};
  KVC_TRY(vocabulary.finish({toSpace}, /*wholeWords=*/false, tokenizer));
  KVC_TRY(readMerges(metadata, vocabulary, tokenizer.merges));
  return tokenizer.merges.size() != 0
             ? KVC_OK
             : readScores(metadata, vocabulary, tokenizer);
}

// Spaces in front of a text and inside it.
static kvc_status readSpaces(const GgufMetadata &metadata, bool sentencePiece,
                             Tokenizer &tokenizer) {
  bool prefix = sentencePiece;
  KVC_TRY(metadata.read("tokenizer.ggml.add_space_prefix", prefix));
  if (prefix)
    tokenizer.normaliser.push_back(
        {sentencePiece ? NormaliserStep::Prepend : NormaliserStep::PrependOnce,
         " ", "", /*atStartOnly=*/false});
  if (!sentencePiece)
    return KVC_OK;
  tokenizer.stripSpaces = prefix ? 1 : 0;
  tokenizer.normaliser.push_back(
      {NormaliserStep::Replace, " ", spaceMark, /*atStartOnly=*/false});
  return KVC_OK;
}

kvc_status kvc::tokenizer::loadGguf(const std::string &path,
                                    Tokenizer &tokenizer) {
  GgufMetadata metadata;
  KVC_TRY(metadata.open(path));
  constexpr char modelKey[] = "tokenizer.ggml.model";
  std::string_view model;
  KVC_TRY(metadata.read(modelKey, model));
  bool sentencePiece = model == "llama";
  if (!sentencePiece && model != "gpt2")
    return fail(KVC_INCOMPATIBLE, "%s: expected llama or gpt2, but got %s",
                metadata.where(modelKey).c_str(),
                metadata.has(modelKey) ? quotedText(model).c_str() : "nothing");

  Vocabulary vocabulary(metadata.where(tokensKey));
  KVC_TRY(readVocabulary(metadata, vocabulary));
  bool addsBos = sentencePiece;
  KVC_TRY(sentencePiece
              ? readSentencePiece(metadata, vocabulary, tokenizer)
              : readByteLevel(metadata, vocabulary, tokenizer, addsBos));
  KVC_TRY(readSpaces(metadata, sentencePiece, tokenizer));

  constexpr char bosKey[] = "tokenizer.ggml.bos_token_id";
  constexpr char eosKey[] = "tokenizer.ggml.eos_token_id";
  if (sentencePiece) { // SentencePiece's own numbers
    tokenizer.bos = 1;
    tokenizer.eos = 2;
  }
  KVC_TRY(readId(metadata, bosKey, tokenizer, tokenizer.bos));
  KVC_TRY(readId(metadata, eosKey, tokenizer, tokenizer.eos));
  KVC_TRY(readAdd(metadata, "tokenizer.ggml.add_bos_token", addsBos,
                  tokenizer.bos, bosKey, tokenizer.before));
  KVC_TRY(readAdd(metadata, "tokenizer.ggml.add_eos_token", false,
                  tokenizer.eos, eosKey, tokenizer.after));
  for (const char *key :
       {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    int32_t end = -1;
    KVC_TRY(readId(metadata, key, tokenizer, end));
    if (end >= 0)
      tokenizer.ends.push_back(end);
  }
  addEnds(tokenizer);

  std::string_view chatTemplate;
  KVC_TRY(metadata.read("tokenizer.chat_template", chatTemplate));
  tokenizer.chatTemplate = chatTemplate;
  tokenizer.chatTemplateSource = metadata.where("tokenizer.chat_template");
  return KVC_OK;
}
