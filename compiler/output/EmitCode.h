// LLVM's optimisation and code generation.
#ifndef KVC_COMPILER_OUTPUT_EMITCODE_H
#define KVC_COMPILER_OUTPUT_EMITCODE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace kvc {

// Makes the module one of the machine, optimises it, and writes it as an object file or
// assembly.
llvm::Expected<llvm::SmallVector<char, 0>> emitCode(llvm::Module &module,
                                                    llvm::TargetMachine &machine,
                                                    llvm::CodeGenFileType type);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_EMITCODE_H
