//===- ByteAlphabet.h - how byte-level files spell bytes --------*- C++ -*-===//
#ifndef KVC_TOKENIZER_BYTEALPHABET_H
#define KVC_TOKENIZER_BYTEALPHABET_H

#include <cstdint>
#include <string>
#include <string_view>

namespace kvc::tokenizer {

/// The character by which files of byte-level vocabularies spell a byte: bytes
/// that print in Latin-1 stand for themselves, the others, in order, for U+0100
/// and up (Radford et al. 2019, the released vocabulary of GPT-2).
uint32_t byteCharacter(uint8_t byte);

/// Appends the bytes that `spelling` stands for. A spelling with a character
/// outside the alphabet stands for its own bytes.
void appendSpelledBytes(std::string &bytes, std::string_view spelling);

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_BYTEALPHABET_H
