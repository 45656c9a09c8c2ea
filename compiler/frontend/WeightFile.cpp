#include "compiler/frontend/WeightFile.h"
#include "compiler/frontend/FileType.h"
#include "compiler/frontend/Files.h"
#include "compiler/frontend/TensorFile.h"

using namespace llvm;

namespace kvc {

static Expected<std::unique_ptr<TensorFile>> openFile(StringRef path) {
  auto type = fileTypeAt(path);
  if (!type)
    return type.takeError();
  if (type->kind == FileKind::GGUF)
    return openGGUF(path);
  if (type->kind == FileKind::JSON)
    return openSafetensorsIndex(path);
  // Its reader says what is wrong with any other.
  return openSafetensors(path);
}

Expected<std::unique_ptr<WeightFile>> openWeights(StringRef path) {
  if (path.starts_with("random:"))
    return openRandomWeights(path);
  return openFile(path);
}

} // namespace kvc
