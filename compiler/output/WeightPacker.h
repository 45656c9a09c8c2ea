// Writes the packed weight file of a model: a safetensors container whose data
// section is what generated code reads in place.
#ifndef KVC_COMPILER_OUTPUT_WEIGHTPACKER_H
#define KVC_COMPILER_OUTPUT_WEIGHTPACKER_H

#include "kvc/abi.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <array>

namespace kvc {

using Identity = std::array<uint8_t, KVC_IDENTITY_BYTES>;

struct PackedWeights {
  int64_t bytes = 0;   // of the data section
  int64_t padding = 0; // of these, bytes that hold no weight
  Identity identity;
  // Matrices that aren't as the file has them: "token_embd.weight from f64 to f32".
  std::vector<std::string> converted;
};

// Packs every `kvc.weight` of `module` (after kvc-assign-packing), reading the
// file that its attribute `kvc.weights` names, into `path`. `architecture` is
// the canonical text of the model; the identity is BLAKE3 over it, the
// versions of compiler, ABI and numerics (see Version.h), rotary frequencies and
// the data section. At most one tensor is held in memory. A number that isn't
// finite, unless `allowNonfinite`, or that its packed type can't hold is an error
// that names the tensor and the index in it.
llvm::Expected<PackedWeights> packWeights(mlir::ModuleOp module,
                                          llvm::StringRef architecture,
                                          int numericsVersion,
                                          bool allowNonfinite,
                                          llvm::StringRef path);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_WEIGHTPACKER_H
