#include "metadata.h"

#include <string.h>

namespace kvc {
namespace {

// Walks JSON as far as this header needs it: objects, strings, and skipping
// over whatever stands between. `expected` is NULL while all is well.
struct Scanner {
  const char *begin, *at, *end;
  const char *expected;

  bool failed(const char *what) {
    if (!expected)
      expected = what;
    return false;
  }

  void skipBlanks() {
    while (at != end &&
           (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
      ++at;
  }

  // Takes `c` when it comes next.
  bool take(char c) {
    skipBlanks();
    if (at == end || *at != c)
      return false;
    ++at;
    return true;
  }

  // A string; its text without the quotes, escapes left as they are.
  bool string(const char **text, int64_t *length) {
    if (!take('"'))
      return failed("a string");
    *text = at;
    while (at != end && *at != '"')
      at += *at == '\\' && end - at > 1 ? 2 : 1;
    if (at == end)
      return failed("the end of a string");
    *length = at++ - *text;
    return true;
  }

  // Any value. Objects and arrays are skipped by counting brackets.
  bool skipValue() {
    int64_t depth = 0;
    do {
      skipBlanks();
      if (at == end)
        return failed("a value");
      const char *text;
      int64_t length;
      switch (*at) {
      case '"':
        if (!string(&text, &length))
          return false;
        break;
      case '{':
      case '[':
        ++depth, ++at;
        break;
      case '}':
      case ']':
        if (depth-- == 0)
          return failed("a value");
        ++at;
        break;
      case ',':
      case ':':
        if (depth == 0)
          return failed("a value");
        ++at;
        break;
      default: // a number or a word, which no control character is part of
        if (uint8_t(*at) < ' ')
          return failed("a value");
        while (at != end && uint8_t(*at) > ' ' && !strchr(",:]}[{\"", *at))
          ++at;
      }
    } while (depth > 0);
    return true;
  }

  // An object; calls member(name, length), which must take the value.
  template <typename Member> bool object(Member member) {
    if (!take('{'))
      return failed("an object");
    if (take('}'))
      return true;
    do {
      const char *name;
      int64_t length;
      if (!string(&name, &length))
        return false;
      if (!take(':'))
        return failed("':' after a name");
      if (!member(name, length))
        return false;
    } while (take(','));
    return take('}') || failed("',' or '}' after a member");
  }
};

bool equals(const char *text, int64_t length, const char *name) {
  return size_t(length) == strlen(name) && memcmp(text, name, length) == 0;
}

} // namespace

const char *readMetadata(const char *header, int64_t bytes,
                         MetadataField *fields, int fieldCount, int64_t *at) {
  Scanner scanner = {header, header, header + bytes, nullptr};

  auto metadataMember = [&](const char *name, int64_t length) {
    const char *text;
    int64_t textLength;
    if (!scanner.string(&text, &textLength))
      return false;
    for (int i = 0; i < fieldCount; ++i)
      if (equals(name, length, fields[i].name))
        fields[i].text = text, fields[i].length = textLength;
    return true;
  };
  auto headerMember = [&](const char *name, int64_t length) {
    return equals(name, length, "__metadata__") ? scanner.object(metadataMember)
                                                : scanner.skipValue();
  };
  if (scanner.object(headerMember)) {
    scanner.skipBlanks();
    if (scanner.at != scanner.end)
      scanner.failed("nothing but blanks after the object");
  }
  *at = scanner.at - scanner.begin;
  return scanner.expected;
}

} // namespace kvc
