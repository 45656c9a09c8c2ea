#include "compiler/frontend/Diagnostic.h"
#include "compiler/frontend/FrontEnds.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace kvc {

Expected<ModelSpec> readModel(StringRef path) {
  if (sys::fs::is_directory(path))
    return readHuggingFace(path);
  auto mapping = mapFile(path);
  if (!mapping)
    return mapping.takeError();
  if ((*mapping)->getBuffer().starts_with("GGUF"))
    return readGGUFModel(path);
  if ((*mapping)->getBuffer().ltrim(" \t\r\n").starts_with("{"))
    return readSpecJSON(path);
  return invalid(path, "expected a Hugging Face directory, a GGUF file or a "
                       "spec in JSON");
}

} // namespace kvc
