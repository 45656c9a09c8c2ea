//===- PreTokenizers.h - the expressions of known models --------*- C++ -*-===//
#ifndef KVC_TOKENIZER_PRETOKENIZERS_H
#define KVC_TOKENIZER_PRETOKENIZERS_H

#include <string_view>

namespace kvc::tokenizer {

/// GPT-2's words (Radford et al. 2019, encoder.py): contractions, runs of
/// letters, digits or other signs with a space before, runs of space.
inline constexpr std::string_view gpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
    R"(|\s+(?!\S)|\s+)";

/// One digit by itself.
inline constexpr std::string_view oneDigit = R"(\p{N})";

/// What a GGUF file's tokenizer.ggml.pre stands for.
struct PreTokenizer {
  std::string_view name;
  std::string_view expressions[4]; ///< one inside the other; empty ones end
  bool addsBos;      ///< where tokenizer.ggml.add_bos_token is absent
  bool ignoreMerges; ///< words that are tokens are taken whole
  bool nfc;          ///< text is composed first
};

/// Null where the name is not known.
const PreTokenizer *findPreTokenizer(std::string_view name);

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_PRETOKENIZERS_H
