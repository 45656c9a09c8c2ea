#include "Utf8.h"

#include <cstdio>

using namespace kvc::tokenizer;

// The ranges are table 3-7 of the Unicode Standard: they leave out overlong
// forms, surrogates and everything past U+10FFFF.
Utf8Step kvc::tokenizer::utf8Step(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80)
    return {Utf8Step::Valid, 1, lead};
  if (lead < 0xC2 || lead > 0xF4)
    return {Utf8Step::Invalid, 1, 0};

  size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  uint32_t character = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {Utf8Step::Incomplete, static_cast<uint8_t>(i), 0};
    if (byte(i) < low || byte(i) > high)
      return {Utf8Step::Invalid, static_cast<uint8_t>(i), 0};
    character = character << 6 | (byte(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Step::Valid, static_cast<uint8_t>(length), character};
}

size_t kvc::tokenizer::utf8ValidPrefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    Utf8Step step = utf8Step(text.substr(at));
    if (step.state != Utf8Step::Valid)
      return at;
    at += step.length;
  }
  return at;
}

void kvc::tokenizer::appendUtf8(std::string &text, uint32_t character) {
  if (character < 0x80) {
    text += static_cast<char>(character);
    return;
  }
  int continuations = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  uint8_t lead = continuations == 1 ? 0xC0 : continuations == 2 ? 0xE0 : 0xF0;
  text += static_cast<char>(lead | character >> (6 * continuations));
  while (continuations-- > 0)
    text += static_cast<char>(0x80 | (character >> (6 * continuations) & 0x3F));
}

std::string kvc::tokenizer::quotedText(std::string_view text) {
  constexpr size_t maxBytes = 60;
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    if (at >= maxBytes)
      return result + "...\"";
    Utf8Step step = utf8Step(text.substr(at));
    char escaped[8];
    snprintf(escaped, sizeof escaped, "\\x%02x", step.character & 0xFF);
    result += step.state != Utf8Step::Valid ? utf8Replacement
              : step.character < 0x20       ? std::string_view(escaped)
                                            : text.substr(at, step.length);
    at += step.length;
  }
  return result + '"';
}
