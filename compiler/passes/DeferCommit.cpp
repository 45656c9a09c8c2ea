// kvc-defer-commit: see Passes.td.
#include "compiler/passes/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kvc {
#define GEN_PASS_DEF_DEFERCOMMIT
#include "compiler/passes/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {
struct DeferCommit : kvc::impl::DeferCommitBase<DeferCommit> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.isExternal())
      return;
    SmallVector<AdvanceOp> advances;
    Operation *update = nullptr;
    forward.walk([&](Operation *op) {
      if (auto advance = dyn_cast<AdvanceOp>(op))
        advances.push_back(advance);
      if (isa<TruncateOp, ForkOp, ReorderOp>(op))
        update = op;
    });
    if (update) {
      update->emitOpError("expected outside of @forward: there only the runtime "
                          "changes which positions a sequence has");
      return signalPassFailure();
    }
    // The returned cache is the one that was appended to: lengths are read by
    // kvc.positions of the next step at the earliest.
    Operation *terminator = forward.getBody().back().getTerminator();
    if (advances.size() != 1 || !advances[0]->hasOneUse() ||
        *advances[0]->user_begin() != terminator) {
      forward.emitError("expected @forward to commit its step by one kvc.advance "
                        "of the cache that it returns, but got ")
          << advances.size() << " of them"
          << (advances.size() == 1 ? ", elsewhere" : "");
      return signalPassFailure();
    }
    advances[0].replaceAllUsesWith(advances[0].getCache());
    advances[0].erase();
  }
};
} // namespace
