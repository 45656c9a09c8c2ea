// kvc-defer-advance: see Passes.td.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "dialect/KVC.h"

namespace kvc {
#define GEN_PASS_DEF_DEFERADVANCE
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {
struct DeferAdvance : kvc::impl::DeferAdvanceBase<DeferAdvance> {
  void runOnOperation() override {
    func::FuncOp forward = lookupForward(getOperation());
    if (!forward)
      return;
    // The returned cache is the one that was appended to: lengths are read by
    // kvc.positions of the next step at the earliest.
    Operation *terminator = forward.getBody().back().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands())
      if (auto advance = operand.get().getDefiningOp<AdvanceOp>())
        if (advance->hasOneUse()) {
          operand.set(advance.getCache());
          advance.erase();
        }
  }
};
} // namespace
