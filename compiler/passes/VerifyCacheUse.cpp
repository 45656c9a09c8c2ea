// kvc-verify-cache-use: see Passes.td.
//
// Two questions about a program, each answered by a class of its own:
// CacheUse: is every cache value that is used the newest one?
// PositionOrigin: does every position come from the lengths of a cache?
// What neither can follow is an error that names it.
#include "compiler/passes/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kvc {
#define GEN_PASS_DEF_VERIFYCACHEUSE
#include "compiler/passes/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

// Who calls whom. Only functions with a body can be followed.
class Calls {
public:
  explicit Calls(ModuleOp module) {
    module.walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        callers[symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr())]
            .push_back(call);
      if (auto address = dyn_cast<func::ConstantOp>(op))
        open.insert(
            symbols.lookupNearestSymbolFrom(address, address.getValueAttr()));
    });
  }
  // The function that `call` enters, or null if it has no body here.
  func::FuncOp bodyOf(func::CallOp call) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    return callee && !callee.isExternal() ? callee : func::FuncOp();
  }
  // All calls of `function`, or nothing if others can call it too.
  std::optional<ArrayRef<func::CallOp>> callersOf(func::FuncOp function) {
    if (!function.isPrivate() || open.contains(function))
      return std::nullopt;
    return ArrayRef<func::CallOp>(callers[function]);
  }

private:
  SymbolTableCollection symbols;
  DenseMap<Operation *, SmallVector<func::CallOp>> callers;
  DenseSet<Operation *> open; // functions whose address is taken
};

//===----------------------------------------------------------------------===//
// Cache values
//===----------------------------------------------------------------------===//

// Checks that no cache value is used after the op that made the next one of it.
class CacheUse {
public:
  explicit CacheUse(Calls &calls) : calls(calls) {}
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

CacheUse::Kind CacheUse::kindOf(OpOperand &use) {
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
bool CacheUse::isConsumedByCallee(func::FuncOp callee, unsigned argument) {
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

LogicalResult CacheUse::checkOrder(OpOperand &consumer, OpOperand &use) {
  bool isTwice = consumer.getOwner() == use.getOwner();
  if (!isTwice && !mayRunAfter(use.getOwner(), consumer.getOwner()))
    return success();
  InFlightDiagnostic diag =
      use.getOwner()->emitOpError()
      << "expected the newest value of the cache, but got one that "
      << (isTwice ? "the same op consumes" : "was consumed before");
  Diagnostic &note = diag.attachNote(consumer.getOwner()->getLoc());
  if (isa<func::ReturnOp, scf::YieldOp>(consumer.getOwner()))
    note << "handed on here";
  else
    note << "consumed here; the cache that this op gives is the newer value";
  return diag;
}

LogicalResult CacheUse::checkValue(Value cache) {
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

LogicalResult CacheUse::check(ModuleOp module) {
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

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

// Checks that positions come from kvc.positions.
class PositionOrigin {
public:
  explicit PositionOrigin(Calls &calls) : calls(calls) {}
  LogicalResult check(ModuleOp module);

private:
  // The place of an origin that is no kvc.positions, and what it is.
  struct Foreign {
    Location loc;
    std::string what;
  };
  std::optional<Foreign> findForeign(Value positions);
  std::optional<Foreign> pushSources(Value value);

  Calls &calls;
  SmallVector<Value> worklist;
};

// Pushes the values that `value` is when the program runs.
std::optional<PositionOrigin::Foreign>
PositionOrigin::pushSources(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    unsigned number = argument.getArgNumber();
    if (auto loop = dyn_cast<scf::ForOp>(parent); loop && number > 0) {
      worklist.push_back(loop.getInitArgs()[number - 1]);
      worklist.push_back(loop.getYieldedValues()[number - 1]);
      return std::nullopt;
    }
    auto function = dyn_cast<func::FuncOp>(parent);
    if (function && argument.getOwner()->isEntryBlock()) {
      auto callers = calls.callersOf(function);
      if (!callers)
        return Foreign{argument.getLoc(), "an argument of @" +
                                              function.getName().str() +
                                              ", which anyone may call"};
      for (func::CallOp call : *callers)
        worklist.push_back(call.getOperand(number));
      return std::nullopt;
    }
    return Foreign{argument.getLoc(),
                   "a block argument that can't be followed"};
  }

  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (isa<PositionsOp>(op))
    return std::nullopt;
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    worklist.push_back(cast.getSource());
    return std::nullopt;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    worklist.push_back(loop.getInitArgs()[number]);
    worklist.push_back(loop.getYieldedValues()[number]);
    return std::nullopt;
  }
  if (auto choice = dyn_cast<scf::IfOp>(op)) {
    worklist.push_back(choice.thenYield().getOperand(number));
    worklist.push_back(choice.elseYield().getOperand(number));
    return std::nullopt;
  }
  if (auto call = dyn_cast<func::CallOp>(op))
    if (func::FuncOp callee = calls.bodyOf(call)) {
      callee.walk([&](func::ReturnOp ret) {
        worklist.push_back(ret.getOperand(number));
      });
      return std::nullopt;
    }
  return Foreign{op->getLoc(),
                 "the result of " + op->getName().getStringRef().str()};
}

std::optional<PositionOrigin::Foreign>
PositionOrigin::findForeign(Value positions) {
  DenseSet<Value> seen;
  worklist.assign(1, positions);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (seen.insert(value).second)
      if (std::optional<Foreign> foreign = pushSources(value))
        return foreign;
  }
  return std::nullopt;
}

// The positions that `op` takes, if any. Ids of a table are positions where
// they are i64: tokens are i32.
Value positionsOf(Operation *op) {
  if (auto rotary = dyn_cast<RotaryOp>(op))
    return rotary.getPositions();
  if (auto append = dyn_cast<AppendOp>(op))
    return append.getPositions();
  if (auto attend = dyn_cast<AttendOp>(op))
    return attend.getPositions();
  if (auto embed = dyn_cast<EmbedOp>(op))
    if (embed.getIds().getType().getElementType().isInteger(64))
      return embed.getIds();
  return {};
}

LogicalResult PositionOrigin::check(ModuleOp module) {
  bool failedOnce = false;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    Value positions = positionsOf(op);
    if (!positions)
      return;
    std::optional<Foreign> foreign = findForeign(positions);
    if (!foreign)
      return;
    InFlightDiagnostic diag =
        op->emitOpError()
        << "expected positions that kvc.positions made from the lengths of the "
           "cache, but got "
        << foreign->what;
    diag.attachNote(foreign->loc) << "positions of another origin";
    failedOnce = true;
  });
  return failure(failedOnce);
}

struct VerifyCacheUse : kvc::impl::VerifyCacheUseBase<VerifyCacheUse> {
  void runOnOperation() override {
    Calls calls(getOperation());
    bool isLinear = succeeded(CacheUse(calls).check(getOperation()));
    bool isPositioned = succeeded(PositionOrigin(calls).check(getOperation()));
    if (!isLinear || !isPositioned)
      signalPassFailure();
  }
};
} // namespace
