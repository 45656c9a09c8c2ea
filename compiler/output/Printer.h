// Prints a module for people to read: `--emit=kvc` and `--emit=fused`.
#ifndef KVC_COMPILER_OUTPUT_PRINTER_H
#define KVC_COMPILER_OUTPUT_PRINTER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace kvc {

// Prints `module`, each op of the dialect with a comment that says what its
// axes are. The text parses as IR.
void printAnnotated(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_PRINTER_H
