// Does each cache keep what is promised? A module or a function with the
// attribute `kvc.exact` asks for attention over the full prefix.
#include "compiler/verify/Contract.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

static bool asksForExactness(Operation *op) {
  Attribute attribute = op->getAttr(kExactAttr);
  auto isAsked = dyn_cast_or_null<BoolAttr>(attribute);
  return attribute && (!isAsked || isAsked.getValue());
}

static LogicalResult checkType(Operation *op, Value value) {
  auto cache = dyn_cast<CacheType>(value.getType());
  if (!cache || cache.getLayoutInterface().isExact())
    return success();
  Operation *asking = op;
  while (asking && !asksForExactness(asking))
    asking = asking->getParentOp();
  if (!asking)
    return success();
  InFlightDiagnostic diag =
      emitError(value.getLoc())
      << "expected a layout that keeps every position, since " << kExactAttr
      << " asks for attention over the full prefix, but got "
      << cache.getLayout();
  diag.attachNote(asking->getLoc()) << "asked for here";
  diag.attachNote(value.getLoc())
      << "hint: use "
      << CacheType::get(cache.getContext(), cache.getLayers(),
                        cache.getKvHeads(), cache.getCapacity(),
                        cache.getKeyWidth(), cache.getValueWidth(),
                        cache.getElementType(),
                        ContiguousAttr::get(cache.getContext()))
      << " for " << nameOf(value);
  return diag;
}

// Caches enter a program as arguments of functions; their types never change.
LogicalResult kvc::contract::checkExactness(ModuleOp module) {
  bool failedOnce = false;
  module.walk([&](func::FuncOp function) {
    if (!function.isExternal())
      for (Value argument : function.getArguments())
        failedOnce |= failed(checkType(function, argument));
  });
  return failure(failedOnce);
}
