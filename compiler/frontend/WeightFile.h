// WeightFile: a memory-mapped file of named tensors, whatever its format, read
// as rows of numbers.
#ifndef KVC_COMPILER_FRONTEND_WEIGHTFILE_H
#define KVC_COMPILER_FRONTEND_WEIGHTFILE_H

#include "dialect/storage/Storage.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvc {

class WeightFile {
public:
  virtual ~WeightFile() = default;

  // The path it was opened by, for messages.
  virtual llvm::StringRef path() const = 0;

  // Fails unless the file holds `name` with exactly this shape (outermost axis
  // first, as safetensors prints it; GGUF's axes are reversed on reading), in a
  // type that can be read. An axis of 1 is not dropped.
  virtual llvm::Error check(llvm::StringRef name,
                            llvm::ArrayRef<int64_t> shape) const = 0;

  // The shape of `name`; an error where the file has no such tensor.
  virtual llvm::Expected<std::vector<int64_t>>
  shape(llvm::StringRef name) const = 0;

  // How the numbers of `name` stand; null where they stand nowhere (random
  // weights) or there is no such tensor.
  virtual const Storage *storage(llvm::StringRef name) const = 0;

  // Where `count` elements of the flattened (row-major) tensor `name` of `shape`,
  // from element `first`, stand in its storage, unaligned. Fails where `check`
  // does, where the range doesn't lie inside, or where it isn't made of whole
  // blocks.
  virtual llvm::Expected<const char *>
  bytes(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, int64_t first,
        int64_t count) const = 0;

  // The same elements as numbers, also where they stand nowhere.
  virtual llvm::Error read(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                           int64_t first, int64_t count, double *out) const = 0;
};

// Opens "random:<seed>", a .safetensors file or a .gguf file (told by content,
// not by name). The mapping stays valid for the object's life. A truncated,
// overlapping, misaligned or lying file is an error.
llvm::Expected<std::unique_ptr<WeightFile>> openWeights(llvm::StringRef path);

// Opens "random:<seed>". It has a tensor of any name and shape (rank 1 or 2).
llvm::Expected<std::unique_ptr<WeightFile>>
openRandomWeights(llvm::StringRef path);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_WEIGHTFILE_H
