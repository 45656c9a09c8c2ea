// Merging against its definition, and UTF-8 at its edges.

#include "Merger.h"
#include "Utf8.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace kvc::tokenizer;

static void check(bool holds, const char *what) {
  if (holds)
    return;
  printf("failed: %s\n", what);
  exit(1);
}

static uint32_t random32() {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33);
}

// The definition: while a pair can merge, merge the leftmost of lowest rank.
static std::vector<int32_t> mergeSlowly(const MergeTable &merges,
                                        std::vector<int32_t> word) {
  for (;;) {
    const Merge *best = nullptr;
    size_t place = 0;
    for (size_t i = 0; i + 1 < word.size(); ++i)
      if (const Merge *merge = merges.find(word[i], word[i + 1]))
        if (!best || merge->rank < best->rank) {
          best = merge;
          place = i;
        }
    if (!best)
      return word;
    word[place] = best->symbol;
    word.erase(word.begin() + static_cast<ptrdiff_t>(place) + 1);
  }
}

// Words of all lengths up to 200 over vocabularies of random merges of a few
// letters, with equal ranks in every second vocabulary.
static void testMerging() {
  for (int vocabulary = 0; vocabulary < 40; ++vocabulary) {
    MergeTable merges;
    int32_t symbols = 3;
    for (uint32_t i = 0; i < 60; ++i) {
      uint32_t rank = vocabulary % 2 ? i : i / 5;
      int32_t left = static_cast<int32_t>(random32() % uint32_t(symbols));
      int32_t right = static_cast<int32_t>(random32() % uint32_t(symbols));
      if (merges.insert(left, right, {rank, symbols}))
        ++symbols;
    }
    Merger merger(merges);
    for (size_t length = 0; length <= 200; ++length) {
      std::vector<int32_t> word;
      for (size_t i = 0; i < length; ++i)
        word.push_back(static_cast<int32_t>(random32() % 3));
      std::vector<int32_t> merged = {-7}; // what is there already stays
      for (int32_t symbol : word)
        merger.push(symbol);
      merger.finish(merged);
      check(merged.front() == -7, "merging appends");
      merged.erase(merged.begin());
      check(merged == mergeSlowly(merges, word), "merging by its definition");
    }
  }
}

static void testUtf8() {
  for (uint32_t character = 0; character <= 0x10FFFF; ++character) {
    if (character == 0xD800)
      character = 0xE000; // surrogates are no characters
    std::string text;
    appendUtf8(text, character);
    Utf8Step step = utf8Step(text);
    check(step.state == Utf8Step::Valid && step.length == text.size() &&
              step.character == character,
          "a character is read as it was written");
    for (size_t part = 1; part < text.size(); ++part) {
      step = utf8Step(std::string_view(text).substr(0, part));
      check(step.state == Utf8Step::Incomplete && step.length == part,
            "a character's beginning is incomplete");
    }
  }
  // Stray continuations, overlong forms, surrogates, past U+10FFFF, and bytes
  // that never occur; the number is the length of the maximal subpart.
  struct {
    const char *text;
    int length;
  } invalid[] = {{"\x80", 1},         {"\xC0\x80", 1},      {"\xC1\xBF", 1},
                 {"\xE0\x9F\xBF", 1}, {"\xED\xA0\x80", 1},  {"\xF0\x8F\xBF", 1},
                 {"\xF4\x90\x80", 1}, {"\xF5\x80\x80", 1},  {"\xFF", 1},
                 {"\xE2\x82(", 2},    {"\xF0\x9F\x99(", 3}, {"\xC3(", 1}};
  for (auto &sample : invalid) {
    Utf8Step step = utf8Step(sample.text);
    check(step.state == Utf8Step::Invalid && step.length == sample.length,
          "an ill-formed sequence ends with its maximal subpart");
    check(utf8ValidPrefix(sample.text) == 0, "the valid prefix ends before it");
  }
}

int main() {
  testMerging();
  testUtf8();
  puts("all hold");
  return 0;
}
