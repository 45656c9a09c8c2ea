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

// Does each cache keep every position that the function's attention sees?
LogicalResult checkExactness(func::FuncOp function) {
  if (function->hasAttr(kInexactAttr))
    return success();
  WalkResult result = function.walk([](AttendOp op) {
    const Group &group = op.getCacheGroup();
    if (group.keeps(op.getWindow()))
      return WalkResult::advance();
    InFlightDiagnostic diag = op.emitOpError();
    diag << "expected a layout that keeps every position that a query sees (";
    if (op.getWindow())
      diag << "the last " << *op.getWindow();
    else
      diag << "all";
    diag << "), or a function that is " << kInexactAttr << ", but got "
         << group.layout << ", which keeps the last "
         << group.getLayout().getWindow(group);
    Group contiguous = group;
    contiguous.layout = ContiguousAttr::get(op.getContext());
    SmallVector<Group> groups(op.getCache().getType().getGroups());
    groups[op.getGroup()] = contiguous;
    diag.attachNote(op.getCache().getLoc())
        << "hint: use " << CacheType::get(op.getContext(), groups) << " for "
        << nameOf(op.getCache());
    return WalkResult(diag);
  });
  return failure(result.wasInterrupted());
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
