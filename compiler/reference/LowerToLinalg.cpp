// kvc-lower-to-linalg: see Passes.td. The ops' definitions stand in reference/.
#include "compiler/Passes.h"
#include "compiler/reference/Patterns.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace kvc {
#define GEN_PASS_DEF_LOWERTOLINALG
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

// Every weight has an offset in the packed file, and stands there row-major.
LogicalResult checkPacking(ModuleOp module) {
  for (auto weight : module.getOps<WeightOp>()) {
    std::optional<PackingAttr> packing = weight.getPacking();
    if (packing && packing->getPanel() == 0)
      continue;
    InFlightDiagnostic diag =
        weight.emitOpError() << "expected a row-major packing "
                                "(kvc-assign-packing{panels=false}), but got ";
    if (packing)
      return diag << "panels of " << packing->getPanel();
    return diag << "none";
  }
  return success();
}

// Gives each function that reads weights, itself or by a call, the packed
// file's data as its first argument, and passes it along in the calls.
void addWeightArguments(ModuleOp module) {
  SymbolTableCollection symbols;
  SetVector<func::FuncOp> readers;
  auto uses = [&](Operation *op) {
    auto call = dyn_cast<func::CallOp>(op);
    return isa<WeightUser>(op) ||
           (call &&
            readers.contains(symbols.lookupNearestSymbolFrom<func::FuncOp>(
                call, call.getCalleeAttr())));
  };
  for (size_t before = 0;; before = readers.size()) {
    for (auto function : module.getOps<func::FuncOp>())
      if (function
              .walk([&](Operation *op) {
                return uses(op) ? WalkResult::interrupt()
                                : WalkResult::advance();
              })
              .wasInterrupted())
        readers.insert(function);
    if (readers.size() == before)
      break;
  }
  OpBuilder b(module.getContext());
  Type data = MemRefType::get(ShapedType::kDynamic, b.getI8Type());
  for (func::FuncOp function : readers)
    (void)function.insertArgument(0, data, DictionaryAttr(), function.getLoc());
  for (func::FuncOp function : readers)
    function.walk([&](func::CallOp call) {
      if (uses(call))
        call.getOperandsMutable().assign(llvm::to_vector(
            llvm::concat<Value>(SmallVector<Value>{function.getArgument(0)},
                                SmallVector<Value>(call.getOperands()))));
    });
}

// Has each loop of the program keep what it carries in the buffer that it came in:
// what an iteration hands on is copied from where it was made, all of it before
// any is written, so that two values of a loop never share a buffer. One-Shot
// Bufferize takes that for granted and doesn't see to it.
void keepCarriedBuffers(ModuleOp module) {
  module.walk([](scf::ForOp loop) {
    Operation *yield = loop.getBody()->getTerminator();
    OpBuilder b(yield);
    SmallVector<std::pair<OpOperand *, Value>> copies;
    for (OpOperand &operand : yield->getOpOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.get().getType()))
        copies.push_back({&operand, bufferization::AllocTensorOp::create(
                                        b, yield->getLoc(), type, ValueRange(),
                                        operand.get())});
    for (auto [operand, copy] : copies) {
      Value carried = loop.getRegionIterArg(operand->getOperandNumber());
      operand->set(bufferization::MaterializeInDestinationOp::create(
                       b, yield->getLoc(), copy, carried)
                       .getResult());
    }
  });
}

struct LowerToLinalg : kvc::impl::LowerToLinalgBase<LowerToLinalg> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    if (failed(checkPacking(module)))
      return signalPassFailure();
    module.walk([](TogetherOp op) { op.dissolve(); });
    addWeightArguments(module);
    keepCarriedBuffers(module);

    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion([](CacheType type, SmallVectorImpl<Type> &buffers) {
      Builder b(type.getContext());
      for (Type element : {b.getI8Type(), b.getI64Type(), b.getI64Type()})
        buffers.push_back(MemRefType::get(ShapedType::kDynamic, element));
      return success();
    });

    ConversionTarget target(*context);
    target.addIllegalDialect<KVCDialect>();
    target.addLegalOp<WeightOp, StackOp>();
    // Whatever else is in the program stays, if it knows of no cache.
    target.markUnknownOpDynamicallyLegal([&](Operation *op) {
      if (auto function = dyn_cast<func::FuncOp>(op))
        return converter.isSignatureLegal(function.getFunctionType()) &&
               converter.isLegal(&function.getBody());
      return converter.isLegal(op);
    });

    RewritePatternSet patterns(context);
    reference::populateActivatePatterns(converter, patterns);
    reference::populateAppendPatterns(converter, patterns);
    reference::populateAttendPatterns(converter, patterns);
    reference::populateEmbedPatterns(converter, patterns);
    reference::populateLengthsPatterns(converter, patterns);
    reference::populateLinearPatterns(converter, patterns);
    reference::populateNormPatterns(converter, patterns);
    reference::populatePositionsPatterns(converter, patterns);
    reference::populateRotaryPatterns(converter, patterns);
    reference::populateSelectPatterns(converter, patterns);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                   converter);
    populateCallOpTypeConversionPattern(patterns, converter);
    populateReturnOpTypeConversionPattern(patterns, converter);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
