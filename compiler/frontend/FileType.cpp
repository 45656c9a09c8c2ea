#include "compiler/frontend/FileType.h"
#include "compiler/frontend/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace kvc {

static constexpr StringLiteral convert =
    "save it as safetensors and give the directory with its config.json";

// Files that begin with these bytes.
static constexpr struct {
  StringLiteral magic;
  FileType type;
} magics[] = {
    {"GGUF", {FileKind::GGUF, "a GGUF file", ""}},
    {"ML\xefR", {FileKind::MLIR, "MLIR bytecode", ""}},
    {"PK\3\4", {FileKind::Other, "a zip archive (as pytorch_model.bin is one)",
                convert}},
    {"\x80\2", {FileKind::Other, "a Python pickle (as pytorch_model.bin can be)",
                convert}},
    {"\x7f" "ELF", {FileKind::Other, "an ELF file", ""}},
    {"version https://git-lfs",
     {FileKind::Other, "a Git LFS pointer", "git lfs pull fetches its file"}},
    {"\xef\xbb\xbf", {FileKind::Other, "text with a byte order mark",
                      "save it as UTF-8 without one"}},
    {"<", {FileKind::Other, "an HTML or XML page", ""}},
};

// A u64 length, whose high bytes are 0 in any file that fits a disk, and JSON of
// that length.
static bool isSafetensors(StringRef content) {
  return content.size() > 8 && content[8] == '{' &&
         support::endian::read64le(content.data()) <= uint64_t(1) << 40;
}

// Text that begins, after comments, as an operation, an alias or a resource.
static bool isMLIR(StringRef content) {
  if (any_of(content.take_front(1024),
             [](unsigned char c) { return c < ' ' && !isSpace(c); }))
    return false;
  StringRef text = content.ltrim();
  bool comments = text.starts_with("//");
  while (text.starts_with("//"))
    text = text.substr(text.find('\n')).ltrim();
  if (text.empty())
    return comments;
  if (text.starts_with("{-#"))
    return true;
  bool sigil = StringRef("#!%").contains(text.front());
  StringRef name = sigil ? text.drop_front() : text;
  return !name.empty() &&
         (isAlpha(name[0]) || name[0] == '_' || name[0] == '"' ||
          (sigil && isDigit(name[0])));
}

FileType fileType(StringRef content) {
  for (const auto &[magic, type] : magics)
    if (content.starts_with(magic))
      return type;
  if (isSafetensors(content))
    return {FileKind::Safetensors, "a safetensors file",
            "give the directory that holds it and its config.json"};
  if (isMLIR(content))
    return {FileKind::MLIR, "MLIR", ""};
  StringRef text = content.ltrim();
  if (text.starts_with("{") || text.starts_with("["))
    return {FileKind::JSON, "JSON", ""};
  return {FileKind::Other, text.empty() ? "an empty file" : "something else", ""};
}

// "org/name", where no such path exists.
static bool isHubName(StringRef path) {
  return !sys::fs::exists(path) && !path.starts_with(".") &&
         !path.starts_with("/") && path.count('/') == 1 &&
         !path.ends_with("/") && !sys::fs::exists(path.split('/').first);
}

Expected<FileType> fileTypeAt(StringRef path) {
  if (isHubName(path))
    return invalid(path, "expected a path, but there is none; a model of a hub "
                         "is downloaded first, and its directory given");
  if (sys::fs::is_directory(path))
    return FileType{FileKind::Directory, "a directory", ""};
  auto mapping = mapFile(path);
  if (!mapping)
    return mapping.takeError();
  return fileType((*mapping)->getBuffer());
}

Error checkNoModel(StringRef path) {
  auto type = fileTypeAt(path);
  if (!type) {
    consumeError(type.takeError());
    return Error::success();
  }
  if (type->kind != FileKind::GGUF && type->kind != FileKind::Safetensors &&
      type->kind != FileKind::JSON)
    return Error::success();
  return invalid(path, "expected no file of a model where text is written, but "
                       "got " + type->name);
}

} // namespace kvc
