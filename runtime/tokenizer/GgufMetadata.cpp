#include "GgufMetadata.h"

#include "Error.h"
#include "Utf8.h"

#include <cstring>
#include <iterator>

using namespace kvc::tokenizer;

/// Reads forward; once the bytes run out, everything is empty or zero.
class GgufMetadata::Cursor {
public:
  explicit Cursor(std::string_view bytes) : bytes(bytes) {}

  bool good() const { return !ended; }
  size_t offset() const { return at; }
  std::string_view since(size_t begin) const {
    return bytes.substr(begin, at - begin);
  }

  std::string_view take(uint64_t size) {
    if (ended || size > bytes.size() - at) {
      ended = true;
      return {};
    }
    std::string_view taken = bytes.substr(at, size);
    at += size;
    return taken;
  }
  template <typename Number> Number number() {
    Number value = 0;
    std::string_view taken = take(sizeof value);
    if (!ended)
      memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  std::string_view string() { return take(number<uint64_t>()); }

private:
  std::string_view bytes;
  size_t at = 0;
  bool ended = false;
};

// By the type's number: its name in messages, and bytes where it is a number.
static constexpr struct {
  const char *name, *plural;
  uint8_t bytes;
} types[] = {
    {"a uint8", "uint8", 1},     {"an int8", "int8", 1},
    {"a uint16", "uint16", 2},   {"an int16", "int16", 2},
    {"a uint32", "uint32", 4},   {"an int32", "int32", 4},
    {"a float32", "float32", 4}, {"a bool", "bool", 1},
    {"a string", "strings", 0},  {"an array", "arrays", 0},
    {"a uint64", "uint64", 8},   {"an int64", "int64", 8},
    {"a float64", "float64", 8}};
static_assert(std::size(types) == GgufMetadata::F64 + 1);

std::string GgufMetadata::where(std::string_view key) const {
  // A key is its own name but where it could not be printed.
  std::string printed = quotedText(key);
  return path + ": " + printed.substr(1, printed.size() - 2);
}

kvc_status GgufMetadata::readType(Cursor &cursor, Type &type) {
  uint32_t number = cursor.number<uint32_t>();
  if (number > F64)
    return fail(KVC_IO, "expected a type from 0 to %d, but got %u", F64,
                number);
  type = static_cast<Type>(number);
  return KVC_OK;
}

// Leaves `value` without bytes where the cursor ran out.
kvc_status GgufMetadata::readValue(Cursor &cursor, Value &value) const {
  KVC_TRY(readType(cursor, value.type));
  if (value.type == String) {
    value.bytes = cursor.string();
    return KVC_OK;
  }
  if (value.type != Array) {
    value.bytes = cursor.take(types[value.type].bytes);
    return KVC_OK;
  }
  KVC_TRY(readType(cursor, value.elementType));
  value.count = cursor.number<uint64_t>();
  size_t begin = cursor.offset();
  if (uint64_t size = types[value.elementType].bytes) {
    uint64_t most = UINT64_MAX / size;
    cursor.take(value.count > most ? UINT64_MAX : value.count * size);
  } else if (value.elementType == String) {
    for (uint64_t i = 0; i < value.count && cursor.good(); ++i)
      cursor.string();
  } else {
    return fail(KVC_IO, "expected an array of numbers or strings, but got one "
                        "of arrays");
  }
  value.bytes = cursor.since(begin);
  return KVC_OK;
}

kvc_status GgufMetadata::open(const std::string &newPath) {
  path = newPath;
  KVC_TRY(file.open(path));
  Cursor cursor(file.bytes());
  if (cursor.take(4) != "GGUF")
    return fail(KVC_IO, "%s: expected the file to begin with GGUF",
                path.c_str());
  uint32_t version = cursor.number<uint32_t>();
  if (cursor.good() && version != 2 && version != 3)
    return fail(KVC_INCOMPATIBLE, "%s: version: expected 2 or 3, but got %u",
                path.c_str(), version);
  cursor.number<uint64_t>(); // tensors
  uint64_t count = cursor.number<uint64_t>();
  for (uint64_t i = 0; i < count && cursor.good(); ++i) {
    std::string_view key = cursor.string();
    Value value;
    if (kvc_status status = readValue(cursor, value); status != KVC_OK) {
      std::string reason = lastError();
      return fail(status, "%s: %s", where(key).c_str(), reason.c_str());
    }
    if (!cursor.good())
      return fail(KVC_IO,
                  "%s: expected %llu metadata entries, but the file ends in "
                  "entry %llu (%s)",
                  path.c_str(), static_cast<unsigned long long>(count),
                  static_cast<unsigned long long>(i), quotedText(key).c_str());
    if (!values.emplace(key, value).second)
      return fail(KVC_IO, "%s: expected each key once, but it is repeated",
                  where(key).c_str());
  }
  return cursor.good() ? KVC_OK
                       : fail(KVC_IO,
                              "%s: expected a header of 24 bytes, but "
                              "the file has %zu",
                              path.c_str(), file.bytes().size());
}

const GgufMetadata::Value *GgufMetadata::find(std::string_view key) const {
  auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

kvc_status GgufMetadata::wrongType(std::string_view key, const char *expected,
                                   const Value &value) const {
  if (value.type == Array)
    return fail(KVC_IO, "%s: expected %s, but got an array of %s",
                where(key).c_str(), expected, types[value.elementType].plural);
  return fail(KVC_IO, "%s: expected %s, but got %s", where(key).c_str(),
              expected, types[value.type].name);
}

kvc_status GgufMetadata::read(std::string_view key,
                              std::string_view &out) const {
  const Value *value = find(key);
  if (!value)
    return KVC_OK;
  if (value->type != String)
    return wrongType(key, "a string", *value);
  out = value->bytes;
  return KVC_OK;
}

kvc_status GgufMetadata::read(std::string_view key, bool &out) const {
  const Value *value = find(key);
  if (!value)
    return KVC_OK;
  if (value->type != Bool)
    return wrongType(key, "a bool", *value);
  out = value->bytes[0] != 0;
  return KVC_OK;
}

kvc_status GgufMetadata::read(std::string_view key,
                              std::optional<bool> &out) const {
  if (!has(key))
    return KVC_OK;
  bool value = false;
  KVC_TRY(read(key, value));
  out = value;
  return KVC_OK;
}

template <typename Number> static Number decode(std::string_view bytes) {
  Number number;
  memcpy(&number, bytes.data(), sizeof number);
  return number;
}

kvc_status GgufMetadata::read(std::string_view key, int64_t &out) const {
  const Value *value = find(key);
  if (!value)
    return KVC_OK;
  std::string_view bytes = value->bytes;
  switch (value->type) {
  case U8:
    out = decode<uint8_t>(bytes);
    return KVC_OK;
  case I8:
    out = decode<int8_t>(bytes);
    return KVC_OK;
  case U16:
    out = decode<uint16_t>(bytes);
    return KVC_OK;
  case I16:
    out = decode<int16_t>(bytes);
    return KVC_OK;
  case U32:
    out = decode<uint32_t>(bytes);
    return KVC_OK;
  case I32:
    out = decode<int32_t>(bytes);
    return KVC_OK;
  case I64:
    out = decode<int64_t>(bytes);
    return KVC_OK;
  case U64:
    if (uint64_t number = decode<uint64_t>(bytes); number <= INT64_MAX) {
      out = static_cast<int64_t>(number);
      return KVC_OK;
    }
    return fail(KVC_IO, "%s: expected an integer below 2^63, but got more",
                where(key).c_str());
  default:
    return wrongType(key, "an integer", *value);
  }
}

kvc_status GgufMetadata::read(std::string_view key,
                              std::vector<std::string_view> &out) const {
  const Value *value = find(key);
  if (!value)
    return KVC_OK;
  if (value->type != Array || value->elementType != String)
    return wrongType(key, "an array of strings", *value);
  Cursor cursor(value->bytes);
  out.clear();
  for (uint64_t i = 0; i < value->count; ++i)
    out.push_back(cursor.string());
  return KVC_OK;
}

template <typename Element>
kvc_status GgufMetadata::readNumbers(std::string_view key, Type type,
                                     const char *expected,
                                     std::vector<Element> &out) const {
  const Value *value = find(key);
  if (!value)
    return KVC_OK;
  if (value->type != Array || value->elementType != type)
    return wrongType(key, expected, *value);
  out.resize(value->count);
  if (value->count != 0)
    memcpy(out.data(), value->bytes.data(), value->bytes.size());
  return KVC_OK;
}

kvc_status GgufMetadata::read(std::string_view key,
                              std::vector<float> &out) const {
  return readNumbers(key, F32, "an array of float32", out);
}

kvc_status GgufMetadata::read(std::string_view key,
                              std::vector<int32_t> &out) const {
  return readNumbers(key, I32, "an array of int32", out);
}
