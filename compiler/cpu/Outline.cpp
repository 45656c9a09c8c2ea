#include "compiler/cpu/Outline.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace kvc;

SmallVector<scf::ParallelOp> kvc::outermostLoops(func::FuncOp function) {
  SmallVector<scf::ParallelOp> loops;
  function.walk<WalkOrder::PreOrder>([&](scf::ParallelOp loop) {
    loops.push_back(loop);
    return WalkResult::skip();
  });
  return loops;
}

SmallVector<Value> kvc::captureValues(scf::ParallelOp loop) {
  SetVector<Value> used;
  getUsedValuesDefinedAbove(loop.getRegion(), used);
  SmallVector<Value> captured;
  for (Value value : used) {
    if (!matchPattern(value, m_Constant()) &&
        !value.getDefiningOp<memref::GetGlobalOp>()) {
      captured.push_back(value);
      continue;
    }
    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    Value copy = b.clone(*value.getDefiningOp())->getResult(0);
    value.replaceUsesWithIf(copy, [&](OpOperand &use) {
      return loop.getRegion().isAncestor(use.getOwner()->getParentRegion());
    });
  }
  return captured;
}

std::pair<StringRef, Location> kvc::nameOfTasks(scf::ParallelOp loop) {
  if (auto named = dyn_cast<NameLoc>(loop.getLoc()))
    return {named.getName().getValue(), named.getChildLoc()};
  return {"task", loop.getLoc()};
}

Arguments kvc::storeArguments(ImplicitLocOpBuilder &b,
                              const LLVMTypeConverter &converter, ValueRange values) {
  SmallVector<Type> fields;
  for (Value value : values)
    fields.push_back(converter.convertType(value.getType()));
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type type = LLVM::LLVMStructType::getLiteral(b.getContext(), fields);
  Value address;
  {
    Operation *parent = b.getInsertionBlock()->getParentOp();
    auto function = dyn_cast<func::FuncOp>(parent);
    if (!function)
      function = parent->getParentOfType<func::FuncOp>();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    Value one = LLVM::ConstantOp::create(b, b.getI64Type(), 1);
    address = LLVM::AllocaOp::create(b, pointer, type, one, 64);
  }
  for (auto [i, value] : llvm::enumerate(values)) {
    Value converted =
        UnrealizedConversionCastOp::create(b, fields[i], value).getResult(0);
    Value field = LLVM::GEPOp::create(b, pointer, type, address,
                                      ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    LLVM::StoreOp::create(b, converted, field);
  }
  return {type, address};
}
