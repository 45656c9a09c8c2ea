// What a model says of its tokenizer, beside the library.
#ifndef KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
#define KVC_COMPILER_OUTPUT_TOKENIZERFILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

// Writes to `staging` what the model at `model` says of its tokenizer, to be
// published in `directory`: a Hugging Face directory's files that
// kvc_tokenizer_open reads (none where it is `directory` itself), or
// tokenizer.gguf, the metadata of a GGUF file.
llvm::Error copyTokenizer(llvm::StringRef model, llvm::StringRef directory,
                          llvm::StringRef staging);

// Names of the files in `directory` that compiling `model` into it makes wrong: a
// tokenizer's, where a compiled model stands. None where `model` itself lies
// there: they are its own.
llvm::ArrayRef<llvm::StringRef> staleTokenizer(llvm::StringRef model,
                                               llvm::StringRef directory);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
