#include "compiler/output/EmitCode.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"

using namespace kvc;

llvm::Expected<llvm::SmallVector<char, 0>> kvc::emitCode(llvm::Module &module,
                                                         llvm::TargetMachine &machine,
                                                         llvm::CodeGenFileType type) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // The code is written in vectors already.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);

  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, stream, nullptr, type))
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "LLVM can't write code for %s",
                                   machine.getTargetTriple().str().c_str());
  emission.run(module);
  return code;
}
