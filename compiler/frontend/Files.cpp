#include "compiler/frontend/Files.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace kvc {

Error invalid(StringRef file, const Twine &what) {
  return createStringError(inconvertibleErrorCode(), file + ": " + what);
}

static StringRef describe(sys::fs::file_type type) {
  switch (type) {
  case sys::fs::file_type::directory_file:
    return "a directory";
  case sys::fs::file_type::fifo_file:
    return "a pipe";
  case sys::fs::file_type::socket_file:
    return "a socket";
  case sys::fs::file_type::block_file:
  case sys::fs::file_type::character_file:
    return "a device";
  default:
    return "something else";
  }
}

static Expected<std::unique_ptr<MemoryBuffer>>
open(StringRef path, uint64_t maxBytes, bool nullTerminated) {
  // Asked before it is opened, since opening a pipe waits.
  sys::fs::file_status status;
  std::error_code code = sys::fs::status(path, status);
  if (code)
    return invalid(path, "cannot be read: " + code.message());
  if (!sys::fs::is_regular_file(status))
    return invalid(path, "expected a regular file, but got " +
                             describe(status.type()));
  if (status.getSize() > maxBytes)
    return invalid(path, "expected a text of at most " + Twine(maxBytes) +
                             " bytes, but got " + Twine(status.getSize()));
  auto buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, nullTerminated);
  if (!buffer)
    return invalid(path, "cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

Expected<std::unique_ptr<MemoryBuffer>> mapFile(StringRef path) {
  return open(path, UINT64_MAX, /*nullTerminated=*/false);
}

Expected<std::unique_ptr<MemoryBuffer>> readText(StringRef path) {
  return open(path, maxTextBytes, /*nullTerminated=*/true);
}

} // namespace kvc
