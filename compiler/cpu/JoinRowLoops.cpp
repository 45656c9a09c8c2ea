// kvc-join-row-loops: see Passes.td.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "compiler/cpu/KernelBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kvc {
#define GEN_PASS_DEF_JOINROWLOOPS
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

// The row loop of as many rows that comes next, where nothing in between sees what the
// loop does.
static scf::ParallelOp follower(scf::ParallelOp loop) {
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode()) {
    if (op->hasAttr(kRowLoopAttr)) {
      auto next = cast<scf::ParallelOp>(op);
      return next.getUpperBound() == loop.getUpperBound() ? next : nullptr;
    }
    if (!isMemoryEffectFree(op) && !isa<memref::AllocOp>(op))
      return nullptr;
  }
  return nullptr;
}

// Puts the body of `loop` before that of `next`, row by row.
static void join(scf::ParallelOp loop, scf::ParallelOp next) {
  Block *body = next.getBody();
  loop.getInductionVars().front().replaceAllUsesWith(
      next.getInductionVars().front());
  loop.getBody()->getTerminator()->erase();
  body->getOperations().splice(body->begin(), loop.getBody()->getOperations());
  auto nameOf = [](scf::ParallelOp op) -> StringRef {
    auto named = dyn_cast<NameLoc>(op.getLoc());
    return named ? named.getName().getValue() : "rows";
  };
  Location line = loop.getLoc();
  if (auto named = dyn_cast<NameLoc>(line))
    line = named.getChildLoc();
  std::string name = (nameOf(loop) + "." + nameOf(next)).str();
  next->setLoc(NameLoc::get(StringAttr::get(next.getContext(), name), line));
  loop.erase();
}

namespace {
struct JoinRowLoops : kvc::impl::JoinRowLoopsBase<JoinRowLoops> {
  void runOnOperation() override {
    func::FuncOp function = lookupForward(getOperation());
    if (!function)
      return;
    SmallVector<scf::ParallelOp> loops;
    function.walk([&](scf::ParallelOp loop) {
      if (loop->hasAttr(kRowLoopAttr))
        loops.push_back(loop);
    });
    for (scf::ParallelOp loop : loops)
      if (scf::ParallelOp next = follower(loop))
        join(loop, next);
  }
};
} // namespace
