#include "TokenizerCheck.h"
#include "kvc/tokenizer.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static std::string inFolder(StringRef folder, StringRef name) {
  SmallString<256> path(folder);
  sys::path::append(path, name);
  return std::string(path);
}

static void warn(const Twine &message) {
  errs() << "warning: " << message << "\n";
}

void checkTokenizer(StringRef model, StringRef directory) {
  if (sys::fs::exists(inFolder(directory, "tokenizer.json")) ||
      sys::fs::exists(inFolder(directory, "tokenizer.gguf"))) {
    kvc_tokenizer *tokenizer = nullptr;
    if (kvc_tokenizer_open(directory.str().c_str(), &tokenizer) != KVC_OK)
      warn(kvc_tokenizer_last_error() +
           Twine("; kvc-run takes the model's ids alone"));
    for (StringRef line : split(kvc_tokenizer_warnings(tokenizer), '\n'))
      if (!line.empty())
        warn(line);
    kvc_tokenizer_close(tokenizer);
    return;
  }
  // What tokenizer.json would be made from.
  for (StringRef name : {"tokenizer.model", "vocab.json", "tekken.json"})
    if (std::string path = inFolder(model, name); sys::fs::exists(path))
      return warn(path + ": expected tokenizer.json beside it, which alone is "
                         "read; kvc-run takes the model's ids alone");
}
