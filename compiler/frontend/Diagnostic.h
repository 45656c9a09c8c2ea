// The one form of an error about a file: "file: field: what was expected".
#ifndef KVC_COMPILER_FRONTEND_DIAGNOSTIC_H
#define KVC_COMPILER_FRONTEND_DIAGNOSTIC_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>

namespace kvc {

inline llvm::Error invalid(llvm::StringRef file, const llvm::Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 file + ": " + what);
}

// Maps `path` into memory, or says why it can't be read.
inline llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
mapFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return invalid(path, "cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_DIAGNOSTIC_H
