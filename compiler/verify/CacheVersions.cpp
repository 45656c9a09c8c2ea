// Is every cache value that is used the newest one?
#include "compiler/verify/Contract.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

namespace {

// Checks that no cache value is used after the op that made the next one of it.
class CacheVersions {
public:
  explicit CacheVersions(Calls &calls) : calls(calls) {}
  LogicalResult check(ModuleOp module);

private:
  enum class Kind { Read, Consume, Unknown };
  Kind kindOf(OpOperand &use);
  bool isConsumedByCallee(func::FuncOp callee, unsigned argument);
  LogicalResult checkValue(Value cache);
  LogicalResult checkOrder(OpOperand &consumer, OpOperand &use);

  Calls &calls;
  // Whether a function consumes its argument; absent while that is being found.
  DenseMap<std::pair<Operation *, unsigned>, std::optional<bool>> consumed;
};

CacheVersions::Kind CacheVersions::kindOf(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<PositionsOp, AttendOp>(op))
    return Kind::Read;
  // A terminator hands the value on, and a loop takes it over.
  if (isa<AppendOp, AdvanceOp, TruncateOp, ForkOp, ReorderOp, scf::ForOp,
          scf::YieldOp, func::ReturnOp>(op))
    return Kind::Consume;
  if (auto call = dyn_cast<func::CallOp>(op))
    if (func::FuncOp callee = calls.bodyOf(call))
      return isConsumedByCallee(callee, use.getOperandNumber()) ? Kind::Consume
                                                                : Kind::Read;
  return Kind::Unknown;
}

// A recursive call counts as one that consumes.
bool CacheVersions::isConsumedByCallee(func::FuncOp callee, unsigned argument) {
  auto [known, isNew] = consumed.try_emplace({callee, argument}, std::nullopt);
  if (!isNew)
    return known->second.value_or(true);
  bool result =
      llvm::any_of(callee.getArgument(argument).getUses(),
                   [&](OpOperand &use) { return kindOf(use) != Kind::Read; });
  consumed[{callee, argument}] = result;
  return result;
}

// The loop around `op` that does not contain `value`, if any.
Operation *loopBetween(Operation *op, Value value) {
  for (Operation *parent = op->getParentOp();
       parent && !parent->isAncestor(value.getParentRegion()->getParentOp());
       parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      return parent;
  return nullptr;
}

// Whether blocks that branch to each other stand between `value` and `op`.
bool isUnderBranches(Operation *op, Value value) {
  for (Region *region = op->getParentRegion();;
       region = region->getParentRegion()) {
    if (!region->hasOneBlock())
      return true;
    if (region == value.getParentRegion())
      return false;
  }
}

// Whether `use` may run after `consumer`, both in one iteration of whatever
// loops surround them: later in a common block, or inside of the consumer.
bool mayRunAfter(Operation *use, Operation *consumer) {
  if (consumer->isProperAncestor(use))
    return true;
  for (Block *block = consumer->getBlock(); block;) {
    Operation *parent = block->getParentOp();
    if (Operation *ancestor = block->findAncestorOpInBlock(*use)) {
      Operation *from = block->findAncestorOpInBlock(*consumer);
      return from != ancestor && from->isBeforeInBlock(ancestor);
    }
    // Two regions of one scf.if: only one of them runs.
    if (!parent || parent->isAncestor(use))
      return false;
    block = parent->getBlock();
  }
  return false;
}

// The newest value of the cache before `use`, from `consumer` on.
Value newestAfter(Operation *consumer, Operation *use) {
  Value newest;
  while (consumer && !isa<func::ReturnOp, scf::YieldOp>(consumer) &&
         !consumer->isProperAncestor(use)) {
    auto next = llvm::find_if(consumer->getResults(), [](Value result) {
      return isa<CacheType>(result.getType());
    });
    if (next == consumer->result_end())
      break;
    newest = *next;
    consumer = nullptr;
    for (Operation *user : newest.getUsers())
      if (isa<AppendOp, AdvanceOp, TruncateOp, ForkOp, ReorderOp, scf::ForOp>(
              user) && user != use && mayRunAfter(use, user))
        consumer = user;
  }
  return newest;
}

LogicalResult CacheVersions::checkOrder(OpOperand &consumer, OpOperand &use) {
  bool isTwice = consumer.getOwner() == use.getOwner();
  if (!isTwice && !mayRunAfter(use.getOwner(), consumer.getOwner()))
    return success();
  InFlightDiagnostic diag =
      use.getOwner()->emitOpError()
      << "expected the newest value of the cache, but got one that "
      << (isTwice ? "the same op consumes" : "was consumed before");
  diag.attachNote(consumer.getOwner()->getLoc())
      << (isa<func::ReturnOp, scf::YieldOp>(consumer.getOwner())
              ? "handed on here"
              : "consumed here; the cache that this op gives is the newer value");
  if (Value newest = isTwice ? Value()
                             : newestAfter(consumer.getOwner(), use.getOwner()))
    diag.attachNote(newest.getLoc()) << "hint: use " << nameOf(newest);
  return diag;
}

LogicalResult CacheVersions::checkValue(Value cache) {
  // In the order of the program.
  SmallVector<OpOperand *> uses, consumers;
  for (OpOperand &use : cache.getUses())
    uses.insert(uses.begin(), &use);
  for (OpOperand *use : uses) {
    Operation *op = use->getOwner();
    Kind kind = kindOf(*use);
    if (kind == Kind::Unknown)
      return op->emitOpError()
             << "expected a cache to be used by kvc ops, calls of functions "
                "with a body, scf.for and scf.if, so that its newest value can "
                "be followed, but got this op";
    if (isUnderBranches(op, cache))
      return op->emitOpError()
             << "expected a cache in structured control flow (scf.for, "
                "scf.if), so that its newest value can be followed, but got "
                "blocks that branch";
    if (kind == Kind::Read)
      continue;
    consumers.push_back(use);
    if (Operation *loop = loopBetween(op, cache)) {
      InFlightDiagnostic diag =
          op->emitOpError() << "expected a cache that a loop consumes to be "
                               "carried by the loop, but got one from outside";
      diag.attachNote(loop->getLoc())
          << "consumed in each iteration of this loop";
      return diag;
    }
  }
  // Each stale use is reported once, with the first consumer before it; an op
  // that takes the value twice, for its later operand.
  bool failedOnce = false;
  for (OpOperand *use : uses)
    for (OpOperand *consumer : consumers) {
      bool isEarlierOperand =
          consumer->getOwner() == use->getOwner() &&
          consumer->getOperandNumber() >= use->getOperandNumber();
      if (!isEarlierOperand && failed(checkOrder(*consumer, *use))) {
        failedOnce = true;
        break;
      }
    }
  return failure(failedOnce);
}

LogicalResult CacheVersions::check(ModuleOp module) {
  bool failedOnce = false;
  auto checkAll = [&](ValueRange values) {
    for (Value value : values)
      if (isa<CacheType>(value.getType()))
        failedOnce |= failed(checkValue(value));
  };
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    checkAll(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        checkAll(block.getArguments());
  });
  return failure(failedOnce);
}

} // namespace

LogicalResult kvc::contract::checkCacheVersions(ModuleOp module, Calls &calls) {
  return CacheVersions(calls).check(module);
}
