#include "compiler/output/TokenizerFiles.h"
#include "compiler/output/WriteFile.h"
#include "compiler/frontend/Files.h"
#include "compiler/frontend/TensorFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace kvc;

static std::string inFolder(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return std::string(path);
}

// Whether kvc-opt has written a library to `directory`.
static bool holdsLibrary(llvm::StringRef directory) {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator file(directory, code), end;
       !code && file != end; file.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(file->path());
    if (name.consume_front("lib") && name.consume_back(".so") &&
        llvm::sys::fs::exists(inFolder(directory, name.str() + ".safetensors")))
      return true;
  }
  return false;
}

llvm::Error kvc::copyTokenizer(llvm::StringRef model,
                               llvm::StringRef directory) {
  bool isDirectory = llvm::sys::fs::is_directory(model);
  for (llvm::StringRef name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::string to = inFolder(directory, name), from = inFolder(model, name);
    if (!isDirectory || !llvm::sys::fs::exists(from))
      continue;
    auto text = readText(from);
    if (!text)
      return text.takeError();
    if (llvm::Error error = writeFile(to, (*text)->getBuffer()))
      return error;
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

llvm::ArrayRef<llvm::StringRef> kvc::staleTokenizer(llvm::StringRef model,
                                                    llvm::StringRef directory) {
  // All that kvc_tokenizer_open reads.
  static constexpr llvm::StringRef files[] = {
      "tokenizer.json", "tokenizer_config.json", "tokenizer.gguf"};
  std::string inside = inFolder(directory, llvm::sys::path::filename(model));
  bool own = llvm::sys::fs::equivalent(model, directory) ||
             llvm::sys::fs::equivalent(model, inside);
  if (own || !holdsLibrary(directory))
    return {};
  return files;
}
