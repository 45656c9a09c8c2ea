// kvc-export-reference: see Passes.td.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "compiler/reference/Emit.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvc {
#define GEN_PASS_DEF_EXPORTREFERENCE
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

struct ExportReference : kvc::impl::ExportReferenceBase<ExportReference> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    func::FuncOp forward = lookupForward(module);
    if (!forward) {
      module.emitError(
          "expected a function @forward to export, but found none");
      return signalPassFailure();
    }
    if (failed(exportForward(forward)))
      return signalPassFailure();
    // The code has their offsets now.
    for (auto weight : llvm::make_early_inc_range(module.getOps<NamedWeight>()))
      weight->erase();
  }

  LogicalResult exportForward(func::FuncOp forward) {
    FunctionType type = forward.getFunctionType();
    // A cache is three buffers by now.
    auto logits = type.getNumResults() == 4
                      ? dyn_cast<RankedTensorType>(type.getResult(0))
                      : RankedTensorType();
    auto fail = [&] {
      return forward.emitError()
             << "expected @forward to take weights, tokens, sequences, outputs "
                "and a cache, and to give logits and a cache, but got "
             << type;
    };
    if (!logits || logits.getRank() != 2 || logits.isDynamicDim(1) ||
        !forward.getBody().hasOneBlock())
      return fail();

    ImplicitLocOpBuilder b(forward.getLoc(), forward);
    func::FuncOp exported =
        createAbiForward(b, b.getLoc(), logits.getElementType());
    Block *body = &exported.getBody().front();
    b.setInsertionPointToStart(body);
    auto buffer = [&](unsigned argument) -> Value {
      return exported.getArgument(argument);
    };
    auto tensor = [&](unsigned argument) -> Value {
      return bufferization::ToTensorOp::create(
          b, memref::getTensorTypeFromMemRefType(buffer(argument).getType()),
          buffer(argument), /*restrict=*/true);
    };
    SmallVector<Value> arguments{
        buffer(AbiArgument::Weights),  tensor(AbiArgument::Tokens),
        tensor(AbiArgument::Sequences), tensor(AbiArgument::Outputs),
        buffer(AbiArgument::Pool),     buffer(AbiArgument::Pages),
        buffer(AbiArgument::Lengths)};
    if (TypeRange(ValueRange(arguments)) != TypeRange(type.getInputs()))
      return fail();
    for (auto [old, argument] :
         llvm::zip_equal(forward.getArguments(), arguments))
      old.replaceAllUsesWith(argument);
    body->getOperations().splice(body->end(),
                                 forward.getBody().front().getOperations());
    forward.erase();

    Operation *terminator = body->getTerminator();
    b.setInsertionPoint(terminator);
    Value result = terminator->getOperand(0);
    result = reference::generic(
        b, reference::rowsOf(b, result, logits), result,
        b.getMultiDimIdentityMap(2), /*reductions=*/0,
        [](reference::Emitter &b, ValueRange x) {
          return reference::oneNaN(b, x[0]);
        });
    auto write = bufferization::MaterializeInDestinationOp::create(
        b, TypeRange(), result, viewLogits(b, exported, logits));
    write.setRestrict(true);
    write.setWritable(true);
    terminator->setOperands({});
    return success();
  }
};
} // namespace
