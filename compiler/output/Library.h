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

// What a library says of itself: the fields of kvc_library (abi.h).
struct LibraryDescription {
  std::string name;
  CacheType cache;
  mlir::Type arithmetic;
  int64_t vocab = 0, width = 0, heads = 0;
  int64_t maxTokens = 0, workspaceBytes = 0;
  PackedWeights weights;
};

// Writes the three files into `directory`. The shared library needs the
// system's C compiler driver (`cc`) to link; without one it's an error.
llvm::Error writeLibrary(llvm::StringRef directory,
                         const LibraryDescription &description,
                         llvm::ArrayRef<LevelCode> levels);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_LIBRARY_H
