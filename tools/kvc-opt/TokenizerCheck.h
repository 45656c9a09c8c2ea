// Whether a library that was written has a tokenizer that can be opened.
#ifndef KVC_OPT_TOKENIZERCHECK_H
#define KVC_OPT_TOKENIZERCHECK_H

#include "llvm/ADT/StringRef.h"

// Warns on standard error where the tokenizer of the model at `model` can't be
// read, or not all of it, from the library's `directory`.
void checkTokenizer(llvm::StringRef model, llvm::StringRef directory);

#endif // KVC_OPT_TOKENIZERCHECK_H
