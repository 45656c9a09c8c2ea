//===- Normaliser.h - changes to text before it is cut ----------*- C++ -*-===//
#ifndef KVC_TOKENIZER_NORMALISER_H
#define KVC_TOKENIZER_NORMALISER_H

#include <string>
#include <string_view>

namespace kvc::tokenizer {

struct NormaliserStep {
  enum Kind {
    Prepend,     ///< `text` in front
    PrependOnce, ///< the same, unless what is there begins with `text`
    Replace,     ///< each `text`, which is not empty, by `by`
    Nfc,         ///< normalisation form C
  };
  Kind kind;
  std::string text;
  std::string by;
  bool atStartOnly = false; ///< not for stretches after an added token

  std::string apply(std::string_view to) const;
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_NORMALISER_H
