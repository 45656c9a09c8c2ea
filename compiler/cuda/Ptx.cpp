#include "compiler/cuda/Ptx.h"
#include "compiler/output/EmitCode.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace kvc;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

// The first line of `ptx` that isn't the program's arithmetic; or none. An operation
// without a rounding may be fused with another, and libdevice isn't there.
static llvm::StringRef findInexact(llvm::StringRef ptx) {
  llvm::SmallVector<llvm::StringRef> lines;
  ptx.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    llvm::StringRef text = line.trim();
    if (text.starts_with("//"))
      continue;
    if (text.starts_with("@"))
      text = text.substr(text.find_first_of(" \t")).trim();
    llvm::StringRef code = text.take_until([](char c) { return c == ' ' || c == '\t'; });
    bool isFloat = code.ends_with(".f32") || code.ends_with(".f64");
    bool isSum = code.starts_with("add.") || code.starts_with("sub.") ||
                 code.starts_with("mul.");
    if (text.contains("__nv_") || code.contains(".approx") || code.contains(".ftz") ||
        (isFloat && isSum && !code.contains(".rn.")))
      return text;
  }
  return {};
}

llvm::Expected<std::string> kvc::generatePtx(mlir::gpu::GPUModuleOp kernels,
                                             const DeviceTarget &target) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(kernels, context, kernels.getName());
  if (!module)
    return makeError("the kernels can't be translated");
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return makeError(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      triple, target.level, target.llvmFeatures, options, std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
  auto code = emitCode(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (!code)
    return code.takeError();
  std::string ptx(code->begin(), code->end());
  if (llvm::StringRef line = findInexact(ptx); !line.empty())
    return makeError("cuda:" + target.level +
                     ": expected arithmetic that rounds as it is written, but got '" +
                     line + "'");
  return ptx;
}
