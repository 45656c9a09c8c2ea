#ifndef KVC_COMPILER_OUTPUT_WRITEFILE_H
#define KVC_COMPILER_OUTPUT_WRITEFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace kvc {

// Closes `os`, which writes to `path`; an error where not all bytes arrived.
inline llvm::Error closeFile(llvm::raw_fd_ostream &os, llvm::StringRef path) {
  os.close();
  std::error_code code = os.error();
  os.clear_error();
  return code ? llvm::createFileError(path, code) : llvm::Error::success();
}

// Writes a whole file.
inline llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  if (code)
    return llvm::createFileError(path, code);
  os << text;
  return closeFile(os, path);
}

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_WRITEFILE_H
