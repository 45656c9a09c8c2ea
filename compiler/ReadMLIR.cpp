#include "compiler/ReadMLIR.h"
#include "compiler/frontend/FileType.h"
#include "compiler/frontend/Files.h"

using namespace kvc;

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
kvc::readMLIR(llvm::StringRef path) {
  llvm::StringRef name = path;
  std::unique_ptr<llvm::MemoryBuffer> text;
  if (path == "-") {
    name = "standard input";
    auto buffer = llvm::MemoryBuffer::getSTDIN();
    if (!buffer)
      return invalid(name, "cannot be read: " + buffer.getError().message());
    text = std::move(*buffer);
  } else {
    auto buffer = readText(path);
    if (!buffer)
      return buffer.takeError();
    text = std::move(*buffer);
  }
  FileType type = fileType(text->getBuffer());
  if (type.kind != FileKind::MLIR)
    return invalid(name, "expected MLIR, but got " + type.name);
  return text;
}
