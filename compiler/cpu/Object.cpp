#include "compiler/cpu/Object.h"
#include "compiler/ForwardSignature.h"
#include "compiler/output/EmitCode.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace kvc;

std::unique_ptr<llvm::Module>
kvc::translateForward(mlir::ModuleOp module, llvm::LLVMContext &context,
                      llvm::StringRef entry) {
  std::unique_ptr<llvm::Module> result =
      mlir::translateModuleToLLVMIR(module, context, "kvc");
  if (!result)
    return nullptr;
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    if (function.getName() == kAbiForward) {
      function.setName(entry);
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    } else {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  return result;
}

// Attributes that make every function of the module code for the target.
static void setTargetAttributes(llvm::Module &module,
                                const TargetDescription &target) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.tuneCpu.empty())
      function.addFnAttr("tune-cpu", target.tuneCpu);
    if (!target.llvmFeatures.empty())
      function.addFnAttr("target-features", target.llvmFeatures);
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.linear.vectorBits));
    function.addFnAttr("min-legal-vector-width",
                       std::to_string(target.linear.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

// What a machine needs for an x86 intrinsic, as LLVM calls it; "" for others.
static llvm::StringRef featureOf(llvm::StringRef intrinsic) {
  if (!intrinsic.consume_front("llvm.x86."))
    return "";
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> known[] = {
      {"tdpbf16", "+amx-bf16"},        {"tdpb", "+amx-int8"},
      {"tile", "+amx-tile"},           {"avx512.vpdpb", "+avx512vnni"},
      {"avx512bf16.", "+avx512bf16"},  {"avx512.pm", "+avx512bw"},
      {"avx512.mask.scalef", "+avx512f"}, {"avx2.", "+avx2"}};
  for (auto [prefix, feature] : known)
    if (intrinsic.starts_with(prefix))
      return feature;
  return "+an instruction of this file's list";
}

// LLVM has no error for an intrinsic that the target lacks: it ends the process.
static llvm::Error checkIntrinsics(llvm::Module &module,
                                   const llvm::TargetMachine &machine,
                                   const TargetDescription &target) {
  for (llvm::Function &callee : module) {
    llvm::StringRef feature = featureOf(callee.getName());
    if (feature.empty())
      continue;
    for (llvm::User *user : callee.users()) {
      const llvm::Function &caller = *llvm::cast<llvm::Instruction>(user)->getFunction();
      if (!machine.getSubtargetImpl(caller)->checkFeatures(feature.str()))
        return llvm::createStringError(
            llvm::inconvertibleErrorCode(),
            "%s: expected a target with %s, but got %s",
            callee.getName().str().c_str(), feature.drop_front().str().c_str(),
            target.level.c_str());
    }
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<char, 0>>
kvc::generateCode(llvm::Module &module, const TargetDescription &target,
                  bool assembly) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return llvm::createStringError(llvm::inconvertibleErrorCode(), error);
  llvm::TargetOptions options;
  // Products and sums are fused only where the program says so.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(llvmTarget->createTargetMachine(
      triple, target.cpu, /*Features=*/"", options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  setTargetAttributes(module, target);
  if (llvm::Error error = checkIntrinsics(module, *machine, target))
    return error;

  return emitCode(module, *machine,
                  assembly ? llvm::CodeGenFileType::AssemblyFile
                           : llvm::CodeGenFileType::ObjectFile);
}
