// What a model says of its tokenizer, beside the library.
#ifndef KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
#define KVC_COMPILER_OUTPUT_TOKENIZERFILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

// Copies the tokenizer of the model at `model` into `directory`, if it has one:
// tokenizer.json and tokenizer_config.json of a Hugging Face directory, or
// tokenizer.gguf, the metadata of a GGUF file.
llvm::Error copyTokenizer(llvm::StringRef model, llvm::StringRef directory);

// Names of the files in `directory` that compiling `model` into it makes wrong: a
// tokenizer's, where a compiled model stands. None where `model` itself lies
// there: they are its own.
llvm::ArrayRef<llvm::StringRef> staleTokenizer(llvm::StringRef model,
                                               llvm::StringRef directory);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
