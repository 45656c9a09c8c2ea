#include "Json.h"

#include "Error.h"
#include "MappedFile.h"
#include "Utf8.h"

// The parser reports errors through its handler; this library has no
// exceptions.
#define JSON_NOEXCEPTION 1
#include <nlohmann/json.hpp>

#include <unordered_set>

using namespace kvc::tokenizer;

namespace {

/// Builds the tree from the parser's events.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit Builder(JsonValue &root) : root(root) {}

  // Deeper than any file of this kind, shallow enough to be walked recursively.
  static constexpr size_t maxDepth = 64;

  size_t errorOffset = 0;
  bool tooDeep = false;
  std::string repeated; ///< the path of a key that its object has twice

  bool null() override { return add({}); }
  bool boolean(bool value) override {
    return add({JsonValue::Boolean, value, 0, {}, {}, {}});
  }
  bool number_integer(int64_t value) override {
    return add({JsonValue::Integer, value, 0, {}, {}, {}});
  }
  bool number_unsigned(uint64_t value) override {
    if (value > INT64_MAX)
      return number_float(static_cast<double>(value), {});
    return number_integer(static_cast<int64_t>(value));
  }
  bool number_float(double value, const string_t &) override {
    return add({JsonValue::Real, 0, value, {}, {}, {}});
  }
  bool string(string_t &value) override {
    return add({JsonValue::String, 0, 0, std::move(value), {}, {}});
  }
  bool binary(binary_t &) override { return false; }
  bool start_object(size_t) override { return open(JsonValue::Object); }
  bool start_array(size_t) override { return open(JsonValue::Array); }
  bool end_object() override { return checkKeys() && close(); }
  bool end_array() override { return close(); }
  bool key(string_t &key) override {
    path.back()->keys.push_back(std::move(key));
    return true;
  }
  bool parse_error(size_t position, const std::string &,
                   const nlohmann::json::exception &) override {
    errorOffset = position;
    return false;
  }

private:
  // An object's or array's items stay where they are while one of them is open:
  // nothing is added beside it until it closes.
  bool add(JsonValue value) {
    if (path.empty())
      root = std::move(value);
    else
      path.back()->items.push_back(std::move(value));
    return true;
  }
  bool open(JsonValue::Kind kind) {
    tooDeep = path.size() == maxDepth;
    if (tooDeep)
      return false;
    add({kind, 0, 0, {}, {}, {}});
    path.push_back(path.empty() ? &root : &path.back()->items.back());
    return true;
  }
  bool close() {
    path.pop_back();
    return true;
  }
  bool checkKeys() {
    std::unordered_set<std::string_view> keys;
    for (const std::string &key : path.back()->keys)
      if (!keys.insert(key).second) {
        for (size_t i = 0; i + 1 < path.size(); ++i)
          appendStep(repeated, *path[i]);
        repeated += repeated.empty() ? key : '.' + key;
        return false;
      }
    return true;
  }
  // The way to the item that is open.
  static void appendStep(std::string &text, const JsonValue &value) {
    if (value.kind == JsonValue::Array)
      text += '[' + std::to_string(value.items.size() - 1) + ']';
    else
      text += text.empty() ? value.keys.back() : '.' + value.keys.back();
  }

  JsonValue &root;
  std::vector<JsonValue *> path;
};

const JsonValue absent;

} // namespace

kvc_status kvc::tokenizer::readJson(const std::string &path, JsonValue &root) {
  MappedFile file;
  KVC_TRY(file.open(path));
  std::string_view bytes = file.bytes();
  Builder builder(root);
  if (nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &builder))
    return KVC_OK;
  if (builder.tooDeep)
    return fail(KVC_IO, "%s: expected values at most %zu deep, but got more",
                path.c_str(), Builder::maxDepth);
  if (!builder.repeated.empty())
    return fail(KVC_IO, "%s: %s: expected each key once, but it is repeated",
                path.c_str(), builder.repeated.c_str());
  return fail(KVC_IO,
              "%s: expected JSON, but it is malformed at byte %zu of %zu",
              path.c_str(), builder.errorOffset, bytes.size());
}

JsonField JsonField::operator[](const char *key) const {
  std::string inner = path.empty() ? key : path + '.' + key;
  if (value->kind == JsonValue::Object)
    for (size_t i = 0; i < value->keys.size(); ++i)
      if (value->keys[i] == key)
        return {file, std::move(inner), &value->items[i]};
  return {file, std::move(inner), &absent};
}

JsonField JsonField::operator[](size_t index) const {
  return {file, path + '[' + std::to_string(index) + ']', &value->items[index]};
}

std::string JsonField::where() const {
  return path.empty() ? file : file + ": " + path;
}

static std::string describe(const JsonValue &value) {
  switch (value.kind) {
  case JsonValue::Null:
    return "nothing";
  case JsonValue::Boolean:
    return value.number ? "true" : "false";
  case JsonValue::Integer:
    return std::to_string(value.number);
  case JsonValue::Real:
    return std::to_string(value.real);
  case JsonValue::String:
    return quotedText(value.string);
  case JsonValue::Array:
    return "an array";
  case JsonValue::Object:
    return "an object";
  }
  return {};
}

kvc_status JsonField::expected(const std::string &what,
                               kvc_status status) const {
  return fail(status, "%s: expected %s, but got %s", where().c_str(),
              what.c_str(), describe(*value).c_str());
}

kvc_status JsonField::isA(JsonValue::Kind kind) const {
  static constexpr const char *names[] = {
      "null",     "true or false", "an integer", "a number",
      "a string", "an array",      "an object"};
  static_assert(std::size(names) == JsonValue::Object + 1);
  return value->kind == kind ? KVC_OK : expected(names[kind]);
}

kvc_status JsonField::read(std::string &out) const {
  KVC_TRY(isA(JsonValue::String));
  out = value->string;
  return KVC_OK;
}

kvc_status JsonField::read(int64_t &out) const {
  KVC_TRY(isA(JsonValue::Integer));
  out = value->number;
  return KVC_OK;
}

kvc_status JsonField::readOptional(bool &out) const {
  if (isNull())
    return KVC_OK;
  KVC_TRY(isA(JsonValue::Boolean));
  out = value->number != 0;
  return KVC_OK;
}

kvc_status JsonField::readOptional(std::string &out) const {
  return isNull() ? KVC_OK : read(out);
}
