#include "compiler/output/TokenizerFiles.h"
#include "compiler/output/WriteFile.h"
#include "compiler/frontend/FileType.h"
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

// All that kvc_tokenizer_open reads of a directory.
static constexpr llvm::StringRef files[] = {
    "tokenizer.json",      "tokenizer_config.json",
    "chat_template.jinja", "config.json",
    "tokenizer.gguf",      "generation_config.json"};

llvm::Error kvc::copyTokenizer(llvm::StringRef model,
                               llvm::StringRef directory) {
  if (llvm::sys::fs::is_directory(model)) {
    for (llvm::StringRef name : files) {
      std::string from = inFolder(model, name);
      // A link that leads nowhere is not missed.
      llvm::sys::fs::file_status status;
      if (llvm::sys::fs::status(from, status, /*follow=*/false) ==
          std::errc::no_such_file_or_directory)
        continue;
      auto text = readText(from);
      if (!text)
        return text.takeError();
      if (llvm::Error error =
              writeFile(inFolder(directory, name), (*text)->getBuffer()))
        return error;
    }
    return llvm::Error::success();
  }
  auto file = mapFile(model);
  if (!file) // a program from standard input, for one
    llvm::consumeError(file.takeError());
  if (!file || !isGGUF((*file)->getBuffer()))
    return llvm::Error::success();
  auto metadata = readGGUFTokenizer(model);
  if (!metadata)
    return metadata.takeError();
  if (metadata->empty())
    return llvm::Error::success();
  return writeFile(inFolder(directory, "tokenizer.gguf"), *metadata);
}
