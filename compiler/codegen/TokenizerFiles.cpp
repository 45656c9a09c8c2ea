#include "compiler/codegen/TokenizerFiles.h"
#include "compiler/codegen/WriteFile.h"
#include "compiler/frontend/TensorFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace kvc;

static std::string inFolder(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return std::string(path);
}

llvm::Error kvc::copyTokenizer(llvm::StringRef model,
                               llvm::StringRef directory) {
  bool isDirectory = llvm::sys::fs::is_directory(model);
  for (llvm::StringRef name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::string to = inFolder(directory, name), from = inFolder(model, name);
    if (isDirectory && llvm::sys::fs::exists(from))
      if (std::error_code code = llvm::sys::fs::copy_file(from, to))
        return llvm::createFileError(from, code);
  }
  if (isDirectory || !model.ends_with(".gguf"))
    return llvm::Error::success();
  auto metadata = readGGUFTokenizer(model);
  if (!metadata)
    return metadata.takeError();
  if (metadata->empty())
    return llvm::Error::success();
  return writeFile(inFolder(directory, "tokenizer.gguf"), *metadata);
}
