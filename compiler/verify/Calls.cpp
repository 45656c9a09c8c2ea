// Who calls whom, and how a value is called.
#include "compiler/verify/Contract.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

Calls::Calls(ModuleOp module) {
  SmallVector<Operation *> worklist;
  module.walk([&](Operation *op) {
    if (isPartOfStep(op))
      worklist.push_back(op);
    if (auto call = dyn_cast<func::CallOp>(op))
      callers[symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr())]
          .push_back(call);
    if (auto address = dyn_cast<func::ConstantOp>(op))
      open.insert(
          symbols.lookupNearestSymbolFrom(address, address.getValueAttr()));
  });
  while (!worklist.empty()) {
    auto function = worklist.pop_back_val()->getParentOfType<func::FuncOp>();
    if (function && ofSteps.insert(function).second)
      llvm::append_range(worklist, callers[function]);
  }
}

void Calls::walk(Operation *op, llvm::function_ref<void(Operation *)> visit) {
  llvm::SetVector<Operation *> worklist;
  worklist.insert(op);
  for (size_t i = 0; i < worklist.size(); ++i)
    worklist[i]->walk([&](Operation *inner) {
      visit(inner);
      if (auto call = dyn_cast<func::CallOp>(inner))
        if (func::FuncOp callee = bodyOf(call))
          worklist.insert(callee);
    });
}

// Ids of kvc.embed may be positions.
bool Calls::isPartOfStep(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return ofSteps.contains(bodyOf(call));
  return isa<PositionsOp, RotaryOp, EmbedOp, AppendOp, AttendOp, AdvanceOp,
             TruncateOp, ForkOp, ReorderOp>(op);
}

func::FuncOp Calls::bodyOf(func::CallOp call) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  return callee && !callee.isExternal() ? callee : func::FuncOp();
}

std::optional<ArrayRef<func::CallOp>> Calls::callersOf(func::FuncOp function) {
  if (!function.isPrivate() || open.contains(function))
    return std::nullopt;
  return ArrayRef<func::CallOp>(callers[function]);
}

std::string kvc::contract::nameOf(Value value) {
  if (auto named = dyn_cast<NameLoc>(value.getLoc()))
    return "%" + named.getName().str();
  std::string name;
  llvm::raw_string_ostream os(name);
  value.printAsOperand(os, OpPrintingFlags().useLocalScope());
  return name;
}
