// How the compiler opens files, the JSON that they may hold (nesting is bounded,
// no key stands twice), and the one form of an error about a file.
#ifndef KVC_COMPILER_FRONTEND_FILES_H
#define KVC_COMPILER_FRONTEND_FILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace kvc {

// "file: what", where `what` begins with the field that is meant, if one is.
llvm::Error invalid(llvm::StringRef file, const llvm::Twine &what);

// The longest text that is read as a whole. No model's JSON or template comes
// near it; it is also what the safetensors format allows its header.
constexpr uint64_t maxTextBytes = 100000000;

// Maps the file at `path`, or where a link leads from there, into memory; no
// null byte follows. What isn't a regular file may never end, or wait for a
// writer, so that a pipe, a device or a directory is an error.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
mapFile(llvm::StringRef path);

// The same for a text: of at most maxTextBytes, and a null byte follows it.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readText(llvm::StringRef path);

// Parses `text`, which must be one object. `file` is for messages.
llvm::Expected<llvm::json::Object> parseJSON(llvm::StringRef file,
                                             llvm::StringRef text);

// The same for a whole file.
llvm::Expected<llvm::json::Object> readJSON(llvm::StringRef path);

// A value's text for messages, cut where it is long.
std::string describe(const llvm::json::Value &value);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_FILES_H
