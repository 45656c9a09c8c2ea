// Follows a program as it runs: each function that others can call is entered
// once, calls are entered, loops with constant bounds are run iteration by
// iteration, and both branches of an scf.if are merged where it isn't known
// which one runs. StepRules judges the ops.
#include "compiler/passes/contract/Contract.h"
#include "compiler/passes/contract/StepState.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

namespace {

// Ops that are followed at most, and calls inside of calls: what goes on for
// longer is an error, not a wait.
constexpr int64_t kMaxOps = 1 << 20;
constexpr int kMaxDepth = 64;

class Steps {
public:
  explicit Steps(Calls &calls) : calls(calls) {}
  LogicalResult checkFrom(func::FuncOp root);

private:
  using Frame = DenseMap<Value, Fact>;
  using Facts = SmallVector<Fact>;

  // A value that nothing is known of, but which value it is.
  Fact fresh() { return {{rules.newNumber(), {}}, {}, {}}; }
  Fact constant(Attribute value) { return {{0, value}, {}, {}}; }
  Fact factOf(Value value) {
    auto [entry, isNew] = frame.try_emplace(value);
    if (isNew)
      entry->second = fresh();
    return entry->second;
  }
  std::optional<int64_t> integerOf(Value value) {
    auto attribute =
        dyn_cast_or_null<IntegerAttr>(factOf(value).identity.constant);
    return attribute ? std::optional(attribute.getInt()) : std::nullopt;
  }

  // Runs a block and gives what is known of its terminator's operands.
  FailureOr<Facts> run(Block &block);
  LogicalResult run(Operation *op);
  LogicalResult runFor(scf::ForOp loop);
  LogicalResult runUnknownFor(scf::ForOp loop);
  LogicalResult runIf(scf::IfOp choice);
  LogicalResult runCall(func::CallOp call);
  LogicalResult runOther(Operation *op);
  FailureOr<Fact> cacheOf(Operation *op, Value cache);
  LogicalResult set(Value result, FailureOr<Fact> fact);
  Fact merge(const Fact &a, const Fact &b);
  // Whether one of the ops is inside of `op`, or of a function that it calls.
  template <typename... Ops> bool mayRun(Operation *op, int depth = 0);

  Calls &calls;
  StepRules rules;
  Frame frame;
  int64_t ops = 0;
  int depth = 0;
};

LogicalResult Steps::set(Value result, FailureOr<Fact> fact) {
  if (succeeded(fact))
    frame[result] = *fact;
  return fact;
}

FailureOr<Fact> Steps::cacheOf(Operation *op, Value cache) {
  Fact fact = factOf(cache);
  if (!fact.cache)
    return op->emitOpError()
           << "expected a cache that comes from an argument of a function, so "
              "that its steps can be followed, but got "
           << nameOf(cache);
  return fact;
}

FailureOr<Steps::Facts> Steps::run(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(run(&op)))
      return failure();
  Facts facts;
  for (Value operand : block.getTerminator()->getOperands())
    facts.push_back(factOf(operand));
  return facts;
}

LogicalResult Steps::run(Operation *op) {
  if (++ops > kMaxOps)
    return op->emitOpError() << "expected loops of " << kMaxOps
                             << " ops in all at most, so that steps can be "
                                "followed, but got more";
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](PositionsOp op) -> LogicalResult {
        FailureOr<Fact> cache = cacheOf(op, op.getCache());
        if (failed(cache))
          return failure();
        Fact positions = fresh();
        positions.positions = StepPositions{op, cache->cache->lengths,
                                            factOf(op.getSequences()).identity};
        return set(op.getResult(), positions);
      })
      .Case([&](AppendOp op) -> LogicalResult {
        FailureOr<Fact> cache = cacheOf(op, op.getCache());
        if (failed(cache))
          return failure();
        return set(op.getResult(),
                   rules.append(op, *cache, factOf(op.getLayer()),
                                factOf(op.getPositions()),
                                factOf(op.getSequences())));
      })
      .Case([&](AttendOp op) -> LogicalResult {
        FailureOr<Fact> cache = cacheOf(op, op.getCache());
        if (failed(cache) ||
            failed(rules.attend(op, *cache, factOf(op.getLayer()),
                                factOf(op.getPositions()),
                                factOf(op.getSequences()))))
          return failure();
        return set(op.getResult(), fresh());
      })
      .Case([&](AdvanceOp op) -> LogicalResult {
        FailureOr<Fact> cache = cacheOf(op, op.getCache());
        if (failed(cache))
          return failure();
        return set(op.getResult(),
                   rules.advance(op, *cache, factOf(op.getSequences())));
      })
      .Case<TruncateOp, ForkOp, ReorderOp>([&](auto op) -> LogicalResult {
        FailureOr<Fact> cache = cacheOf(op, op.getCache());
        if (failed(cache))
          return failure();
        return set(op.getResult(), rules.changeLengths(op, *cache));
      })
      .Case([&](RotaryOp op) -> LogicalResult {
        if (failed(rules.checkPositions(op, factOf(op.getPositions()))))
          return failure();
        return set(op.getResult(), fresh());
      })
      .Case([&](EmbedOp op) -> LogicalResult {
        // Ids that are i64 are positions.
        if (op.getIds().getType().getElementType().isInteger(64) &&
            failed(rules.embed(op, factOf(op.getIds()))))
          return failure();
        return set(op.getResult(), fresh());
      })
      .Case([&](tensor::CastOp op) {
        Fact source = factOf(op.getSource());
        source.tokens = countTokens(op, [&](Value v) { return factOf(v); });
        return set(op, source);
      })
      .Case([&](scf::ForOp op) { return runFor(op); })
      .Case([&](scf::IfOp op) { return runIf(op); })
      .Case([&](func::CallOp op) { return runCall(op); })
      .Default([&](Operation *op) { return runOther(op); });
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult Steps::runFor(scf::ForOp loop) {
  std::optional<int64_t> first = integerOf(loop.getLowerBound()),
                         end = integerOf(loop.getUpperBound()),
                         step = integerOf(loop.getStep());
  if (!first || !end || !step || *step < 1)
    return runUnknownFor(loop);
  Facts facts = llvm::map_to_vector(loop.getInitArgs(),
                                    [&](Value init) { return factOf(init); });
  for (int64_t i = *first; i < *end; i += *step) {
    ++ops; // an empty loop takes its time too
    if (ops > kMaxOps)
      return run(loop.getOperation());
    frame[loop.getInductionVar()] =
        constant(IntegerAttr::get(loop.getInductionVar().getType(), i));
    for (auto [argument, fact] : llvm::zip(loop.getRegionIterArgs(), facts))
      frame[argument] = fact;
    FailureOr<Facts> next = run(*loop.getBody());
    if (failed(next))
      return failure();
    facts = *next;
  }
  for (auto [result, fact] : llvm::zip(loop.getResults(), facts))
    frame[result] = fact;
  return success();
}

template <typename... Ops> bool Steps::mayRun(Operation *op, int depth) {
  if (depth > kMaxDepth)
    return true;
  return op
      ->walk([&](Operation *inner) {
        if (isa<Ops...>(inner))
          return WalkResult::interrupt();
        if (auto call = dyn_cast<func::CallOp>(inner))
          if (func::FuncOp callee = calls.bodyOf(call))
            if (mayRun<Ops...>(callee, depth + 1))
              return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

// A loop whose iterations aren't known must leave the open step as it is: each
// iteration a whole number of steps. Its body is followed once, for any lengths.
LogicalResult Steps::runUnknownFor(scf::ForOp loop) {
  Facts before = llvm::map_to_vector(loop.getInitArgs(),
                                     [&](Value init) { return factOf(init); });
  // Of several caches, one may be another's in the next iteration.
  bool isOne = llvm::count_if(before, [](const Fact &fact) {
                 return fact.cache.has_value();
               }) == 1;
  bool shrinks = !isOne || mayRun<TruncateOp, ForkOp, ReorderOp>(loop);
  bool changes = shrinks || mayRun<AdvanceOp>(loop);
  auto withNewLengths = [&](const Fact &fact) {
    Fact result = fact;
    rules.endedBy[fact.cache->lengths] = loop;
    result.cache->lengths = rules.newNumber();
    if (shrinks)
      result.cache->atLeast.clear();
    return result;
  };
  frame[loop.getInductionVar()] = fresh();
  Facts start;
  for (auto [argument, fact] : llvm::zip(loop.getRegionIterArgs(), before)) {
    // What a loop carries is the same in all iterations only if it says so.
    bool isSame = loop.getTiedLoopYieldedValue(argument)->get() == argument;
    start.push_back(fact.cache ? (changes ? withNewLengths(fact) : fact)
                    : isSame   ? fact
                               : fresh());
    frame[argument] = start.back();
  }
  FailureOr<Facts> after = run(*loop.getBody());
  if (failed(after))
    return failure();
  for (auto [result, from, to] : llvm::zip(loop.getResults(), start, *after)) {
    if (!from.cache) {
      frame[result] = from.identity == to.identity ? from : fresh();
      continue;
    }
    for (auto [number, marks] :
         llvm::enumerate(llvm::zip(from.cache->layers, to.cache->layers))) {
      auto [was, is] = marks;
      if (was.has_value() == is.has_value())
        continue;
      InFlightDiagnostic diag =
          loop.emitOpError()
          << "expected a loop that appends to layers to have constant bounds, "
             "or whole steps in each iteration, but got one that changes layer "
          << number << " only";
      diag.attachNote(AppendOp((is ? is : was)->op).getLoc())
          << "appended to here";
      return diag;
    }
    frame[result] = changes ? withNewLengths(to) : from;
    // There may be no iteration.
    frame[result].cache->atLeast = from.cache->atLeast;
  }
  return success();
}

Fact Steps::merge(const Fact &a, const Fact &b) {
  Fact result = a.identity == b.identity ? a : fresh();
  result.tokens = a.tokens;
  result.tokens.keepCommon(b.tokens);
  if (a.identity == b.identity)
    return result;
  if (a.positions && b.positions &&
      a.positions->lengths == b.positions->lengths &&
      a.positions->sequences == b.positions->sequences)
    result.positions = a.positions;
  if (!a.cache || !b.cache)
    return result;
  result.cache = a.cache;
  CacheState &cache = *result.cache;
  if (a.cache->lengths != b.cache->lengths)
    cache.lengths = rules.newNumber();
  cache.atLeast.keepCommon(b.cache->atLeast);
  for (auto [mark, other] : llvm::zip(cache.layers, b.cache->layers)) {
    bool isSame = mark && other && mark->sequences == other->sequences &&
                  !other->isInOneBranch;
    if (!mark)
      mark = other;
    if (mark && !isSame)
      mark->isInOneBranch = true;
  }
  return result;
}

LogicalResult Steps::runIf(scf::IfOp choice) {
  auto runBranch = [&](Region &region) -> FailureOr<Facts> {
    return region.empty() ? FailureOr<Facts>(Facts()) : run(region.front());
  };
  if (std::optional<int64_t> known = integerOf(choice.getCondition())) {
    FailureOr<Facts> facts = runBranch(*known ? choice.getThenRegion()
                                              : choice.getElseRegion());
    if (failed(facts))
      return failure();
    for (auto [result, fact] : llvm::zip(choice.getResults(), *facts))
      frame[result] = fact;
    return success();
  }
  auto ended = rules.endedBy;
  FailureOr<Facts> thenFacts = runBranch(choice.getThenRegion());
  if (failed(thenFacts))
    return failure();
  std::swap(ended, rules.endedBy);
  FailureOr<Facts> elseFacts = runBranch(choice.getElseRegion());
  if (failed(elseFacts))
    return failure();
  rules.endedBy.insert(ended.begin(), ended.end());
  for (auto [result, a, b] :
       llvm::zip(choice.getResults(), *thenFacts, *elseFacts))
    frame[result] = merge(a, b);
  return success();
}

LogicalResult Steps::runCall(func::CallOp call) {
  func::FuncOp callee = calls.bodyOf(call);
  // Without a body or with blocks that branch, it has no caches: see
  // CacheVersions.
  if (!callee || !callee.getBody().hasOneBlock()) {
    for (Value result : call.getResults())
      frame[result] = fresh();
    return success();
  }
  if (++depth > kMaxDepth)
    return call.emitOpError()
           << "expected calls of " << kMaxDepth
           << " functions inside of each other at most, so that steps can be "
              "followed, but got more";
  Frame inner;
  for (auto [argument, operand] :
       llvm::zip(callee.getArguments(), call.getOperands()))
    inner[argument] = factOf(operand);
  std::swap(frame, inner);
  FailureOr<Facts> facts = run(callee.getBody().front());
  std::swap(frame, inner);
  --depth;
  if (failed(facts))
    return failure();
  for (auto [result, fact] : llvm::zip(call.getResults(), *facts))
    frame[result] = fact;
  return success();
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

LogicalResult Steps::runOther(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block)
        if (inner
                .walk([](Operation *nested) {
                  return isa<PositionsOp, AppendOp, AttendOp, AdvanceOp,
                             TruncateOp, ForkOp, ReorderOp, RotaryOp,
                             func::CallOp>(nested)
                             ? WalkResult::interrupt()
                             : WalkResult::advance();
                })
                .wasInterrupted())
          return op->emitOpError()
                 << "expected steps in scf.for and scf.if, so that they can be "
                    "followed, but got this op around a part of one";
  TokenCounts tokens = countTokens(op, [&](Value v) { return factOf(v); });
  for (Value result : op->getResults()) {
    frame[result] = fresh();
    frame[result].tokens = tokens;
  }
  Attribute value;
  if (matchPattern(op, m_Constant(&value))) {
    frame[op->getResult(0)] = constant(value);
    return success();
  }
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(factOf(operand).identity.constant);
    if (!operands.back())
      return success();
  }
  if (operands.empty() || op->getNumRegions())
    return success();
  // Of a copy: folding may change the op.
  Operation *copy = op->clone();
  SmallVector<OpFoldResult> folded;
  if (succeeded(copy->fold(operands, folded)))
    for (auto [result, fold] : llvm::zip(op->getResults(), folded))
      if (auto attribute = dyn_cast<Attribute>(fold))
        frame[result] = constant(attribute);
  copy->destroy();
  return success();
}

LogicalResult Steps::checkFrom(func::FuncOp root) {
  for (Value argument : root.getArguments()) {
    frame[argument] = fresh();
    if (auto type = dyn_cast<CacheType>(argument.getType()))
      frame[argument].cache = rules.newCache(type);
  }
  // Blocks that branch have no caches: see CacheVersions.
  if (!root.getBody().hasOneBlock())
    return success();
  Block &body = root.getBody().front();
  FailureOr<Facts> facts = run(body);
  if (failed(facts))
    return failure();
  Operation *end = body.getTerminator();
  for (auto [operand, fact] : llvm::zip(end->getOperands(), *facts))
    if (fact.cache && failed(rules.checkBetweenSteps(end, operand, fact)))
      return failure();
  return success();
}
} // namespace

LogicalResult kvc::contract::checkSteps(ModuleOp module, Calls &calls) {
  bool failedOnce = false;
  module.walk([&](func::FuncOp function) {
    if (function.isExternal())
      return;
    auto callers = calls.callersOf(function);
    if (!callers || callers->empty())
      failedOnce |= failed(Steps(calls).checkFrom(function));
  });
  return failure(failedOnce);
}
