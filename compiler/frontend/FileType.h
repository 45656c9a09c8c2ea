// What a file is: told by its first bytes, never by its name.
#ifndef KVC_COMPILER_FRONTEND_FILETYPE_H
#define KVC_COMPILER_FRONTEND_FILETYPE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

enum class FileKind { Directory, GGUF, Safetensors, JSON, MLIR, Other };

struct FileType {
  FileKind kind = FileKind::Other;
  llvm::StringRef name;   // "a GGUF file", for messages
  llvm::StringRef advice; // what to do with it, where it is no model; or empty
};

// By the content of a file, of which the beginning is enough.
FileType fileType(llvm::StringRef content);

// By what stands at `path`; an error where that can't be read.
llvm::Expected<FileType> fileTypeAt(llvm::StringRef path);

// An error where text written to `path` would destroy a model, or a part of one.
llvm::Error checkNoModel(llvm::StringRef path);

inline bool isGGUF(llvm::StringRef content) {
  return fileType(content).kind == FileKind::GGUF;
}

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_FILETYPE_H
