//===- Tokenizer.h - what an open tokenizer knows ---------------*- C++ -*-===//
//
// Text becomes ids in this order:
//   1. added tokens are found in the text and cut out (AddedTokens);
//   2. each stretch between them is normalised (Normaliser);
//   3. the stretch is cut into words (Splitter, none for SentencePiece);
//   4. a word's bytes or characters become symbols, and pairs of symbols merge
//      (Merger).
// The loaders (HuggingFace.cpp, Gguf.cpp) fill this structure; afterwards it is
// only read.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_TOKENIZER_TOKENIZER_H
#define KVC_TOKENIZER_TOKENIZER_H

#include "AddedTokens.h"
#include "FlatMap.h"
#include "Merger.h"
#include "Normaliser.h"
#include "Splitter.h"
#include "kvc/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvc::tokenizer {

enum class TokenKind : uint8_t {
  Missing, ///< an id that no token has
  Normal,
  Byte,    ///< one byte, for characters outside the vocabulary
  Unused,  ///< fills the vocabulary up; neither encoded nor expected
  Added,   ///< recognised in every text
  Special, ///< recognised where asked for; can be left out of decoded text
};

struct Token {
  TokenKind kind;
  std::string_view bytes; ///< what it decodes to
};

/// Tokens by id, their bytes one behind the other: a string each would take three
/// times as much memory.
class TokenTable {
public:
  /// Adds the next one. What tokens' bytes refer to may move.
  void add(TokenKind kind, std::string_view bytes) {
    kinds.push_back(kind);
    text += bytes;
    ends.push_back(text.size());
  }
  size_t size() const { return kinds.size(); }
  Token operator[](size_t id) const {
    size_t begin = id ? ends[id - 1] : 0;
    return {kinds[id], std::string_view(text).substr(begin, ends[id] - begin)};
  }

private:
  std::vector<TokenKind> kinds;
  std::vector<size_t> ends; // in `text`
  std::string text;
};

struct Tokenizer {
  TokenTable tokens;
  int32_t bos = -1, eos = -1;
  std::vector<int32_t> ends;

  // Encoding.
  AddedTokens added;
  std::vector<int32_t> before, after;     ///< the model's own, around a text
  std::vector<NormaliserStep> normaliser; ///< one after the other; a stretch
                                          ///< without text is left alone
  std::vector<Splitter> splitters;        ///< one inside the other
  bool byteLevel = false;   ///< symbols are bytes, otherwise characters
  int32_t byteSymbols[256]; ///< -1: none
  FlatMap<int32_t> characterSymbols;
  /// Characters that only occur inside tokens have symbols too, numbered on
  /// from the tokens; they merge, or fall back like unknown characters.
  std::vector<std::string> extraSymbols;
  bool byteFallback = false;
  int32_t unknown = -1;
  bool fuseUnknown = false;
  MergeTable merges;
  /// Words that are tokens as they stand (by their bytes); empty unless the
  /// model looks there before it merges.
  std::unordered_map<std::string_view, int32_t> wholeWords;

  // Decoding.
  int64_t stripSpaces = 0; ///< at most so many off the front of a text

  std::string chatTemplate;
  std::string chatTemplateSource; ///< file and field, for messages

  std::string warnings; ///< what was set aside in loading, a line each

  bool isToken(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < tokens.size() &&
           tokens[static_cast<size_t>(id)].kind != TokenKind::Missing;
  }
};

/// Appends the ids of `text`, which is UTF-8 (Encode.cpp).
kvc_status encode(const Tokenizer &tokenizer, std::string_view text,
                  bool addSpecial, bool parseSpecial,
                  std::vector<int32_t> &ids);

/// Appends the conversation (Chat.cpp).
kvc_status renderChat(const Tokenizer &tokenizer, const kvc_message *messages,
                      int64_t count, bool addGenerationPrompt,
                      std::string &text);

/// Fill an empty tokenizer from a tokenizer.json (HuggingFace.cpp) or a GGUF
/// file's metadata (Gguf.cpp).
kvc_status loadHuggingFace(const std::string &path, Tokenizer &tokenizer);
kvc_status loadGguf(const std::string &path, Tokenizer &tokenizer);

/// Appends the ids that `eos_token_id` of a config.json or
/// generation_config.json names (HuggingFace.cpp).
kvc_status readEnds(const std::string &path, std::vector<int32_t> &ends);

} // namespace kvc::tokenizer

struct kvc_tokenizer : kvc::tokenizer::Tokenizer {};

#endif // KVC_TOKENIZER_TOKENIZER_H
