//===- Utf8.h - one character at a time -------------------------*- C++ -*-===//
#ifndef KVC_TOKENIZER_UTF8_H
#define KVC_TOKENIZER_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvc::tokenizer {

/// What stands at the front of a text.
struct Utf8Step {
  enum State {
    Valid,      ///< a character of `length` bytes
    Invalid,    ///< `length` bytes that belong to no character (the "maximal
                ///< subpart" of the Unicode Standard, section 3.9)
    Incomplete, ///< all `length` bytes left begin a character, more must follow
  };
  State state;
  uint8_t length;
  uint32_t character; ///< where valid
};

/// Reads the front of a text that is not empty.
Utf8Step utf8Step(std::string_view text);

/// The number of bytes before the first that is not well-formed UTF-8; the
/// text's size where all of it is.
size_t utf8ValidPrefix(std::string_view text);

void appendUtf8(std::string &text, uint32_t character);

/// `text` in quotes for a message: its beginning where it is long, control
/// characters as \xNN, what isn't UTF-8 as U+FFFD.
std::string quotedText(std::string_view text);

/// The replacement character, U+FFFD.
inline constexpr std::string_view utf8Replacement = "\xEF\xBF\xBD";

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_UTF8_H
