// What a model says of its tokenizer, beside the library.
#ifndef KVC_COMPILER_CODEGEN_TOKENIZERFILES_H
#define KVC_COMPILER_CODEGEN_TOKENIZERFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

// The files of a tokenizer, all that kvc_tokenizer_open reads.
inline constexpr llvm::StringLiteral kTokenizerFiles[] = {
    "tokenizer.json", "tokenizer_config.json", "tokenizer.gguf"};

// Copies the tokenizer of the model at `model` into `directory`, if it has one:
// tokenizer.json and tokenizer_config.json of a Hugging Face directory, or
// tokenizer.gguf, the metadata of a GGUF file.
llvm::Error copyTokenizer(llvm::StringRef model, llvm::StringRef directory);

} // namespace kvc

#endif // KVC_COMPILER_CODEGEN_TOKENIZERFILES_H
