// MLIR as a file says it.
#ifndef KVC_COMPILER_READMLIR_H
#define KVC_COMPILER_READMLIR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>

namespace kvc {

// Reads the file at `path`, or standard input for "-". An error where it isn't
// MLIR, or is nested deeper than MLIR's parser, which recurses, can follow.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readMLIR(llvm::StringRef path);

} // namespace kvc

#endif // KVC_COMPILER_READMLIR_H
