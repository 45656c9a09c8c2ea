// TensorFile: the WeightFile of every format that is a table of named tensors
// in mapped memory. A format's reader checks its file and fills the table.
#ifndef KVC_COMPILER_FRONTEND_TENSORFILE_H
#define KVC_COMPILER_FRONTEND_TENSORFILE_H

#include "compiler/frontend/WeightFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <optional>

namespace kvc {

struct Tensor {
  const Storage *storage = nullptr; // null: a type that we don't read
  std::string typeName;             // as the format spells it
  std::vector<int64_t> shape;       // outermost axis first
  const char *data = nullptr;      // `bytes` of them lie inside a mapping
  uint64_t bytes = 0;
};

class TensorFile final : public WeightFile {
public:
  explicit TensorFile(llvm::StringRef path) : filePath(path) {}

  llvm::StringRef path() const override { return filePath; }
  llvm::Error check(llvm::StringRef name,
                    llvm::ArrayRef<int64_t> shape) const override;
  llvm::Expected<std::vector<int64_t>>
  shape(llvm::StringRef name) const override;
  const Storage *storage(llvm::StringRef name) const override;
  llvm::Expected<const char *> bytes(llvm::StringRef name,
                                     llvm::ArrayRef<int64_t> shape,
                                     int64_t first,
                                     int64_t count) const override;
  llvm::Error read(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                   int64_t first, int64_t count, double *out) const override;

  // Null where there is none.
  const Tensor *find(llvm::StringRef name) const;
  bool has(llvm::StringRef name) const { return find(name) != nullptr; }
  // All names, sorted.
  std::vector<llvm::StringRef> names() const;

  // False where the name is taken already.
  bool add(llvm::StringRef name, Tensor tensor);
  // Keeps a mapping for as long as this lives.
  void keep(std::unique_ptr<llvm::MemoryBuffer> mapping);

private:
  std::string filePath;
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> mappings;
  llvm::StringMap<Tensor> tensors;
};

// Elements of a tensor of this shape; nothing where the shape is negative or
// the product passes 64 bits.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape);

// "[3, 4]", for messages.
std::string printShape(llvm::ArrayRef<int64_t> shape);

// Opens a .safetensors file.
llvm::Expected<std::unique_ptr<TensorFile>>
openSafetensors(llvm::StringRef path);
// Opens the files that a model.safetensors.index.json names, as one.
llvm::Expected<std::unique_ptr<TensorFile>>
openSafetensorsIndex(llvm::StringRef path);
// Opens a .gguf file. Its metadata, if asked for, is all but the "tokenizer."
// keys; f32 values are widened.
llvm::Expected<std::unique_ptr<TensorFile>>
openGGUF(llvm::StringRef path, llvm::json::Object *metadata = nullptr);
// The bytes of a .gguf file with the metadata of the one at `path` and no
// tensors, for its tokenizer; empty where the metadata has none.
llvm::Expected<std::string> readGGUFTokenizer(llvm::StringRef path);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_TENSORFILE_H
