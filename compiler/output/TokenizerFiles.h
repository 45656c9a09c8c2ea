// What a model says of its tokenizer, beside the library.
#ifndef KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
#define KVC_COMPILER_OUTPUT_TOKENIZERFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

// Writes to `staging` what the model at `model` says of its tokenizer, to be
// published in `directory`: a Hugging Face directory's files that
// kvc_tokenizer_open reads (none where it is `directory` itself), or
// tokenizer.gguf, the metadata of a GGUF file.
llvm::Error copyTokenizer(llvm::StringRef model, llvm::StringRef directory,
                          llvm::StringRef staging);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_TOKENIZERFILES_H
