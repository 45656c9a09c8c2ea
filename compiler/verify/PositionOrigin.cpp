// Does every position come from the lengths of a cache?
#include "compiler/verify/Contract.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

namespace {

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
    bool areRowNumbers = false; // of no other tensor
  };
  std::optional<Foreign> findForeign(Value positions);
  std::optional<Foreign> pushSources(Value value);
  void report(Operation *op, const Foreign &foreign);

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
      if (callers->empty())
        return Foreign{argument.getLoc(), "an argument of @" +
                                              function.getName().str() +
                                              ", which nobody calls"};
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
                 "the result of " + op->getName().getStringRef().str(),
                 llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>)};
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

// The latest positions that `op` could take, if its function has some: of the
// cache that is the op's before this step's appends, or else of the only one.
Value positionsBefore(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!function)
    return {};
  Value cache;
  for (Value operand : op->getOperands())
    if (isa<CacheType>(operand.getType()))
      cache = operand;
  while (auto append = cache ? cache.getDefiningOp<AppendOp>() : AppendOp())
    cache = append.getCache();
  Value positions;
  bool isOne = true;
  DominanceInfo dominance(function);
  function.walk([&](PositionsOp candidate) {
    if (!dominance.properlyDominates(candidate.getOperation(), op))
      return;
    Value source = candidate.getCache();
    if (cache && source != cache)
      return;
    isOne &= !positions ||
             source == positions.getDefiningOp<PositionsOp>().getCache();
    positions = candidate;
  });
  return isOne ? positions : Value();
}

// A mask that doesn't start at the first position of the sequence is a mistake
// of its own: its rows are those of the chunk, and the keys are all before it.
void PositionOrigin::report(Operation *op, const Foreign &foreign) {
  InFlightDiagnostic diag = op->emitOpError();
  if (isa<AttendOp>(op) && foreign.areRowNumbers)
    diag << "expected a mask with a row for each query and a column for each "
            "position of the sequence, from kvc.positions, but got a mask that "
            "is square over the rows of ";
  else
    diag << "expected positions that kvc.positions made from the lengths of the "
            "cache, but got ";
  diag << foreign.what;
  diag.attachNote(foreign.loc) << "positions of another origin";
  if (Value positions = positionsBefore(op))
    diag.attachNote(positions.getLoc()) << "hint: use " << nameOf(positions);
  else
    diag.attachNote(op->getLoc())
        << "hint: use kvc.positions of the cache that the step starts with";
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
    report(op, *foreign);
    failedOnce = true;
  });
  return failure(failedOnce);
}

} // namespace

LogicalResult kvc::contract::checkPositionOrigin(ModuleOp module,
                                                 Calls &calls) {
  return PositionOrigin(calls).check(module);
}
