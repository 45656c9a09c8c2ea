#include "compiler/ReadMLIR.h"
#include "compiler/frontend/FileType.h"
#include "compiler/frontend/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include <vector>

using namespace kvc;

// MLIR's parser, and who follows what it has parsed, recurses. Programs nest some
// twenty deep; this many fit any stack.
static constexpr unsigned maxNesting = 256;

namespace {

// How deep a text nests: in brackets; in operators of an affine expression, which
// lean to one side; and through aliases, which stand for something nested.
class Nesting {
public:
  explicit Nesting(llvm::StringRef text) : text(text) {}

  // Whether the whole text stays within the limit.
  bool isBounded() {
    while (at < text.size() && deepest <= maxNesting)
      step();
    return deepest <= maxNesting;
  }
  unsigned line() const { return 1 + text.take_front(at).count('\n'); }

private:
  struct Bracket {
    char open;
    unsigned operators; // since the last comma
  };

  void step() {
    char c = text[at], next = at + 1 < text.size() ? text[at + 1] : '\0';
    llvm::StringRef rest = text.substr(at++);
    if (rest.starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"') {
      while (at < text.size() && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
      ++at;
    } else if (c == '\n') {
      if (open.empty() && defines && hasValue)
        defines = nullptr;
      return;
    } else if (rest.starts_with("->") || rest.starts_with(">=") ||
               rest.starts_with("<=")) {
      ++at;
    } else if (llvm::StringRef("([{<").contains(c)) {
      open.push_back({c, 0});
      reach(++depth);
    } else if (llvm::StringRef(")]}>").contains(c)) {
      if (!open.empty()) {
        depth -= 1 + open.back().operators;
        open.pop_back();
      }
    } else if (c == ',' && !open.empty()) {
      depth -= open.back().operators;
      open.back().operators = 0;
    } else if (llvm::StringRef("+-*").contains(c)) {
      operate();
    } else if ((c == '#' || c == '!') && isLetter(next)) {
      at += word(rest.drop_front()).size();
      return alias(rest.take_front(1 + word(rest.drop_front()).size()));
    } else if (isLetter(c)) {
      llvm::StringRef name = word(rest);
      at += name.size() - 1;
      if (name == "mod" || name == "floordiv" || name == "ceildiv")
        operate();
    }
    hasValue |= !llvm::isSpace(c);
  }

  void operate() {
    if (open.empty() || open.back().open == '{')
      return;
    ++open.back().operators;
    reach(++depth);
  }

  void alias(llvm::StringRef name) {
    llvm::StringRef after = text.substr(at).ltrim();
    if (open.empty() && after.consume_front("=") && !after.starts_with("=")) {
      at = text.size() - after.size();
      defines = &aliases[name];
      hasValue = false;
      return;
    }
    hasValue = true;
    reach(depth + aliases.lookup(name));
  }

  void reach(unsigned nesting) {
    deepest = std::max(deepest, nesting);
    if (defines)
      *defines = std::max(*defines, nesting);
  }

  static bool isLetter(char c) { return llvm::isAlpha(c) || c == '_'; }
  static llvm::StringRef word(llvm::StringRef text) {
    return text.take_while([](char c) {
      return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
    });
  }

  llvm::StringRef text;
  size_t at = 0;
  std::vector<Bracket> open;
  unsigned depth = 0, deepest = 0;
  llvm::StringMap<unsigned> aliases; // how deep each is by itself
  unsigned *defines = nullptr;       // the alias whose value is being read
  bool hasValue = false;             // and whether any of it has been
};

} // namespace

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
kvc::readMLIR(llvm::StringRef path) {
  llvm::StringRef name = path;
  std::unique_ptr<llvm::MemoryBuffer> text;
  if (path == "-") {
    name = "standard input";
    // It may not end.
    std::string bytes;
    char chunk[1 << 16];
    size_t count = 1;
    while (count != 0 && bytes.size() <= maxTextBytes) {
      auto read = llvm::sys::fs::readNativeFile(llvm::sys::fs::getStdinHandle(),
                                                chunk);
      if (!read)
        return invalid(name, "cannot be read: " +
                                 llvm::toString(read.takeError()));
      count = *read;
      bytes.append(chunk, count);
    }
    if (bytes.size() > maxTextBytes)
      return invalid(name, "expected a text of at most " +
                               llvm::Twine(maxTextBytes) + " bytes, but got more");
    text = llvm::MemoryBuffer::getMemBufferCopy(bytes, "<stdin>");
  } else {
    auto buffer = readText(path);
    if (!buffer)
      return buffer.takeError();
    text = std::move(*buffer);
  }
  FileType type = fileType(text->getBuffer());
  if (type.kind != FileKind::MLIR)
    return invalid(name, "expected MLIR, but got " + type.name);
  Nesting nesting(text->getBuffer());
  if (!nesting.isBounded())
    return invalid(name, "expected MLIR nested at most " +
                             llvm::Twine(maxNesting) + " deep, but line " +
                             llvm::Twine(nesting.line()) + " is deeper");
  return text;
}
