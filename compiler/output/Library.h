// Writes what an application links: lib<name>.a, lib<name>.so, <name>.h.
#ifndef KVC_COMPILER_OUTPUT_LIBRARY_H
#define KVC_COMPILER_OUTPUT_LIBRARY_H

#include "compiler/cpu/Target.h"
#include "compiler/output/WeightPacker.h"
#include "dialect/KVC.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"

namespace kvc {

// The code of one CPU level.
struct LevelCode {
  TargetDescription target;
  std::string entry; // symbol of the forward function
  llvm::SmallVector<char, 0> object;
};

// The code of one device: kernels, numbered in this order, and what the host does.
struct DeviceCode {
  std::string level, ptx;
  std::vector<std::string> kernels;
  int64_t workspaceBytes = 0;
  std::string entry; // symbol of the host's forward function
  llvm::SmallVector<char, 0> object;
};

// What a library says of itself: the fields of kvc_library (abi.h).
struct LibraryDescription {
  std::string name;
  CacheType cache;
  bool exact = true; // it keeps every position that attention sees
  mlir::Type arithmetic;
  bool isTiles = false; // the class of numerics; else fma
  int64_t vocab = 0, width = 0, heads = 0;
  int64_t maxTokens = 0, workspaceBytes = 0;
  PackedWeights weights;

  // The beginning of the identity, in hexadecimal digits: tells models of one
  // name from each other, in symbols and SONAMEs.
  std::string tag() const;
};

// Names of the files of the model `name`, but for those of its tokenizer and the
// link lib<name>.so.<identity>.
std::vector<std::string> libraryFiles(llvm::StringRef name);

// The library of the system that -l<name> means already, where there is one: a
// path.
std::optional<std::string> findSystemLibrary(llvm::StringRef name);

// Writes the three files into `directory`, and a link to lib<name>.so by its
// SONAME, lib<name>.so.<identity>: two models of one name have two. The shared
// library needs the system's C compiler driver (`cc`) to link; without one it's
// an error, and so is code that calls what no library has.
llvm::Error writeLibrary(llvm::StringRef directory,
                         const LibraryDescription &description,
                         llvm::ArrayRef<LevelCode> levels,
                         llvm::ArrayRef<DeviceCode> devices);

// A constant `kvc_library` (abi.h), its kernels, and the accessor
// `const kvc_library *<name>_library(void)`, as an LLVM module.
std::unique_ptr<llvm::Module>
buildDescriptor(llvm::LLVMContext &context,
                const LibraryDescription &description,
                llvm::ArrayRef<LevelCode> levels,
                llvm::ArrayRef<DeviceCode> devices);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_LIBRARY_H
