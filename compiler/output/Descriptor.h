// The descriptor of a generated library as an LLVM module.
#ifndef KVC_COMPILER_OUTPUT_DESCRIPTOR_H
#define KVC_COMPILER_OUTPUT_DESCRIPTOR_H

#include "compiler/output/Library.h"
#include "compiler/output/Version.h"

namespace kvc {

// A constant `kvc_library` (abi.h), its kernels, and the accessor
// `const kvc_library *<name>_library(void)`.
std::unique_ptr<llvm::Module>
buildDescriptor(llvm::LLVMContext &context,
                const LibraryDescription &description,
                llvm::ArrayRef<LevelCode> levels);

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_DESCRIPTOR_H
