// The command line that kvc-opt and the tests' kvc-test-opt share: it compiles a
// model, or runs passes on MLIR as any mlir-opt does.
#ifndef KVC_TOOLS_KVC_OPT_DRIVER_H
#define KVC_TOOLS_KVC_OPT_DRIVER_H

#include "compiler/Compile.h"
#include "llvm/Support/CommandLine.h"

namespace kvc {

// Options of this category are for compiling; one of them makes a command line
// a compilation.
extern llvm::cl::OptionCategory compilationOptions;

// `registry` and MLIR's pass registry may hold more than kvc's own already.
// `adjust` has the last word on the options of a compilation.
int runDriver(int argc, char **argv, mlir::DialectRegistry &registry,
              llvm::function_ref<llvm::Error(CompileOptions &)> adjust = {});

} // namespace kvc

#endif // KVC_TOOLS_KVC_OPT_DRIVER_H
