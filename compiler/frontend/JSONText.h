// JSON as our files may hold it: nesting is bounded and no key stands twice.
#ifndef KVC_COMPILER_FRONTEND_JSONTEXT_H
#define KVC_COMPILER_FRONTEND_JSONTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace kvc {

// Parses `text`, which must be one object. `file` is for messages.
llvm::Expected<llvm::json::Object> parseJSON(llvm::StringRef file,
                                             llvm::StringRef text);

// The same for a whole file.
llvm::Expected<llvm::json::Object> readJSON(llvm::StringRef path);

// A value's text for messages, cut where it is long.
std::string describe(const llvm::json::Value &value);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_JSONTEXT_H
