// kvc-opt: compiles a model, or runs passes on .mlir as any mlir-opt does.
#include "compiler/passes/Passes.h"
#include "dialect/KVC.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  registry.insert<kvc::KVCDialect>();
  mlir::registerAllPasses();
  kvc::registerKVCPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "kvc compiler\n", registry));
}
