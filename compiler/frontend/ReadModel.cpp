#include "compiler/frontend/FileType.h"
#include "compiler/frontend/Files.h"
#include "compiler/frontend/FrontEnds.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace kvc {

// What stands in the way of reading `directory`, where that can be said better
// than by the file that is missed first.
static Error checkDirectory(StringRef directory) {
  std::string gguf;
  bool empty = true, compiled = false, config = false, safetensors = false, pytorch = false;
  std::error_code code;
  for (sys::fs::directory_iterator file(directory, code), end;
       !code && file != end; file.increment(code)) {
    StringRef name = sys::path::filename(file->path());
    empty = false;
    compiled |= name == "kvc.json";
    config |= name == "config.json";
    safetensors |= name.contains(".safetensors");
    pytorch |= name.starts_with("pytorch_model");
    if (name.ends_with_insensitive(".gguf"))
      gguf = file->path();
  }
  if (code)
    return invalid(directory, "cannot be read: " + code.message());
  if (empty)
    return invalid(directory, "expected a Hugging Face directory (config.json "
                              "and safetensors), but it is empty");
  if (!config && compiled)
    return invalid(directory, "expected a model, but got what kvc-opt made of "
                              "one; kvc-run runs it");
  if (!config && !gguf.empty())
    return invalid(directory, "expected a Hugging Face directory, but it has no "
                              "config.json; give a file: " + gguf);
  if (config && !safetensors && pytorch)
    return invalid(directory, "expected model.safetensors, but got "
                              "pytorch_model.bin alone; save the model as "
                              "safetensors");
  return Error::success();
}

Expected<ModelSpec> readModel(StringRef path) {
  auto type = fileTypeAt(path);
  if (!type)
    return type.takeError();
  switch (type->kind) {
  case FileKind::Directory:
    if (Error error = checkDirectory(path))
      return std::move(error);
    return readHuggingFace(path);
  case FileKind::GGUF:
    return readGGUFModel(path);
  case FileKind::JSON:
    return readSpecJSON(path);
  default:
    return invalid(path, "expected a model (a Hugging Face directory, a GGUF "
                         "file, a spec in JSON, or MLIR), but got " +
                             type->name + (type->advice.empty() ? "" : "; ") +
                             type->advice);
  }
}

} // namespace kvc
