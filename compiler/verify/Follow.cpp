// Control flow, constants, and ops that are none of a step's; see Follow.h.
#include "compiler/verify/Follow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

// Ops that are followed at most, those of a loop once for each iteration: what
// takes longer is an error, not a wait.
static constexpr int64_t kMaxOps = 1 << 20;

std::string contract::nameOf(Value value) {
  Location loc = value.getLoc();
  while (auto site = dyn_cast<CallSiteLoc>(loc))
    loc = site.getCallee();
  if (auto named = dyn_cast<NameLoc>(loc))
    return "%" + named.getName().str();
  std::string name;
  llvm::raw_string_ostream os(name);
  value.printAsOperand(os, OpPrintingFlags().useLocalScope());
  return name;
}

bool contract::isPartOfStep(Operation *op) {
  return isa<Positioned>(op) ||
         llvm::any_of(op->getOperandTypes(), llvm::IsaPred<CacheType>) ||
         llvm::any_of(op->getResultTypes(), llvm::IsaPred<CacheType>);
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

Fact &Follower::factOf(Value value) {
  Fact &fact = facts[value];
  if (!fact.number)
    fact = {++numbers, value};
  return fact;
}

unsigned Follower::numberOf(Attribute constant) {
  unsigned &number = constants[constant];
  if (!number)
    number = ++numbers;
  return number;
}

void Follower::setConstant(Value value, Attribute constant) {
  facts[value] = {numberOf(constant), value, constant};
}

std::optional<int64_t> Follower::integerOf(Value value) {
  auto constant = dyn_cast_or_null<IntegerAttr>(factOf(value).constant);
  if (!constant || !isa<IndexType, IntegerType>(constant.getType()) ||
      constant.getValue().getBitWidth() > 64)
    return std::nullopt;
  return constant.getValue().getSExtValue();
}

FailureOr<SmallVector<Fact>> Follower::take(Operation *op, ValueRange values) {
  SmallVector<Fact> taken;
  for (Value value : values) {
    if (isa<CacheType>(value.getType()) && failed(consume(op, value)))
      return failure();
    taken.push_back(factOf(value));
  }
  return taken;
}

void Follower::bind(ValueRange values, ArrayRef<Fact> taken) {
  for (auto [value, fact] : llvm::zip_equal(values, taken)) {
    facts[value] = fact;
    if (fact.cache)
      bind(value, *fact.cache);
  }
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult Follower::count(Operation *op, int64_t more) {
  ops += more;
  if (ops <= kMaxOps)
    return success();
  return op->emitOpError() << "expected " << kMaxOps
                           << " ops at most where loops are followed, but got "
                              "more";
}

LogicalResult Follower::run(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(count(&op)) || failed(run(&op)))
      return failure();
  return success();
}

LogicalResult Follower::runLoop(scf::ForOp loop) {
  std::optional<int64_t> first = integerOf(loop.getLowerBound()),
                         end = integerOf(loop.getUpperBound()),
                         step = integerOf(loop.getStep());
  if (!first || !end || !step || loop.getUnsignedCmp() ||
      !loop.getInductionVar().getType().isIndex())
    return runOther(loop);
  if (*step < 1)
    return loop.emitOpError() << "expected a step of 1 or more, but got " << *step;
  FailureOr<SmallVector<Fact>> carried = take(loop, loop.getInitArgs());
  if (failed(carried))
    return failure();
  ++loops;
  for (int64_t i = *first; i < *end;) {
    bind(loop.getRegionIterArgs(), *carried);
    setConstant(loop.getInductionVar(),
                IntegerAttr::get(IndexType::get(loop.getContext()), i));
    // An empty iteration takes its time, too.
    if (failed(count(loop)) || failed(run(*loop.getBody())))
      return failure();
    carried = take(loop.getBody()->getTerminator(), loop.getYieldedValues());
    if (failed(carried))
      return failure();
    if (llvm::AddOverflow(i, *step, i))
      return loop.emitOpError() << "expected a loop that ends before its variable "
                                   "leaves 64 bits, but got a step of "
                                << *step;
  }
  --loops;
  bind(loop.getResults(), *carried);
  return success();
}

LogicalResult Follower::runBranch(scf::IfOp choice) {
  std::optional<int64_t> isThen = integerOf(choice.getCondition());
  if (!isThen)
    return runOther(choice);
  Region &region = *isThen ? choice.getThenRegion() : choice.getElseRegion();
  if (region.empty())
    return success();
  if (failed(run(region.front())))
    return failure();
  Operation *yield = region.front().getTerminator();
  FailureOr<SmallVector<Fact>> given = take(yield, yield->getOperands());
  if (succeeded(given))
    bind(choice.getResults(), *given);
  return given;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult Follower::run(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](PositionsOp op) { return positions(op); })
      .Case([&](RotaryOp op) { return rotary(op); })
      .Case([&](EmbedOp op) { return embed(op); })
      .Case([&](AppendOp op) { return append(op); })
      .Case([&](AttendOp op) { return attend(op); })
      .Case([&](AdvanceOp op) { return advance(op); })
      .Case<TruncateOp, ForkOp, ReorderOp>(
          [&](auto op) { return changeLengths(op); })
      .Case([&](scf::ForOp loop) { return runLoop(loop); })
      .Case([&](scf::IfOp choice) { return runBranch(choice); })
      .Case([&](arith::ConstantOp op) {
        return setConstant(op, op.getValue()), success();
      })
      .Case<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::CmpIOp>(
          [&](auto op) { return runArithmetic(op); })
      .Case([&](tensor::CastOp op) {
        return facts[op] = Fact(factOf(op.getSource())), success();
      })
      .Case([&](tensor::SplatOp op) {
        Fact splat{++numbers, op};
        splat.element = op.getInput();
        splat.elementNumber = factOf(op.getInput()).number;
        return facts[op] = splat, success();
      })
      .Default([&](Operation *op) { return runOther(op); });
}

// Numbers that are made of constants are known.
LogicalResult Follower::runArithmetic(Operation *op) {
  std::optional<int64_t> lhs = integerOf(op->getOperand(0)),
                         rhs = integerOf(op->getOperand(1));
  if (!lhs || !rhs || !op->getOperand(0).getType().isIndex())
    return runOther(op);
  Value result = op->getResult(0);
  if (auto comparison = dyn_cast<arith::CmpIOp>(op)) {
    bool holds = arith::applyCmpPredicate(comparison.getPredicate(),
                                          APInt(64, *lhs, true),
                                          APInt(64, *rhs, true));
    setConstant(result, BoolAttr::get(op->getContext(), holds));
    return success();
  }
  int64_t number = 0;
  if (isa<arith::AddIOp>(op)   ? llvm::AddOverflow(*lhs, *rhs, number)
      : isa<arith::SubIOp>(op) ? llvm::SubOverflow(*lhs, *rhs, number)
                               : llvm::MulOverflow(*lhs, *rhs, number))
    return op->emitOpError() << "expected a number of 64 bits, but got more";
  setConstant(result, IntegerAttr::get(result.getType(), number));
  return success();
}

// An op without a rule of its own gives something new, of no cache.
LogicalResult Follower::runOther(Operation *op) {
  WalkResult inside = op->walk([&](Operation *inner) -> WalkResult {
    if (inner == op)
      return WalkResult::advance();
    if (failed(count(inner)))
      return WalkResult::interrupt();
    if (!isPartOfStep(inner))
      return WalkResult::advance();
    InFlightDiagnostic diag =
        inner->emitOpError()
        << "expected ops of a step under scf.for and scf.if whose numbers are "
           "constants or made of them, so that the step can be followed, but "
           "got one under another op";
    diag.attachNote(op->getLoc()) << "under this one";
    return diag;
  });
  if (inside.wasInterrupted())
    return failure();
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (callee && !callee.isExternal())
      return call.emitOpError()
             << "expected calls to be inlined before (kvc-inline), so that steps "
                "can be followed, but got one of @"
             << callee.getName();
  }
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<CacheType>))
    return op->emitOpError()
           << "expected a cache to be used by kvc ops, scf.for and scf.if, so "
              "that its newest value can be followed, but got this op";
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<CacheType>))
    return op->emitOpError()
           << "expected a cache that comes from an argument of a function "
              "through kvc ops, scf.for and scf.if, so that it can be followed, "
              "but got one of this op";
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BaseMemRefType>))
    return op->emitOpError() << "expected rows of a step in tensors, so that "
                                "they can be followed, but got memory";
  if (auto user = dyn_cast<WeightUser>(op))
    if (failed(checkWeightLayers(user)))
      return failure();
  Origin origin = originOf(op);
  if (failed(count(op, origin.joins.size())))
    return failure();
  for (Value result : op->getResults()) {
    facts[result] = {++numbers, result};
    facts[result].origin = origin;
  }
  return success();
}

LogicalResult Follower::follow() {
  for (Value argument : function.getArguments())
    if (isa<CacheType>(argument.getType())) {
      caches.push_back({argument, ++numbers});
      bind(argument, caches.back());
    }
  Block &body = function.getBody().front();
  if (failed(run(body)))
    return failure();
  Operation *end = body.getTerminator();
  for (Value value : end->getOperands())
    if (isa<CacheType>(value.getType()) &&
        failed(checkBetweenSteps(end, value)))
      return failure();
  return take(end, end->getOperands());
}
