#include "compiler/Pipelines.h"
#include "compiler/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace kvc;

void kvc::buildNormalFormPipeline(OpPassManager &pm, bool checksContract,
                                  bool checksForward) {
  pm.addPass(createInline());
  pm.addPass(createSymbolDCEPass());
  if (checksContract)
    pm.addPass(createVerifyCacheContract());
  if (checksForward)
    pm.addPass(createVerifyForward());
  pm.addPass(createDeferAdvance());
}

void kvc::buildFusedPipeline(OpPassManager &pm) {
  // Not canonicalised: what comes of it isn't on the list of @forward's ops, such
  // as an arith.select of rows.
  pm.addPass(createFuse());
  pm.addPass(createAssignPacking());
}

static void buildKernels(OpPassManager &pm, const LinearTarget &linear) {
  LowerToKernelsOptions options;
  options.vectorBits = linear.vectorBits;
  options.byteDot = linear.hasByteDot;
  options.pairDot = linear.hasPairDot;
  options.tiles = linear.hasTiles;
  options.tileRows = linear.tile.rows;
  options.tileGroups = linear.tile.groups;
  options.taskRows = linear.taskRows;
  options.taskBytes = linear.taskBytes;
  auto shapes = [](const ProductShapes &of) -> llvm::SmallVector<int64_t> {
    return {of.few.rows, of.few.groups, of.many.rows, of.many.groups};
  };
  options.floatShapes = shapes(linear.floats);
  options.integerShapes = shapes(linear.integers);
  pm.addPass(createLowerToKernels(options));
  // It would make one task the host's own work.
  if (!linear.isDevice())
    pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass()); // what has as many rows has one bound
  pm.addPass(createJoinRowLoops());
  PlanWorkspaceOptions workspace;
  workspace.maxTokens = kMaxTokens;
  pm.addPass(createPlanWorkspace(workspace));
}

void kvc::buildKernelPipeline(OpPassManager &pm,
                              const TargetDescription &target) {
  buildKernels(pm, target.linear);
}

static void lowerToLLVM(OpPassManager &pm) {
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
  // Together, since loops carry tiles.
  ConvertToLLVMPassOptions branches;
  branches.filterDialects = {"amx", "cf"};
  pm.addPass(createConvertToLLVMPass(branches));
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Line tables of the model's text.
  pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass());
}

void kvc::buildLLVMPipeline(OpPassManager &pm, const TargetDescription &target,
                            bool isTiles) {
  pm.addPass(createOutlineParallel());
  ExpandMathOptions math;
  // AVX-512's instruction, where denormals are kept; how it makes them 0 isn't
  // what multiplications do.
  math.scalef = target.linear.vectorBits == 512 && !isTiles;
  pm.addPass(createExpandMath(math));
  lowerToLLVM(pm);
}

void kvc::buildHostPipeline(OpPassManager &pm) { lowerToLLVM(pm); }

void kvc::buildLaunchPipeline(OpPassManager &pm, const DeviceTarget &target) {
  buildKernels(pm, target.linear);
  pm.addPass(createOutlineLaunches());
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createDistributeLanes());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
}

void kvc::buildNVVMPipeline(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createExpandMath());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertKernels());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  // Line tables of the model's text.
  pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass());
}

void kvc::buildLinalgPipeline(OpPassManager &pm) {
  AssignPackingOptions rowMajor;
  rowMajor.panels = false;
  pm.addPass(createAssignPacking(rowMajor));
  // A loop that runs once goes before its rows get buffers: those of values that
  // others read can't be written.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createLowerToLinalg());
  pm.addPass(createConvertElementwiseToLinalgPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void kvc::buildReferenceBuffersPipeline(OpPassManager &pm) {
  buildLinalgPipeline(pm);
  pm.addPass(createExportReference());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  pm.addPass(createCanonicalizerPass());
  bufferization::buildBufferDeallocationPipeline(
      pm, bufferization::BufferDeallocationPipelineOptions());
}

void kvc::buildReferencePipeline(OpPassManager &pm) {
  buildReferenceBuffersPipeline(pm);
  pm.addPass(createConvertBufferizationToMemRefPass());
  pm.addPass(createConvertLinalgToLoopsPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  // Conversions to and from bf16 would else call a function that only newer
  // libgcc has.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void kvc::registerReferencePipelines() {
  using Build = void (*)(OpPassManager &);
  auto add = [](StringRef name, StringRef description, Build build) {
    PassPipelineRegistration<>(name, description, [build](OpPassManager &pm) {
      buildNormalFormPipeline(pm, /*checksContract=*/false,
                              /*checksForward=*/false);
      build(pm);
    });
  };
  add("kvc-linalg-pipeline", "the reference lowering down to linalg on tensors",
      buildLinalgPipeline);
  add("kvc-reference-buffers-pipeline",
      "the reference lowering down to linalg and loops on buffers",
      buildReferenceBuffersPipeline);
  add("kvc-reference-pipeline", "the reference lowering down to LLVM",
      buildReferencePipeline);
}
