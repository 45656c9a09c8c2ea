// Prints a module for people to read: every `--emit` that is MLIR.
#ifndef KVC_COMPILER_OUTPUT_PRINTER_H
#define KVC_COMPILER_OUTPUT_PRINTER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace kvc {

// Prints `module` with the names that its values have in the model's text, and
// comments that say what a reader of the line would ask. The text parses as IR.
void printAnnotated(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_PRINTER_H
