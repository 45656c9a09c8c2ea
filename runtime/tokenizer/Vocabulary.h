//===- Vocabulary.h - a file's tokens while it is loaded --------*- C++ -*-===//
#ifndef KVC_TOKENIZER_VOCABULARY_H
#define KVC_TOKENIZER_VOCABULARY_H

#include "Tokenizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvc::tokenizer {

/// The tokens as a file spells them. The spellings belong to the file's own
/// storage, which must outlive this object.
class Vocabulary {
public:
  struct Entry {
    TokenKind kind = TokenKind::Missing;
    std::string_view spelling;
  };

  /// Messages name `field`, the file's list of tokens.
  explicit Vocabulary(std::string field) : field(std::move(field)) {}

  /// Adds a token whose id is new; messages name `where`. A spelling that
  /// `mayRepeat` belongs to the id that had it first.
  kvc_status add(const std::string &where, std::string_view spelling,
                 int64_t id, TokenKind kind, bool mayRepeat = false);

  /// The id of a spelling, or -1.
  int32_t find(std::string_view spelling) const;

  void setKind(int32_t id, TokenKind kind) {
    list[static_cast<size_t>(id)].kind = kind;
  }
  const std::vector<Entry> &entries() const { return list; }

  /// Adds the merge of two spellings; they and their whole must be tokens.
  kvc_status addMerge(const std::string &where, std::string_view left,
                      std::string_view right, size_t rank,
                      MergeTable &merges) const;

  /// Makes the tokens and the tables of symbols, after `byteLevel` and
  /// `byteFallback` are set. `decoded` are the replacements that turn a
  /// spelling into text, for vocabularies of characters. With `wholeWords`,
  /// words that are tokens will not be merged.
  kvc_status finish(const std::vector<NormaliserStep> &decoded, bool wholeWords,
                    Tokenizer &tokenizer) const;

private:
  size_t slotOf(std::string_view spelling) const;
  void addSpelling(int32_t id);

  std::string field;
  std::vector<Entry> list; ///< by id
  // The ids by spelling: a hash table with open addressing and linear probing, at
  // most half full, of a power of two; -1 is free.
  std::vector<int32_t> ids;
  size_t spellings = 0; // in `ids`
};

/// The byte that a spelling like <0x0A> names, or -1.
int spelledByte(std::string_view spelling);

/// Adds the special tokens that end an answer by their well-known spelling, and
/// the end-of-text token.
void addEnds(Tokenizer &tokenizer);

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_VOCABULARY_H
