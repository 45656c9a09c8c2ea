// Reads a module from its text so that a reader finds it again in every later
// stage: values keep their names, and ops their line.
#ifndef KVC_COMPILER_MODULETEXT_H
#define KVC_COMPILER_MODULETEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llvm {
class SourceMgr;
}

namespace kvc {

// The module in the main file of `sources`; null after a diagnostic. An op that
// gives values, and a block's argument, have a NameLoc around their line.
mlir::OwningOpRef<mlir::ModuleOp> parseText(const llvm::SourceMgr &sources,
                                            mlir::MLIRContext *context);

// Where `op` stands in that text, also when it was inlined since.
mlir::Location textLocation(mlir::Operation *op);

// The name that `value` has there, or none.
llvm::StringRef textName(mlir::Value value);

} // namespace kvc

#endif // KVC_COMPILER_MODULETEXT_H
