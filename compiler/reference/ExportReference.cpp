// kvc-export-reference: see Passes.td.
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward) {
      module.emitError(
          "expected a function @forward to export, but found none");
      return signalPassFailure();
    }
    if (failed(exportForward(forward)))
      return signalPassFailure();
    // The code has their offsets now.
    for (auto weight : llvm::make_early_inc_range(module.getOps<WeightOp>()))
      weight.erase();
  }

  LogicalResult exportForward(func::FuncOp forward) {
    ImplicitLocOpBuilder b(forward.getLoc(), forward);
    auto buffer = [](Type element) -> Type {
      return MemRefType::get(ShapedType::kDynamic, element);
    };
    Type i8 = b.getI8Type(), i32 = b.getI32Type(), i64 = b.getI64Type();
    auto perToken = [](Type element) -> Type {
      return RankedTensorType::get(ShapedType::kDynamic, element);
    };
    // weights, tokens, sequences, outputs, pool, pages, lengths
    SmallVector<Type> inputs{buffer(i8),    perToken(i32), perToken(i32),
                             perToken(i64), buffer(i8),    buffer(i64),
                             buffer(i64)};
    FunctionType type = forward.getFunctionType();
    auto logitsType = type.getNumResults() == 4
                          ? dyn_cast<RankedTensorType>(type.getResult(0))
                          : RankedTensorType();
    if (type.getInputs() != ArrayRef<Type>(inputs) || !logitsType ||
        logitsType.getRank() != 2 || logitsType.isDynamicDim(1) ||
        !forward.getBody().hasOneBlock())
      return forward.emitError()
             << "expected @forward to take weights, tokens, sequences, outputs "
                "and a cache, and to give logits and a cache, but got "
             << type;

    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    SmallVector<Type> exported{buffer(i8),  buffer(i8),
                               buffer(i64), buffer(i64),
                               buffer(i32), buffer(i32),
                               buffer(i64), buffer(logitsType.getElementType()),
                               buffer(i8),  pointer};
    Block *body = &forward.getBody().front();
    Block *entry = b.createBlock(
        body, exported, SmallVector<Location>(exported.size(), b.getLoc()));
    forward.setFunctionType(b.getFunctionType(exported, {}));
    forward.setResAttrsAttr(ArrayAttr());
    forward.setArgAttrsAttr(ArrayAttr());
    forward->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                     b.getUnitAttr());

    auto toTensor = [&](unsigned argument, Type type) -> Value {
      return bufferization::ToTensorOp::create(
          b, type, entry->getArgument(argument), /*restrict=*/true);
    };
    SmallVector<Value> replacements{
        entry->getArgument(0),  toTensor(4, inputs[1]), toTensor(5, inputs[2]),
        toTensor(6, inputs[3]), entry->getArgument(1),  entry->getArgument(2),
        entry->getArgument(3)};
    for (auto [old, replacement] :
         llvm::zip_equal(body->getArguments(), replacements))
      old.replaceAllUsesWith(replacement);
    entry->getOperations().splice(entry->end(), body->getOperations());
    body->erase();

    // logits T[m * vocab] is written as [m, vocab].
    Operation *terminator = entry->getTerminator();
    b.setInsertionPoint(terminator);
    OpFoldResult rows =
        memref::DimOp::create(b, entry->getArgument(6), 0).getResult();
    OpFoldResult columns = b.getIndexAttr(logitsType.getDimSize(1));
    auto rowsType =
        MemRefType::get({ShapedType::kDynamic, logitsType.getDimSize(1)},
                        logitsType.getElementType());
    Value destination = memref::ReinterpretCastOp::create(
        b, rowsType, entry->getArgument(7), b.getIndexAttr(0),
        ArrayRef<OpFoldResult>{rows, columns},
        ArrayRef<OpFoldResult>{columns, b.getIndexAttr(1)});
    auto write = bufferization::MaterializeInDestinationOp::create(
        b, TypeRange(), terminator->getOperand(0), destination);
    write.setRestrict(true);
    write.setWritable(true);
    terminator->setOperands({});
    return success();
  }
};
} // namespace
