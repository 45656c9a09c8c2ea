#include "compiler/Pipelines.h"
#include "compiler/passes/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace kvc;

void kvc::buildFusedPipeline(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createDeferCommit());
  pm.addPass(createFuse());
  pm.addPass(createPackWeights());
}

void kvc::buildKernelPipeline(OpPassManager &pm,
                              const TargetDescription &target) {
  LowerToKernelsOptions options;
  options.tileRows = target.tile.rows;
  options.tilePanels = target.tile.panels;
  pm.addPass(createLowerToKernels(options));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  PlanWorkspaceOptions workspace;
  workspace.maxTokens = kMaxTokens;
  pm.addPass(createPlanWorkspace(workspace));
  pm.addPass(createOutlineParallel());
  pm.addPass(createExpandMath());
}

void kvc::buildLLVMPipeline(OpPassManager &pm) {
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
