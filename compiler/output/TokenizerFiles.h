// What a model says of its tokenizer, beside the library.
#ifndef KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
#define KVC_COMPILER_OUTPUT_TOKENIZERFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

// Copies the tokenizer of the model at `model` into `directory`, if it has one:
// the files of a Hugging Face directory that kvc_tokenizer_open reads, or
// tokenizer.gguf, the metadata of a GGUF file.
llvm::Error copyTokenizer(llvm::StringRef model, llvm::StringRef directory);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
