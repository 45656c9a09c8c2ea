#include "Vocabulary.h"

#include "ByteAlphabet.h"
#include "Error.h"
#include "Utf8.h"

#include <algorithm>
#include <cstdio>

using namespace kvc::tokenizer;

// No vocabulary comes near; a file with a larger id is broken.
static constexpr int64_t maxTokens = int64_t(1) << 24;

kvc_status Vocabulary::add(const std::string &where, std::string_view spelling,
                           int64_t id, TokenKind kind, bool mayRepeat) {
  if (id < 0 || id >= maxTokens)
    return fail(KVC_IO, "%s: expected an id from 0 to %lld, but got %lld",
                where.c_str(), static_cast<long long>(maxTokens - 1),
                static_cast<long long>(id));
  if (utf8ValidPrefix(spelling) != spelling.size())
    return fail(KVC_IO, "%s: expected UTF-8, but token %lld is not",
                where.c_str(), static_cast<long long>(id));
  if (list.size() <= static_cast<size_t>(id))
    list.resize(static_cast<size_t>(id) + 1);
  Entry &entry = list[static_cast<size_t>(id)];
  if (entry.kind != TokenKind::Missing)
    return fail(
        KVC_IO,
        "%s: expected one token per id, but %s and %s both have id %lld",
        where.c_str(), quotedText(entry.spelling).c_str(),
        quotedText(spelling).c_str(), static_cast<long long>(id));
  int32_t known = find(spelling);
  if (known >= 0 && !mayRepeat)
    return fail(KVC_IO,
                "%s: expected one id per token, but %s has ids %d and %lld",
                where.c_str(), quotedText(spelling).c_str(), known,
                static_cast<long long>(id));
  entry = {kind, spelling};
  if (known < 0)
    addSpelling(static_cast<int32_t>(id));
  return KVC_OK;
}

// Where a spelling's id stands in `ids`, or would stand.
size_t Vocabulary::slotOf(std::string_view spelling) const {
  size_t slot = std::hash<std::string_view>()(spelling);
  for (;; ++slot) {
    slot &= ids.size() - 1;
    if (ids[slot] < 0 || list[static_cast<size_t>(ids[slot])].spelling == spelling)
      return slot;
  }
}

void Vocabulary::addSpelling(int32_t id) {
  if (2 * (spellings + 1) > ids.size()) {
    std::vector<int32_t> old(ids.empty() ? 16 : 2 * ids.size(), -1);
    old.swap(ids);
    for (int32_t known : old)
      if (known >= 0)
        ids[slotOf(list[static_cast<size_t>(known)].spelling)] = known;
  }
  ids[slotOf(list[static_cast<size_t>(id)].spelling)] = id;
  ++spellings;
}

int32_t Vocabulary::find(std::string_view spelling) const {
  return ids.empty() ? -1 : ids[slotOf(spelling)];
}

kvc_status Vocabulary::addMerge(const std::string &where, std::string_view left,
                                std::string_view right, size_t rank,
                                MergeTable &merges) const {
  std::string whole(left);
  whole += right;
  for (std::string_view token : {left, right, std::string_view(whole)})
    if (token.empty() || find(token) < 0)
      return fail(KVC_IO,
                  "%s[%zu]: expected tokens of the vocabulary, but %s is none",
                  where.c_str(), rank, quotedText(token).c_str());
  Merge merge = {static_cast<uint32_t>(rank), find(whole)};
  if (!merges.insert(find(left), find(right), merge))
    return fail(KVC_IO,
                "%s[%zu]: expected each merge once, but %s %s came before",
                where.c_str(), rank, quotedText(left).c_str(),
                quotedText(right).c_str());
  return KVC_OK;
}

int kvc::tokenizer::spelledByte(std::string_view spelling) {
  if (spelling.size() != 6 || spelling.substr(0, 3) != "<0x" ||
      spelling[5] != '>')
    return -1;
  int byte = 0;
  for (char digit : spelling.substr(3, 2)) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    size_t value = digits.find(digit);
    if (value == digits.npos)
      return -1;
    byte = 16 * byte + static_cast<int>(value);
  }
  return byte;
}

static std::string decodedBytes(const Vocabulary::Entry &entry,
                                const std::vector<NormaliserStep> &decoded,
                                bool byteLevel) {
  std::string bytes(entry.spelling);
  if (entry.kind == TokenKind::Byte) {
    bytes = static_cast<char>(spelledByte(entry.spelling));
  } else if (entry.kind != TokenKind::Normal) {
    return bytes;
  } else if (byteLevel) {
    bytes.clear();
    appendSpelledBytes(bytes, entry.spelling);
  } else {
    for (const NormaliserStep &step : decoded)
      bytes = step.apply(bytes);
  }
  return bytes;
}

kvc_status Vocabulary::finish(const std::vector<NormaliserStep> &decoded,
                              bool wholeWords, Tokenizer &tokenizer) const {
  for (const Entry &entry : list)
    tokenizer.tokens.add(entry.kind,
                         decodedBytes(entry, decoded, tokenizer.byteLevel));
  for (size_t i = 0; i < list.size(); ++i) {
    const Entry &entry = list[i];
    int32_t id = static_cast<int32_t>(i);
    bool special = entry.kind == TokenKind::Special;
    if (special || entry.kind == TokenKind::Added)
      tokenizer.added.add(entry.spelling, id, special);
    if (wholeWords && entry.kind == TokenKind::Normal)
      tokenizer.wholeWords.emplace(tokenizer.tokens[i].bytes, id);
    if (entry.kind == TokenKind::Missing || entry.spelling.empty())
      continue;
    Utf8Step step = utf8Step(entry.spelling);
    if (step.length == entry.spelling.size())
      tokenizer.characterSymbols.insert(step.character, id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling;
    if (tokenizer.byteFallback) {
      char name[8];
      snprintf(name, sizeof name, "<0x%02X>", byte);
      spelling = name;
    } else {
      appendUtf8(spelling, byteCharacter(static_cast<uint8_t>(byte)));
    }
    tokenizer.byteSymbols[byte] = find(spelling);
    if (tokenizer.byteFallback && tokenizer.byteSymbols[byte] < 0)
      return fail(KVC_IO,
                  "%s: expected a token for each byte, but %s is missing",
                  field.c_str(), spelling.c_str());
  }
  return KVC_OK;
}

void kvc::tokenizer::addEnds(Tokenizer &tokenizer) {
  if (tokenizer.eos >= 0)
    tokenizer.ends.push_back(tokenizer.eos);
  for (size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    Token token = tokenizer.tokens[i];
    if (token.kind != TokenKind::Special)
      continue;
    for (std::string_view end :
         {"<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>"})
      if (token.bytes == end)
        tokenizer.ends.push_back(static_cast<int32_t>(i));
  }
}
