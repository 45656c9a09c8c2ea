// The safetensors format: u64 length of the header, the header (JSON), data.
// The header maps each tensor's name to {"dtype", "shape", "data_offsets":
// [begin, end]}, offsets being relative to the data, which the tensors cover
// without gap or overlap. "__metadata__" maps strings to strings.
#include "compiler/frontend/Files.h"
#include "compiler/frontend/Fields.h"
#include "compiler/frontend/TensorFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace llvm;

namespace kvc {

// The format has no blocks.
static const Storage *storageOf(StringRef dtype) {
  const Storage *storage = Storage::namedInFile(dtype);
  return storage && !storage->quants ? storage : nullptr;
}

// Bytes of an element of any type that the format knows, 0 for others.
static int64_t elementBytes(StringRef dtype) {
  if (const Storage *storage = storageOf(dtype))
    return storage->bytes;
  return StringSwitch<int64_t>(dtype)
      .Cases({"I64", "U64", "C64"}, 8)
      .Cases({"I32", "U32"}, 4)
      .Cases({"I16", "U16"}, 2)
      .Cases({"BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0"}, 1)
      .Default(0);
}

// A list of whole numbers from 0.
static std::vector<int64_t> wholeNumbers(Fields &fields, StringRef key) {
  std::vector<int64_t> numbers;
  const json::Array *array = fields.any(key).getAsArray();
  if (array)
    for (const json::Value &value : *array)
      if (std::optional<int64_t> number = value.getAsInteger())
        numbers.push_back(*number);
  if (!array || numbers.size() != array->size() ||
      any_of(numbers, [](int64_t number) { return number < 0; }))
    fields.expected(key, "a list of whole numbers");
  return numbers;
}

// Reads one entry of the header into `tensor`.
static void readEntry(Fields &entry, StringRef data, Tensor &tensor) {
  tensor.typeName = entry.text("dtype");
  tensor.storage = storageOf(tensor.typeName);
  tensor.shape = wholeNumbers(entry, "shape");
  std::vector<int64_t> offsets = wholeNumbers(entry, "data_offsets");
  entry.finish();
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    return entry.expected("data_offsets", "a begin and an end after it");
  if (uint64_t(offsets[1]) > data.size())
    return entry.fail("data_offsets",
                      "expected the end to be at most " + Twine(data.size()) +
                          " (the file's data), but got " + Twine(offsets[1]));
  tensor.data = data.data() + offsets[0];
  tensor.bytes = offsets[1] - offsets[0];

  int64_t unit = elementBytes(tensor.typeName);
  std::optional<int64_t> bytes = elementCount(tensor.shape);
  if (bytes && MulOverflow(*bytes, unit, *bytes))
    bytes = std::nullopt;
  if (!bytes)
    entry.fail("shape", "expected at most 2^63 bytes, but got " +
                            printShape(tensor.shape));
  else if (unit != 0 && uint64_t(*bytes) != tensor.bytes)
    entry.fail("data_offsets", "expected " + Twine(*bytes) + " bytes (" +
                                   tensor.typeName + " " +
                                   printShape(tensor.shape) + "), but got " +
                                   Twine(tensor.bytes));
}

// The tensors must cover the data, each byte once.
static Error checkCover(StringRef path, StringRef data, const TensorFile &file,
                        std::vector<StringRef> names) {
  llvm::sort(names, [&](StringRef a, StringRef b) {
    const Tensor *x = file.find(a), *y = file.find(b);
    return std::make_tuple(x->data, x->bytes, a) <
           std::make_tuple(y->data, y->bytes, b);
  });
  const char *end = data.begin();
  for (StringRef name : names) {
    const Tensor *tensor = file.find(name);
    if (tensor->data != end)
      return invalid(path, name + ".data_offsets: expected to begin at " +
                               Twine(end - data.begin()) +
                               " (where the tensor before it ends), but got " +
                               Twine(tensor->data - data.begin()));
    end += tensor->bytes;
  }
  if (end != data.end())
    return invalid(path, "expected " + Twine(end - data.begin()) +
                             " bytes of data (where the last tensor ends), "
                             "but got " + Twine(data.size()));
  return Error::success();
}

// Adds the tensors of one file to `file`.
static Error readFile(StringRef path, TensorFile &file) {
  auto mapping = mapFile(path);
  if (!mapping)
    return mapping.takeError();
  StringRef content = (*mapping)->getBuffer();
  if (content.size() < 8)
    return invalid(path, "expected a safetensors file, but it has only " +
                             Twine(content.size()) + " bytes");
  uint64_t headerSize = support::endian::read64le(content.data());
  content = content.drop_front(8);
  uint64_t follows = content.size();
  if (headerSize > std::min(follows, maxTextBytes))
    return invalid(path, "header length: expected at most " +
                             Twine(std::min(follows, maxTextBytes)) +
                             (follows < maxTextBytes
                                  ? " (what follows in the file)"
                                  : " (what the format allows)") +
                             ", but got " + Twine(headerSize));
  StringRef data = content.drop_front(headerSize);
  Expected<json::Object> header =
      parseJSON(path, content.take_front(headerSize));
  if (!header)
    return header.takeError();

  std::vector<StringRef> names;
  for (const auto &[key, value] : *header) {
    if (key == "__metadata__")
      continue;
    const json::Object *object = value.getAsObject();
    if (!object)
      return invalid(path, key.str() + ": expected an object, but got " +
                               describe(value));
    Fields entry(path, *object, key.str() + ".");
    Tensor tensor;
    readEntry(entry, data, tensor);
    if (Error error = entry.takeError())
      return error;
    if (!file.add(key, std::move(tensor)))
      return invalid(path, key.str() + ": expected in one file, but another "
                                       "of the index has it too");
    names.push_back(key);
  }
  if (Error error = checkCover(path, data, file, std::move(names)))
    return error;
  file.keep(std::move(*mapping));
  return Error::success();
}

Expected<std::unique_ptr<TensorFile>> openSafetensors(StringRef path) {
  auto file = std::make_unique<TensorFile>(path);
  if (Error error = readFile(path, *file))
    return std::move(error);
  return file;
}

Expected<std::unique_ptr<TensorFile>> openSafetensorsIndex(StringRef path) {
  Expected<json::Object> index = readJSON(path);
  if (!index)
    return index.takeError();
  const json::Object *map = index->getObject("weight_map");
  if (!map)
    return invalid(path, "weight_map: expected an object that names a file for "
                         "each tensor");

  auto file = std::make_unique<TensorFile>(path);
  std::set<std::string> shards;
  for (const auto &[tensor, value] : *map) {
    StringRef name = value.getAsString().value_or("");
    if (name.empty() || name != sys::path::filename(name))
      return invalid(path, "weight_map." + tensor.str() +
                               ": expected the name of a file beside it");
    shards.insert(name.str());
  }
  for (const std::string &shard : shards) {
    SmallString<128> shardPath = sys::path::parent_path(path);
    sys::path::append(shardPath, shard);
    if (Error error = readFile(shardPath, *file))
      return std::move(error);
  }
  for (const auto &[tensor, value] : *map)
    if (!file->has(tensor))
      return invalid(path, "weight_map." + tensor.str() +
                               ": expected in one of the files, but it is "
                               "in none");
  return file;
}

} // namespace kvc
