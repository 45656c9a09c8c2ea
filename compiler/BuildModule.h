// From a ModelSpec to a module of the kvc dialect.
#ifndef KVC_COMPILER_BUILDMODULE_H
#define KVC_COMPILER_BUILDMODULE_H

#include "compiler/frontend/ModelSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kvc {

// What the command line says beyond the model.
struct BuildOptions {
  std::string weightType; // of matrices, a storage; "": as the file has them
  // "f32": exact; "" or "q8": rounded for blocks; "bf16": for them and for bf16.
  std::string activations;
  std::string numerics = "fma"; // or "tiles": the class of numerics
  std::string cacheType;  // f64, f32, f16, bf16; "": the arithmetic's type
  int64_t pagePositions = 0; // positions of a page; 0: contiguous
  // Layers with a window stand on a ring that takes slices of so many tokens; 0: as
  // the others do.
  int64_t ringSlice = 0;
  int64_t capacity = 0;   // positions of a sequence; 0: the model's context
};

// Builds `@forward` and one function for the kind of layer the model has. An
// error names the option that doesn't fit the model.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
buildModule(mlir::MLIRContext *context, const ModelSpec &spec,
            const BuildOptions &options);

} // namespace kvc

#endif // KVC_COMPILER_BUILDMODULE_H
