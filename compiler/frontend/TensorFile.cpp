#include "compiler/frontend/TensorFile.h"
#include "compiler/frontend/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace kvc {

std::optional<int64_t> elementCount(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || MulOverflow(count, extent, count))
      return std::nullopt;
  return count;
}

std::string printShape(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, extent] : enumerate(shape))
    text += (i ? ", " : "") + std::to_string(extent);
  return text + "]";
}

const Tensor *TensorFile::find(StringRef name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

std::vector<StringRef> TensorFile::names() const {
  std::vector<StringRef> names;
  for (const auto &entry : tensors)
    names.push_back(entry.first());
  llvm::sort(names);
  return names;
}

bool TensorFile::add(StringRef name, Tensor tensor) {
  return tensors.try_emplace(name, std::move(tensor)).second;
}

void TensorFile::keep(std::unique_ptr<MemoryBuffer> mapping) {
  mappings.push_back(std::move(mapping));
}

Expected<std::vector<int64_t>> TensorFile::shape(StringRef name) const {
  if (const Tensor *tensor = find(name))
    return tensor->shape;
  return invalid(path(), name + ": expected a tensor of this name, but the "
                                "file has none");
}

Error TensorFile::check(StringRef name, ArrayRef<int64_t> shape) const {
  Expected<std::vector<int64_t>> found = this->shape(name);
  if (!found)
    return found.takeError();
  if (ArrayRef<int64_t>(*found) != shape)
    return invalid(path(), name + ": expected shape " + printShape(shape) +
                               ", but got " + printShape(*found));
  const Tensor *tensor = find(name);
  if (!tensor->storage)
    return invalid(path(), name + ": expected an element type that kvc reads, "
                                  "but got " + tensor->typeName);
  return Error::success();
}

const Storage *TensorFile::storage(StringRef name) const {
  const Tensor *tensor = find(name);
  return tensor ? tensor->storage : nullptr;
}

Expected<const char *> TensorFile::bytes(StringRef name,
                                         ArrayRef<int64_t> shape, int64_t first,
                                         int64_t count) const {
  if (Error error = check(name, shape))
    return std::move(error);
  const Tensor *tensor = find(name);
  const Storage &storage = *tensor->storage;
  int64_t elements = *elementCount(shape);
  if (first < 0 || count < 0 || first > elements - count ||
      first % storage.elements != 0 || count % storage.elements != 0)
    return invalid(path(), name + ": expected a range of whole blocks of " +
                               Twine(storage.elements) + " inside " +
                               Twine(elements) + " elements, but got " +
                               Twine(count) + " from " + Twine(first));
  return tensor->data + storage.rowBytes(first);
}

Error TensorFile::read(StringRef name, ArrayRef<int64_t> shape, int64_t first,
                       int64_t count, double *out) const {
  auto data = bytes(name, shape, first, count);
  if (!data)
    return data.takeError();
  storage(name)->decode(*data, count, out);
  return Error::success();
}

} // namespace kvc
