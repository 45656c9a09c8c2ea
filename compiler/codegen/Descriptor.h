// The descriptor of a generated library as an LLVM module.
#ifndef KVC_COMPILER_CODEGEN_DESCRIPTOR_H
#define KVC_COMPILER_CODEGEN_DESCRIPTOR_H

#include "compiler/codegen/Library.h"
#include "compiler/codegen/Version.h"

namespace kvc {

// A constant `kvc_library` (abi.h), its kernels, and the accessor
// `const kvc_library *<name>_library(void)`.
std::unique_ptr<llvm::Module>
buildDescriptor(llvm::LLVMContext &context,
                const LibraryDescription &description,
                llvm::ArrayRef<LevelCode> levels);

} // namespace kvc

#endif // KVC_COMPILER_CODEGEN_DESCRIPTOR_H
