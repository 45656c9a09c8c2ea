// kvc-verify-cache-contract: see Passes.td and docs/cache-contract.md.
#include "compiler/Passes.h"
#include "compiler/verify/Follow.h"

namespace kvc {
#define GEN_PASS_DEF_VERIFYCACHECONTRACT
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

namespace {

// The attribute of a function whose caches may forget what attention would see.
constexpr StringLiteral kInexactAttr = "kvc.inexact";

// Does each cache keep every position? Caches enter a program as arguments of
// functions; their types never change.
LogicalResult checkExactness(func::FuncOp function) {
  if (function->hasAttr(kInexactAttr))
    return success();
  for (Value argument : function.getArguments()) {
    auto cache = dyn_cast<CacheType>(argument.getType());
    if (!cache || cache.getLayoutInterface().isExact())
      continue;
    InFlightDiagnostic diag =
        emitError(argument.getLoc())
        << "expected a layout that keeps every position, so that attention is "
           "over the full prefix, or a function that is "
        << kInexactAttr << ", but got " << cache.getLayout();
    diag.attachNote(argument.getLoc())
        << "hint: use "
        << CacheType::get(cache.getContext(), cache.getLayers(),
                          cache.getKvHeads(), cache.getCapacity(),
                          cache.getKeyWidth(), cache.getValueWidth(),
                          cache.getElementType(),
                          ContiguousAttr::get(cache.getContext()))
        << " for " << nameOf(argument);
    return diag;
  }
  return success();
}

// Functions that can't be followed have no part of a step.
LogicalResult checkNoStep(Operation *root) {
  return failure(root->walk([](Operation *op) -> WalkResult {
                       if (!isPartOfStep(op))
                         return WalkResult::advance();
                       return op->emitOpError()
                              << "expected ops of a step in a func.func of one "
                                 "block that returns, so that it can be "
                                 "followed, but got one elsewhere";
                     })
                     .wasInterrupted());
}

struct VerifyCacheContract
    : kvc::impl::VerifyCacheContractBase<VerifyCacheContract> {
  void runOnOperation() override {
    bool isFailed = false;
    for (Operation &op : getOperation().getOps()) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function || !function.getBody().hasOneBlock() ||
          !isa<func::ReturnOp>(function.getBody().front().getTerminator()))
        isFailed |= failed(checkNoStep(&op));
      // A private function is part of those that call it.
      else if (!function.isPrivate())
        isFailed |= failed(checkExactness(function)) ||
                    failed(Follower(function).follow());
    }
    if (isFailed)
      signalPassFailure();
  }
};
} // namespace
