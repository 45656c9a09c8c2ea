// The GGUF container, versions 2 and 3, little-endian (GGUF specification,
// ggml, docs/gguf.md):
//
//   "GGUF", u32 version, u64 tensors, u64 pairs
//   pairs:   string key, u32 type, value
//   tensors: string name, u32 rank, u64 extents[rank] (innermost first),
//            u32 type, u64 offset in the data
//   padding to general.alignment (32 unless given), data
//
// A string is a u64 length and its bytes. An array is a u32 type, a u64 count
// and the elements.
#include "compiler/frontend/Files.h"
#include "compiler/frontend/TensorFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace llvm;

namespace kvc {
namespace {

// Value types of the metadata.
enum ValueType : uint32_t {
  U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64
};

// Tensor types by the number that the format gives them; empty where it gave
// one up.
constexpr StringLiteral tensorTypes[] = {
    "F32",     "F16",     "Q4_0",  "Q4_1",   "",       "",       "Q5_0",
    "Q5_1",    "Q8_0",    "Q8_1",  "Q2_K",   "Q3_K",   "Q4_K",   "Q5_K",
    "Q6_K",    "Q8_K",    "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",
    "IQ3_S",   "IQ2_S",   "IQ4_XS", "I8",    "I16",    "I32",    "I64",
    "F64",     "IQ1_M",   "BF16",  "",       "",       "",       "TQ1_0",
    "TQ2_0",   "",        "",      "",       "MXFP4"};

// Reads forward through the mapped file. Past the end it gives zeros, and
// remembers that it did.
class Cursor {
public:
  explicit Cursor(StringRef content) : content(content) {}

  template <typename T> T number() {
    T value{};
    if (StringRef bytes = take(sizeof value); !bytes.empty())
      std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  StringRef string() { return take(number<uint64_t>()); }
  StringRef take(uint64_t size) {
    if (size > content.size() - position) {
      truncated = true;
      return "";
    }
    position += size;
    return content.substr(position - size, size);
  }

  uint64_t position = 0;
  bool truncated = false;

private:
  StringRef content;
};

// What a JSON value may hold: text that isn't UTF-8 is mended.
std::string text(StringRef bytes) {
  return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes);
}

class Reader {
public:
  Reader(StringRef path, StringRef content, TensorFile &file,
         json::Object &metadata)
      : path(path), content(content), cursor(content), file(file),
        metadata(metadata) {}

  Error run();

  uint64_t pairsEnd = 0;     // where the metadata ends
  bool hasTokenizer = false; // whether it has "tokenizer." keys

private:
  Error readPairs(uint64_t count);
  Error readTensors(uint64_t count);
  Expected<json::Value> readValue(StringRef key, uint32_t type, bool keep);
  Expected<json::Value> readArray(StringRef key, bool keep);
  // Finds the bytes of each tensor in the data, which begins at `begin`.
  Error placeTensors(uint64_t begin);

  Error fail(const Twine &what) const { return invalid(path, what); }
  Error truncated() const {
    return fail("expected more after its " + Twine(content.size()) +
                " bytes: the file is truncated");
  }

  struct Entry {
    std::string name;
    Tensor tensor;
    uint64_t offset;
  };

  StringRef path;
  StringRef content;
  Cursor cursor;
  TensorFile &file;
  json::Object &metadata;
  uint64_t alignment = 32;
  std::vector<Entry> entries;
};

Error Reader::run() {
  if (cursor.take(4) != "GGUF")
    return fail("expected a GGUF file");
  uint32_t version = cursor.number<uint32_t>();
  if (version != 2 && version != 3)
    return fail("version: expected 2 or 3 (little-endian), but got " +
                Twine(version));
  uint64_t tensors = cursor.number<uint64_t>();
  uint64_t pairs = cursor.number<uint64_t>();
  if (Error error = readPairs(pairs))
    return error;
  pairsEnd = cursor.position;
  if (const json::Value *value = metadata.get("general.alignment")) {
    alignment = value->getAsUINT64().value_or(0);
    if (alignment == 0 || alignment % 8 != 0 || alignment > (1 << 20))
      return fail("general.alignment: expected a multiple of 8 up to 2^20, but "
                  "got " + describe(*value));
  }
  if (Error error = readTensors(tensors))
    return error;
  return placeTensors(alignTo(cursor.position, alignment));
}

Error Reader::readPairs(uint64_t count) {
  StringSet<> keys;
  for (; count > 0; --count) {
    StringRef key = cursor.string();
    uint32_t type = cursor.number<uint32_t>();
    if (cursor.truncated)
      return truncated();
    if (!keys.insert(key).second)
      return fail(text(key) + ": expected once, but got it twice");
    bool keep = !key.starts_with("tokenizer.");
    hasTokenizer |= !keep;
    Expected<json::Value> value = readValue(key, type, keep);
    if (!value)
      return value.takeError();
    if (cursor.truncated)
      return truncated();
    if (keep)
      metadata[text(key)] = std::move(*value);
  }
  return Error::success();
}

Expected<json::Value> Reader::readValue(StringRef key, uint32_t type,
                                        bool keep) {
  switch (type) {
  case U8:
    return cursor.number<uint8_t>();
  case I8:
    return cursor.number<int8_t>();
  case U16:
    return cursor.number<uint16_t>();
  case I16:
    return cursor.number<int16_t>();
  case U32:
    return cursor.number<uint32_t>();
  case I32:
    return cursor.number<int32_t>();
  case F32:
    return cursor.number<float>();
  case Bool:
    return cursor.number<uint8_t>() != 0;
  case String: {
    StringRef bytes = cursor.string();
    return keep ? json::Value(text(bytes)) : json::Value(nullptr);
  }
  case Array:
    return readArray(key, keep);
  case U64:
    return cursor.number<uint64_t>();
  case I64:
    return cursor.number<int64_t>();
  case F64:
    return cursor.number<double>();
  }
  return fail(text(key) + ": expected a value type from 0 to 12, but got " +
              Twine(type));
}

Expected<json::Value> Reader::readArray(StringRef key, bool keep) {
  uint32_t type = cursor.number<uint32_t>();
  uint64_t count = cursor.number<uint64_t>();
  if (type == Array)
    return fail(text(key) + ": expected an array of plain values, but got an "
                            "array of arrays");
  json::Array values; // the first few: enough to say what came
  for (; count > 0 && !cursor.truncated; --count) {
    Expected<json::Value> value = readValue(key, type, keep);
    if (!value)
      return value.takeError();
    if (keep && values.size() < 16)
      values.push_back(std::move(*value));
  }
  return values;
}

Error Reader::readTensors(uint64_t count) {
  for (; count > 0; --count) {
    Entry entry;
    entry.name = text(cursor.string());
    uint32_t rank = cursor.number<uint32_t>();
    if (cursor.truncated)
      return truncated();
    if (rank > 4)
      return fail(entry.name + ": expected at most 4 axes, but got " +
                  Twine(rank));
    Tensor &tensor = entry.tensor;
    for (uint32_t axis = 0; axis < rank; ++axis)
      tensor.shape.push_back(cursor.number<int64_t>());
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    uint32_t type = cursor.number<uint32_t>();
    entry.offset = cursor.number<uint64_t>();
    if (cursor.truncated)
      return truncated();

    bool known = type < std::size(tensorTypes) && !tensorTypes[type].empty();
    tensor.typeName = known ? tensorTypes[type].str()
                            : "a type that GGUF doesn't name (" +
                                  std::to_string(type) + ")";
    tensor.storage = Storage::namedInFile(tensor.typeName);
    entries.push_back(std::move(entry));
  }
  return Error::success();
}

Error Reader::placeTensors(uint64_t begin) {
  StringRef data = content.substr(std::min<uint64_t>(begin, content.size()));
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.offset, a.name) < std::tie(b.offset, b.name);
  });
  uint64_t end = 0; // of the tensors so far
  bool sized = true; // whether the last one's bytes are known
  for (Entry &entry : entries) {
    Tensor &tensor = entry.tensor;
    if (entry.offset % alignment != 0)
      return fail(entry.name + ": expected an offset that is a multiple of " +
                  Twine(alignment) + " (general.alignment), but got " +
                  Twine(entry.offset));
    if (tensor.storage) {
      const Storage &block = *tensor.storage;
      int64_t inner = tensor.shape.empty() ? 1 : tensor.shape.back();
      if (inner % block.elements != 0)
        return fail(entry.name + ": expected rows of a multiple of " +
                    Twine(block.elements) + " elements (" + tensor.typeName +
                    "), but got shape " + printShape(tensor.shape));
      std::optional<int64_t> bytes = elementCount(tensor.shape);
      if (!bytes || MulOverflow(*bytes / block.elements, block.bytes, *bytes))
        return fail(entry.name + ": expected at most 2^63 bytes, but got " +
                    "shape " + printShape(tensor.shape));
      tensor.bytes = *bytes;
    }
    if (entry.offset > data.size() || tensor.bytes > data.size() - entry.offset)
      return fail(entry.name + ": expected its " + Twine(tensor.bytes) +
                  " bytes at offset " + Twine(entry.offset) +
                  " to lie inside the file's data, which has " +
                  Twine(data.size()) + " bytes");
    // A hole behind a tensor of known size: its type or shape isn't the data's.
    uint64_t next = alignTo(end, alignment);
    if (entry.offset < next || (sized && entry.offset != next))
      return fail(entry.name + ": expected offset " + Twine(next) +
                  (sized ? "" : " or more") +
                  " (where the tensor before it ends), but got " +
                  Twine(entry.offset));
    tensor.data = data.data() + entry.offset;
    end = entry.offset + tensor.bytes;
    sized = tensor.storage != nullptr;
    if (!file.add(entry.name, std::move(tensor)))
      return fail(entry.name + ": expected once, but got it twice");
  }
  return Error::success();
}

} // namespace

Expected<std::unique_ptr<TensorFile>> openGGUF(StringRef path,
                                               json::Object *metadata) {
  auto mapping = mapFile(path);
  if (!mapping)
    return mapping.takeError();
  auto file = std::make_unique<TensorFile>(path);
  json::Object unused;
  if (Error error = Reader(path, (*mapping)->getBuffer(), *file,
                           metadata ? *metadata : unused)
                        .run())
    return std::move(error);
  file->keep(std::move(*mapping));
  return file;
}

Expected<std::string> readGGUFTokenizer(StringRef path) {
  auto mapping = mapFile(path);
  if (!mapping)
    return mapping.takeError();
  StringRef content = (*mapping)->getBuffer();
  TensorFile file(path);
  json::Object unused;
  Reader reader(path, content, file, unused);
  if (Error error = reader.run())
    return std::move(error);
  if (!reader.hasTokenizer)
    return "";
  std::string metadata = content.take_front(reader.pairsEnd).str();
  // The number of tensors stands behind the magic and the version.
  std::fill_n(metadata.begin() + 8, sizeof(uint64_t), '\0');
  return metadata;
}

} // namespace kvc
