// From the LLVM dialect to machine code.
#ifndef KVC_COMPILER_CPU_OBJECT_H
#define KVC_COMPILER_CPU_OBJECT_H

#include "compiler/cpu/Target.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "mlir/IR/BuiltinOps.h"

namespace kvc {

// Translates a module of the LLVM dialect and renames its entry
// (`_mlir_ciface_forward`) to `entry`; everything else becomes internal. Null
// after a diagnostic.
std::unique_ptr<llvm::Module> translateForward(mlir::ModuleOp module,
                                               llvm::LLVMContext &context,
                                               llvm::StringRef entry);

// Optimises `module` for `target` and writes an object file or assembly.
llvm::Expected<llvm::SmallVector<char, 0>>
generateCode(llvm::Module &module, const TargetDescription &target,
             bool assembly);

} // namespace kvc

#endif // KVC_COMPILER_CPU_OBJECT_H
