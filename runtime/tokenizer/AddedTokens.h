//===- AddedTokens.h - tokens recognised as they are spelled ----*- C++ -*-===//
#ifndef KVC_TOKENIZER_ADDEDTOKENS_H
#define KVC_TOKENIZER_ADDEDTOKENS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvc::tokenizer {

/// Finds the tokens that stand outside the merges. Where several match at one
/// place, the longest does.
class AddedTokens {
public:
  struct Match {
    size_t begin, end; ///< in the text; begin == end: none
    int32_t id;
  };

  /// Adds a token; one with an empty spelling is never found.
  void add(std::string_view spelling, int32_t id, bool special);

  /// The first match at or after `from`.
  Match find(std::string_view text, size_t from, bool parseSpecial) const;

private:
  struct Entry {
    std::string spelling;
    int32_t id;
    bool special;
  };
  std::vector<Entry> byFirstByte[256]; ///< the longest first
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_ADDEDTOKENS_H
