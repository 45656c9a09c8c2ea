// kvc-fuse: see Passes.td.
#include "compiler/ModuleText.h"
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/MapVector.h"

namespace kvc {
#define GEN_PASS_DEF_FUSE
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

// activate(linear(x)) becomes linear(x) with an activation.
struct FuseActivation : OpRewritePattern<ActivateOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ActivateOp op,
                                PatternRewriter &rewriter) const override {
    auto linear = op.getInput().getDefiningOp<LinearOp>();
    if (!linear || !linear->hasOneUse())
      return rewriter.notifyMatchFailure(op, "not the only use of a linear");
    if (linear.getActivation() || linear.getResidual())
      return rewriter.notifyMatchFailure(op, "the linear has an epilogue");
    // The gate of a pair is left for FuseGate.
    if (op->hasOneUse() && isa<arith::MulFOp>(*op->user_begin()))
      return rewriter.notifyMatchFailure(op, "a gate");
    rewriter.replaceOpWithNewOp<LinearOp>(
        op, op.getType(), linear.getInput(), linear.getRoundedAttr(),
        linear.getNarrowedAttr(), linear.getWeightAttr(), linear.getBiasAttr(),
        linear.getLayer(), op.getActivationAttr(), Value());
    rewriter.eraseOp(linear);
    return success();
  }
};

// x + linear(a) becomes linear(a) with the residual x. The sum's two operands
// commute exactly.
struct FuseResidual : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [sum, other] : {std::pair{op.getRhs(), op.getLhs()},
                              std::pair{op.getLhs(), op.getRhs()}}) {
      auto linear = sum.getDefiningOp<LinearOp>();
      if (!linear || !linear->hasOneUse() || linear.getResidual() ||
          sum == other)
        continue;
      rewriter.replaceOpWithNewOp<LinearOp>(
          op, op.getType(), linear.getInput(), linear.getRoundedAttr(),
          linear.getNarrowedAttr(), linear.getWeightAttr(), linear.getBiasAttr(),
          linear.getLayer(), linear.getActivationAttr(), other);
      rewriter.eraseOp(linear);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no operand is a linear of its own");
  }
};

// activate(linear(x, gate)) * linear(x, up) becomes gated_linear(x, gate, up).
struct FuseGate : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    auto activate = op.getLhs().getDefiningOp<ActivateOp>();
    auto up = op.getRhs().getDefiningOp<LinearOp>();
    if (!activate || !up) {
      activate = op.getRhs().getDefiningOp<ActivateOp>();
      up = op.getLhs().getDefiningOp<LinearOp>();
    }
    if (!activate || !up || !activate->hasOneUse() || !up->hasOneUse())
      return rewriter.notifyMatchFailure(op, "not a gate times a linear");
    auto gate = activate.getInput().getDefiningOp<LinearOp>();
    if (!gate || !gate->hasOneUse() || gate.getInput() != up.getInput() ||
        gate.getRounded() != up.getRounded() ||
        gate.getNarrowed() != up.getNarrowed() || gate.getLayer() != up.getLayer())
      return rewriter.notifyMatchFailure(op, "the two have different inputs");
    for (LinearOp linear : {gate, up})
      if (linear.getActivation() || linear.getResidual())
        return rewriter.notifyMatchFailure(op, "a linear has an epilogue");
    rewriter.replaceOpWithNewOp<GatedLinearOp>(
        op, op.getType(), gate.getInput(), gate.getRoundedAttr(),
        gate.getNarrowedAttr(), gate.getWeightAttr(), up.getWeightAttr(),
        gate.getBiasAttr(), up.getBiasAttr(), gate.getLayer(),
        activate.getActivationAttr());
    rewriter.eraseOp(activate);
    rewriter.eraseOp(gate);
    rewriter.eraseOp(up);
    return success();
  }
};

// Row tasks of one input that don't need each other become one kvc.together, where
// the first of them stands: what the others use stands before it as well, and being
// pure they can move there.
class Joiner {
public:
  void run(func::FuncOp function) {
    for (Block &block : function.getBody())
      collect(block);
    for (ArrayRef<RowTasks> group : groups)
      join(group);
  }

private:
  // Before any op moves, since moving makes the order of a block's ops be counted
  // again. A move takes values to earlier places only, so that none gets in the way
  // of another.
  void collect(Block &block);
  void join(ArrayRef<RowTasks> group);

  std::vector<SmallVector<RowTasks>> groups;
};

void Joiner::collect(Block &block) {
  llvm::MapVector<Value, SmallVector<RowTasks>> byInput;
  for (Operation &op : block) {
    if (auto tasks = dyn_cast<RowTasks>(op))
      byInput[tasks.getInput()].push_back(tasks);
    if (isa<TogetherOp>(op))
      continue;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        collect(inner);
  }
  for (auto &[input, group] : byInput)
    while (group.size() > 1) {
      Operation *first = group.front();
      auto canMove = [&](RowTasks op) {
        return op == first || llvm::all_of(op->getOperands(), [&](Value operand) {
          Operation *maker = operand.getDefiningOp();
          return operand.getParentBlock() != &block || !maker ||
                 maker->isBeforeInBlock(first);
        });
      };
      auto rest = std::stable_partition(group.begin(), group.end(), canMove);
      SmallVector<RowTasks> members(group.begin(), rest);
      group.erase(group.begin(), rest);
      if (members.size() > 1)
        groups.push_back(std::move(members));
    }
}

void Joiner::join(ArrayRef<RowTasks> group) {
  Operation *first = group.front();
  OpBuilder b(first);
  Location loc = textLocation(first); // without its name, which is one result's
  SmallVector<Value> results;
  for (RowTasks op : group)
    llvm::append_range(results, op->getResults());
  auto together = TogetherOp::create(b, loc, TypeRange(ValueRange(results)));
  b.createBlock(&together.getBody());
  auto yield = YieldOp::create(b, loc, results);
  for (RowTasks op : group)
    op->moveBefore(yield);
  for (auto [inner, outer] : llvm::zip_equal(results, together.getResults()))
    inner.replaceAllUsesExcept(outer, yield);
}

struct Fuse : kvc::impl::FuseBase<Fuse> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseActivation, FuseResidual, FuseGate>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      Joiner().run(function);
  }
};
} // namespace
