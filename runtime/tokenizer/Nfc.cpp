#include "Nfc.h"

#include "Utf8.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

using namespace kvc::tokenizer;

namespace {
struct Mapping {
  uint32_t character, first, second; // second: 0 where there is one only
};
struct ClassRange {
  uint32_t first, last;
  uint8_t combiningClass;
};
struct Character {
  uint32_t code;
  uint8_t combiningClass;
  size_t place; // among the characters as they came
};
} // namespace

#include "NfcTables.inc"

// Hangul syllables follow arithmetic (the Unicode Standard, section 3.12):
// a leading consonant, a vowel and perhaps a trailing consonant.
static constexpr uint32_t syllables = 0xAC00, leads = 0x1100, vowels = 0x1161,
                          trails = 0x11A7;
static constexpr uint32_t leadCount = 19, vowelCount = 21, trailCount = 28;
static constexpr uint32_t syllableCount = leadCount * vowelCount * trailCount;

static uint8_t combiningClass(uint32_t code) {
  auto after = std::upper_bound(
      std::begin(classes), std::end(classes), code,
      [](uint32_t c, const ClassRange &range) { return c < range.first; });
  if (after == std::begin(classes) || code > std::prev(after)->last)
    return 0;
  return std::prev(after)->combiningClass;
}

static void decompose(uint32_t code, std::vector<Character> &out) {
  if (code - syllables < syllableCount) {
    uint32_t index = code - syllables;
    out.push_back({leads + index / (vowelCount * trailCount), 0, 0});
    out.push_back({vowels + index / trailCount % vowelCount, 0, 0});
    if (index % trailCount != 0)
      out.push_back({trails + index % trailCount, 0, 0});
    return;
  }
  auto found = std::lower_bound(
      std::begin(mappings), std::end(mappings), code,
      [](const Mapping &mapping, uint32_t c) { return mapping.character < c; });
  if (found == std::end(mappings) || found->character != code) {
    out.push_back({code, combiningClass(code), 0});
    return;
  }
  decompose(found->first, out);
  if (found->second != 0)
    decompose(found->second, out);
}

/// The character that two compose to, or 0.
static uint32_t compose(uint32_t first, uint32_t second) {
  if (first - leads < leadCount && second - vowels < vowelCount)
    return syllables +
           ((first - leads) * vowelCount + (second - vowels)) * trailCount;
  if (first - syllables < syllableCount &&
      (first - syllables) % trailCount == 0 && second > trails &&
      second < trails + trailCount)
    return first + (second - trails);
  auto found = std::lower_bound(
      std::begin(compositions), std::end(compositions),
      std::pair(first, second),
      [](uint16_t index, const std::pair<uint32_t, uint32_t> &pair) {
        return std::pair(mappings[index].first, mappings[index].second) < pair;
      });
  if (found == std::end(compositions))
    return 0;
  const Mapping &mapping = mappings[*found];
  bool same = mapping.first == first && mapping.second == second;
  return same ? mapping.character : 0;
}

// Marks stand in the order of their classes, those of one class as they were.
static void order(std::vector<Character> &text) {
  auto byClass = [](const Character &a, const Character &b) {
    return a.combiningClass != b.combiningClass
               ? a.combiningClass < b.combiningClass
               : a.place < b.place;
  };
  for (size_t i = 0; i < text.size(); ++i)
    text[i].place = i;
  for (auto at = text.begin(); at != text.end();) {
    auto isStarter = [](const Character &c) { return c.combiningClass == 0; };
    auto begin = std::find_if_not(at, text.end(), isStarter);
    at = std::find_if(begin, text.end(), isStarter);
    std::sort(begin, at, byClass);
  }
}

// Composes each starter with what follows and is not blocked by a mark of the
// same or a higher class in between.
static void composeAll(std::vector<Character> &text) {
  size_t size = 0, starter = 0;
  bool hasStarter = false;
  for (Character character : text) {
    bool adjacent = size == starter + 1;
    if (hasStarter &&
        (adjacent || text[size - 1].combiningClass < character.combiningClass))
      if (uint32_t composed = compose(text[starter].code, character.code)) {
        text[starter].code = composed;
        continue;
      }
    if (character.combiningClass == 0) {
      starter = size;
      hasStarter = true;
    }
    text[size++] = character;
  }
  text.resize(size);
}

std::string kvc::tokenizer::toNfc(std::string_view text) {
  // Below U+0300, whose first byte is 0xCC, every text is composed.
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return static_cast<uint8_t>(c) < 0xCC; }))
    return std::string(text);
  std::vector<Character> characters;
  while (!text.empty()) {
    Utf8Step step = utf8Step(text);
    decompose(step.character, characters);
    text.remove_prefix(step.length);
  }
  order(characters);
  composeAll(characters);
  std::string composed;
  for (Character character : characters)
    appendUtf8(composed, character.code);
  return composed;
}
