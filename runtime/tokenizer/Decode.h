//===- Decode.h - ids to text, piece by piece -------------------*- C++ -*-===//
#ifndef KVC_TOKENIZER_DECODE_H
#define KVC_TOKENIZER_DECODE_H

#include "Tokenizer.h"

namespace kvc::tokenizer {

/// See kvc_decoder in kvc/tokenizer.h.
class Decoder {
public:
  Decoder(const Tokenizer &tokenizer, bool skipSpecial)
      : tokenizer(tokenizer), skipSpecial(skipSpecial),
        spacesToStrip(tokenizer.stripSpaces) {}

  /// Append to `text`; after an error nothing has changed.
  kvc_status push(int32_t id, std::string &text);
  void finish(std::string &text);

private:
  void giveCharacters(std::string &text);

  const Tokenizer &tokenizer;
  bool skipSpecial;
  int64_t spacesToStrip;
  std::string held; ///< the beginning of a character: at most three bytes
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_DECODE_H
