#include "compiler/frontend/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <vector>

using namespace llvm;

namespace kvc {

Error invalid(StringRef file, const Twine &what) {
  return createStringError(inconvertibleErrorCode(), file + ": " + what);
}

static StringRef kindOf(sys::fs::file_type type) {
  switch (type) {
  case sys::fs::file_type::directory_file:
    return "a directory";
  case sys::fs::file_type::fifo_file:
    return "a pipe";
  case sys::fs::file_type::socket_file:
    return "a socket";
  case sys::fs::file_type::block_file:
  case sys::fs::file_type::character_file:
    return "a device";
  default:
    return "something else";
  }
}

static Expected<std::unique_ptr<MemoryBuffer>>
open(StringRef path, uint64_t maxBytes, bool nullTerminated) {
  // Asked before it is opened, since opening a pipe waits.
  sys::fs::file_status status;
  std::error_code code = sys::fs::status(path, status);
  if (code)
    return invalid(path, "cannot be read: " + code.message());
  if (!sys::fs::is_regular_file(status))
    return invalid(path, "expected a regular file, but got " +
                             kindOf(status.type()));
  if (status.getSize() > maxBytes)
    return invalid(path, "expected a text of at most " + Twine(maxBytes) +
                             " bytes, but got " + Twine(status.getSize()));
  auto buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, nullTerminated);
  if (!buffer)
    return invalid(path, "cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

Expected<std::unique_ptr<MemoryBuffer>> mapFile(StringRef path) {
  return open(path, UINT64_MAX, /*nullTerminated=*/false);
}

Expected<std::unique_ptr<MemoryBuffer>> readText(StringRef path) {
  return open(path, maxTextBytes, /*nullTerminated=*/true);
}

// LLVM's parser recurses, so that its stack must be guarded here.
static constexpr size_t maxNesting = 64;

// The string that starts at text[begin] == '"', quotes included; to the end of
// the text where it isn't closed.
static StringRef quotedAt(StringRef text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size() && text[end] != '"')
    end += text[end] == '\\' ? 2 : 1;
  return text.slice(begin, end + 1);
}

// A key as the parser will see it, escapes resolved.
static std::string keyOf(StringRef quoted) {
  StringRef raw = quoted.drop_front().drop_back();
  if (!raw.contains('\\'))
    return raw.str();
  Expected<json::Value> value = json::parse(quoted);
  if (value)
    return value->getAsString()->str();
  consumeError(value.takeError());
  return raw.str();
}

// What the parser lets pass or dies of: deep nesting, and keys given twice.
static Error checkText(StringRef file, StringRef text) {
  std::vector<StringSet<>> open; // the keys of each open object or array
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '{' || c == '[') {
      open.emplace_back();
      if (open.size() > maxNesting)
        return invalid(file, "expected JSON nested at most " +
                                 Twine(maxNesting) + " deep");
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == '"') {
      StringRef quoted = quotedAt(text, i);
      i += quoted.size() - 1;
      bool isKey = text.drop_front(i + 1).ltrim(" \t\r\n").starts_with(":");
      if (!isKey || open.empty())
        continue;
      std::string key = keyOf(quoted);
      if (!open.back().insert(key).second)
        return invalid(file, key + ": expected once, but got it twice");
    }
  }
  return Error::success();
}

Expected<json::Object> parseJSON(StringRef file, StringRef text) {
  if (Error error = checkText(file, text))
    return std::move(error);
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return invalid(file, "expected JSON, but got " +
                             toString(value.takeError()));
  json::Object *object = value->getAsObject();
  if (!object)
    return invalid(file, "expected a JSON object, but got " + describe(*value));
  return std::move(*object);
}

std::string describe(const json::Value &value) {
  std::string text = formatv("{0}", value).str();
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

Expected<json::Object> readJSON(StringRef path) {
  auto buffer = readText(path);
  if (!buffer)
    return buffer.takeError();
  return parseJSON(path, (*buffer)->getBuffer());
}

} // namespace kvc
