//===- GgufMetadata.h - the key-value part of a GGUF file -------*- C++ -*-===//
#ifndef KVC_TOKENIZER_GGUFMETADATA_H
#define KVC_TOKENIZER_GGUFMETADATA_H

#include "MappedFile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvc::tokenizer {

/// The metadata of a GGUF file of version 2 or 3 (the format's description:
/// ggml's docs/gguf.md); tensors are not looked at. Strings refer to the file's
/// bytes, which this object holds. Readers whose key is absent leave `out`
/// alone; those whose value has another type fail, naming file and key.
class GgufMetadata {
public:
  kvc_status open(const std::string &path);

  bool has(std::string_view key) const { return values.count(key) != 0; }

  kvc_status read(std::string_view key, std::string_view &out) const;
  kvc_status read(std::string_view key, bool &out) const;
  kvc_status read(std::string_view key, std::optional<bool> &out) const;
  kvc_status read(std::string_view key, int64_t &out) const; // any integer
  kvc_status read(std::string_view key,
                  std::vector<std::string_view> &out) const;
  kvc_status read(std::string_view key, std::vector<float> &out) const;
  kvc_status read(std::string_view key, std::vector<int32_t> &out) const;

  /// File and key, as messages begin.
  std::string where(std::string_view key) const;

  /// By the number that stands in the file.
  // clang-format off
  enum Type : uint32_t {
    U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64
  };
  // clang-format on

private:
  struct Value {
    Type type = U8;
    Type elementType = U8;  ///< of an array
    uint64_t count = 0;     ///< of an array
    std::string_view bytes; ///< a string's own, otherwise the encoded ones
  };
  class Cursor;

  static kvc_status readType(Cursor &cursor, Type &type);
  kvc_status readValue(Cursor &cursor, Value &value) const;
  kvc_status wrongType(std::string_view key, const char *expected,
                       const Value &value) const;
  const Value *find(std::string_view key) const;
  template <typename Element>
  kvc_status readNumbers(std::string_view key, Type type, const char *expected,
                         std::vector<Element> &out) const;

  std::string path;
  MappedFile file;
  std::unordered_map<std::string_view, Value> values;
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_GGUFMETADATA_H
