#include "Error.h"
#include "Tokenizer.h"
#include "Utf8.h"

#include <cstdio>

using namespace kvc::tokenizer;

namespace {

/// One call's state: the storage that its words share.
class Encoder {
public:
  Encoder(const Tokenizer &tokenizer, std::vector<int32_t> &ids)
      : tokenizer(tokenizer), merger(tokenizer.merges), ids(ids) {
    for (const Splitter &splitter : tokenizer.splitters)
      cuts.emplace_back(splitter);
  }

  /// Encodes text between added tokens.
  kvc_status encodeStretch(std::string_view stretch, bool atStart) {
    if (stretch.empty())
      return KVC_OK;
    std::string normalised;
    for (const NormaliserStep &step : tokenizer.normaliser) {
      if (step.atStartOnly && !atStart)
        continue;
      normalised = step.apply(stretch);
      stretch = normalised;
    }
    return encodeFrom(0, stretch);
  }

private:
  /// Cuts a piece by the splitters from `stage` on, and encodes the words.
  kvc_status encodeFrom(size_t stage, std::string_view piece) {
    if (stage == cuts.size())
      return encodeWord(piece);
    Splitter::Pieces &pieces = cuts[stage];
    pieces.start(piece);
    for (;;) {
      std::string_view next;
      KVC_TRY(pieces.next(next));
      if (next.empty())
        return KVC_OK;
      KVC_TRY(encodeFrom(stage + 1, next));
    }
  }

  kvc_status encodeWord(std::string_view word) {
    if (!tokenizer.wholeWords.empty()) {
      auto whole = tokenizer.wholeWords.find(word);
      if (whole != tokenizer.wholeWords.end()) {
        ids.push_back(whole->second);
        return KVC_OK;
      }
    }
    bool afterUnknown = false;
    if (tokenizer.byteLevel) {
      for (char byte : word)
        KVC_TRY(pushKnown(tokenizer.byteSymbols[static_cast<uint8_t>(byte)],
                          std::string_view(&byte, 1), afterUnknown));
    } else {
      while (!word.empty()) {
        Utf8Step step = utf8Step(word);
        const int32_t *symbol = tokenizer.characterSymbols.find(step.character);
        KVC_TRY(pushKnown(symbol ? *symbol : -1, word.substr(0, step.length),
                          afterUnknown));
        word.remove_prefix(step.length);
      }
    }
    size_t first = ids.size();
    merger.finish(ids);
    return tokenizer.extraSymbols.empty() ? KVC_OK : replaceExtraSymbols(first);
  }

  /// Gives the merger a symbol, or what stands for one that is unknown.
  kvc_status pushKnown(int32_t symbol, std::string_view text,
                       bool &afterUnknown) {
    if (symbol >= 0) {
      merger.push(symbol);
      afterUnknown = false;
      return KVC_OK;
    }
    return unknown(text, afterUnknown, [&](int32_t id) { merger.push(id); });
  }

  /// Symbols that merged into no token fall back like unknown characters.
  kvc_status replaceExtraSymbols(size_t first) {
    std::vector<int32_t> symbols(ids.begin() + static_cast<ptrdiff_t>(first),
                                 ids.end());
    ids.resize(first);
    bool afterUnknown = false;
    for (int32_t symbol : symbols) {
      size_t known = tokenizer.tokens.size();
      if (static_cast<size_t>(symbol) < known) {
        ids.push_back(symbol);
        afterUnknown = symbol == tokenizer.unknown;
        continue;
      }
      const std::string &text =
          tokenizer.extraSymbols[static_cast<size_t>(symbol) - known];
      KVC_TRY(
          unknown(text, afterUnknown, [&](int32_t id) { ids.push_back(id); }));
    }
    return KVC_OK;
  }

  template <typename Push>
  kvc_status unknown(std::string_view text, bool &afterUnknown, Push push) {
    if (tokenizer.byteFallback) {
      for (char byte : text)
        push(tokenizer.byteSymbols[static_cast<uint8_t>(byte)]);
      afterUnknown = false;
      return KVC_OK;
    }
    if (tokenizer.unknown < 0) {
      std::string bytes;
      for (char byte : text) {
        char hexadecimal[8];
        snprintf(hexadecimal, sizeof hexadecimal, " 0x%02x",
                 static_cast<uint8_t>(byte));
        bytes += hexadecimal;
      }
      return fail(KVC_INVALID_ARGUMENT,
                  "expected text that the vocabulary can spell, but it has no "
                  "token for byte%s%s",
                  text.size() > 1 ? "s" : "", bytes.c_str());
    }
    if (!(tokenizer.fuseUnknown && afterUnknown))
      push(tokenizer.unknown);
    afterUnknown = true;
    return KVC_OK;
  }

  const Tokenizer &tokenizer;
  Merger merger;
  std::vector<Splitter::Pieces> cuts;
  std::vector<int32_t> &ids;
};

} // namespace

kvc_status kvc::tokenizer::encode(const Tokenizer &tokenizer,
                                  std::string_view text, bool addSpecial,
                                  bool parseSpecial,
                                  std::vector<int32_t> &ids) {
  size_t valid = utf8ValidPrefix(text);
  if (valid != text.size())
    return fail(KVC_INVALID_ARGUMENT,
                "expected UTF-8 text, but got byte 0x%02x at offset %zu of %zu",
                static_cast<uint8_t>(text[valid]), valid, text.size());

  if (addSpecial)
    ids.insert(ids.end(), tokenizer.before.begin(), tokenizer.before.end());
  Encoder encoder(tokenizer, ids);
  for (size_t at = 0; at < text.size();) {
    AddedTokens::Match match = tokenizer.added.find(text, at, parseSpecial);
    KVC_TRY(encoder.encodeStretch(text.substr(at, match.begin - at), at == 0));
    if (match.begin != match.end)
      ids.push_back(match.id);
    at = match.end;
  }
  if (addSpecial)
    ids.insert(ids.end(), tokenizer.after.begin(), tokenizer.after.end());
  return KVC_OK;
}
