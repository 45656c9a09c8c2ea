#include "compiler/frontend/WeightFile.h"
#include "compiler/frontend/Diagnostic.h"
#include "compiler/frontend/RandomWeights.h"
#include "compiler/frontend/TensorFile.h"

using namespace llvm;

namespace kvc {

// The format is told by the first bytes: GGUF has a magic; safetensors starts
// with a u64 length, whose high bytes are 0 in any file that fits a disk; JSON
// text, an index of several files, has no byte 0.
static Expected<std::unique_ptr<TensorFile>> openFile(StringRef path) {
  auto mapping = mapFile(path);
  if (!mapping)
    return mapping.takeError();
  StringRef content = (*mapping)->getBuffer();
  if (content.starts_with("GGUF"))
    return openGGUF(path);
  if (content.ltrim(" \t\r\n").starts_with("{") &&
      !content.take_front(8).contains('\0'))
    return openSafetensorsIndex(path);
  return openSafetensors(path);
}

Expected<std::unique_ptr<WeightFile>> openWeights(StringRef path) {
  if (path.starts_with("random:"))
    return openRandomWeights(path);
  return openFile(path);
}

} // namespace kvc
