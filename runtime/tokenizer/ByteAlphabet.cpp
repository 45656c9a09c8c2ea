#include "ByteAlphabet.h"

#include "Utf8.h"

#include <iterator>

using namespace kvc::tokenizer;

static constexpr bool printsInLatin1(uint8_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

namespace {
struct Alphabet {
  uint16_t character[256];
  int16_t byte[0x100 + 68]; // 68 bytes do not print
};
} // namespace

static constexpr Alphabet makeAlphabet() {
  Alphabet made{};
  for (int16_t &byte : made.byte)
    byte = -1;
  uint16_t substitute = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bool prints = printsInLatin1(static_cast<uint8_t>(byte));
    uint16_t character = prints ? static_cast<uint16_t>(byte) : substitute++;
    made.character[byte] = character;
    made.byte[character] = static_cast<int16_t>(byte);
  }
  return made;
}

static constexpr Alphabet alphabet = makeAlphabet();

uint32_t kvc::tokenizer::byteCharacter(uint8_t byte) {
  return alphabet.character[byte];
}

void kvc::tokenizer::appendSpelledBytes(std::string &bytes,
                                        std::string_view spelling) {
  size_t before = bytes.size();
  for (size_t at = 0; at < spelling.size();) {
    Utf8Step step = utf8Step(spelling.substr(at));
    int16_t byte = -1;
    if (step.state == Utf8Step::Valid &&
        step.character < std::size(alphabet.byte))
      byte = alphabet.byte[step.character];
    if (byte < 0) {
      bytes.resize(before);
      bytes += spelling;
      return;
    }
    bytes += static_cast<char>(byte);
    at += step.length;
  }
}
