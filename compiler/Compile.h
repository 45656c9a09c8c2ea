// The compiler behind `kvc-opt MODEL`: from a model to any stage of it.
#ifndef KVC_COMPILER_COMPILE_H
#define KVC_COMPILER_COMPILE_H

#include "compiler/BuildModule.h"
#include "compiler/Targets.h"
#include "compiler/output/Version.h"
#include "mlir/Pass/PassManager.h"

namespace kvc {

// The stages that `--emit` names, in the order of the compilation.
enum class Stage {
  Spec, KVC, Fused, Linalg, Kernels, LLVM, Asm, GPU, PTX, Library, Reference
};

struct CompileOptions {
  std::string model;   // a path, or - for standard input (MLIR)
  bool isMLIR = false; // no front end reads it
  std::string output; // a file, or a directory for Library and Reference
  Stage stage = Stage::Library;
  // What files, symbols and macros are called after; "": the model's own name,
  // with the type of the weights where `build` gives one.
  std::string name;
  Targets targets;
  BuildOptions build;
  // Pack weights that are infinite or NaN, which else are refused.
  bool allowNonfiniteWeights = false;
  // For the tests' negative controls: compile a program that a verifier rejects.
  bool skipCacheContract = false, skipForward = false;
  // Part of the identity; another one only for tests of that.
  int numericsVersion = kNumericsVersion;
  // What the tests do with kernels before they become LLVM; or null.
  void (*afterKernels)(mlir::OpPassManager &) = nullptr;
  // Applied to each pass manager (the options of mlir-opt).
  llvm::function_ref<llvm::LogicalResult(mlir::PassManager &)> configure;
};

// Compiles; all errors have been printed to stderr when it fails. A failing
// compilation leaves what stood at `output` as it was, if that is a directory,
// and no file otherwise; one that succeeds says what it wrote.
llvm::LogicalResult compile(mlir::MLIRContext &context,
                            const CompileOptions &options);

} // namespace kvc

#endif // KVC_COMPILER_COMPILE_H
