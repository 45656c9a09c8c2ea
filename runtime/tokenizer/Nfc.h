//===- Nfc.h - Unicode's composed form --------------------------*- C++ -*-===//
#ifndef KVC_TOKENIZER_NFC_H
#define KVC_TOKENIZER_NFC_H

#include <string>
#include <string_view>

namespace kvc::tokenizer {

/// Normalisation form C of UTF-8 text (Unicode Standard Annex 15).
std::string toNfc(std::string_view text);

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_NFC_H
