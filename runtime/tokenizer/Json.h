//===- Json.h - JSON files, read with the path of each field ----*- C++ -*-===//
#ifndef KVC_TOKENIZER_JSON_H
#define KVC_TOKENIZER_JSON_H

#include "kvc/kvc.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvc::tokenizer {

struct JsonValue {
  enum Kind { Null, Boolean, Integer, Real, String, Array, Object };
  Kind kind = Null;
  int64_t number = 0; ///< of a boolean or an integer
  double real = 0;
  std::string string;
  std::vector<std::string> keys; ///< of an object, in the file's order
  std::vector<JsonValue> items;  ///< of an array or, beside `keys`, an object
};

/// Reads a file. Errors name the file and the byte.
kvc_status readJson(const std::string &path, JsonValue &root);

/// A value and where it stands, for reading with messages like
/// `model/tokenizer.json: model.type: expected "BPE", but got "Unigram"`. What
/// is absent is null.
class JsonField {
public:
  JsonField(const std::string &file, const JsonValue &root)
      : file(file), value(&root) {}

  JsonField operator[](const char *key) const;
  JsonField operator[](size_t index) const; ///< below size()

  const JsonValue &get() const { return *value; }
  bool isNull() const { return value->kind == JsonValue::Null; }
  size_t size() const { return value->items.size(); }

  /// The error that `what` was expected here.
  kvc_status expected(const std::string &what,
                      kvc_status status = KVC_IO) const;

  // These fail where the value has another type.
  kvc_status isA(JsonValue::Kind kind) const;
  kvc_status read(std::string &out) const;
  kvc_status read(int64_t &out) const;
  /// Leaves `out` alone where the value is absent.
  kvc_status readOptional(bool &out) const;
  kvc_status readOptional(std::string &out) const;

  /// File and path, as messages begin.
  std::string where() const;

private:
  JsonField(const std::string &file, std::string path, const JsonValue *value)
      : file(file), path(std::move(path)), value(value) {}

  const std::string &file;
  std::string path;
  const JsonValue *value;
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_JSON_H
