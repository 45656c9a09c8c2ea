// Loops, branches and calls; see Steps.h.
#include "compiler/verify/Steps.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

// Ops that are followed at most, and calls inside of calls: what goes on for
// longer is an error, not a wait.
static constexpr int64_t kMaxOps = 1 << 20;
static constexpr int kMaxDepth = 64;

FailureOr<Steps::Facts> Steps::run(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (++ops > kMaxOps)
      return op.emitOpError() << "expected " << kMaxOps
                              << " ops at most where calls and loops are "
                                 "followed, but got more";
    if (failed(run(&op)))
      return failure();
  }
  return factsOf(block.getTerminator()->getOperands());
}

// `region` never runs, nor what only it calls.
void Steps::skip(Region &region) {
  if (reached.dead.insert(&region).second)
    for (Operation &op : region.getOps())
      calls.walk(&op, [&](Operation *inner) { reached.ops.insert(inner); });
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult Steps::runFor(scf::ForOp loop) {
  std::optional<int64_t> first = integerOf(loop.getLowerBound()),
                         end = integerOf(loop.getUpperBound()),
                         step = integerOf(loop.getStep());
  Facts facts = factsOf(loop.getInitArgs());
  if (!first || !end || !step || *step < 1 || loop.getUnsignedCmp())
    return runUnknownFor(loop, facts);
  uint64_t count =
      *first < *end ? (uint64_t(*end) - *first - 1) / *step + 1 : 0;
  if (count == 0)
    skip(loop.getRegion());
  Type type = loop.getInductionVar().getType();
  for (uint64_t n = 0; n < count; ++n) {
    int64_t before = ops++; // an empty iteration takes its time, too
    frame[loop.getInductionVar()] =
        constant(IntegerAttr::get(type, *first + n * *step));
    bind(loop.getRegionIterArgs(), facts);
    FailureOr<Facts> next = run(*loop.getBody());
    if (failed(next))
      return failure();
    facts = *next;
    // Of too many iterations, the others are followed as any number of them.
    uint64_t left = std::max<int64_t>(kMaxOps - ops, 0);
    if (count - 1 - n > left / (ops - before))
      return runUnknownFor(loop, facts);
  }
  bind(loop.getResults(), facts);
  return success();
}

// A layer of which `marks` say something else than `others`.
static std::optional<int64_t> findChange(const std::map<int64_t, Mark> &marks,
                                         const std::map<int64_t, Mark> &others) {
  for (const auto &[layer, mark] : marks) {
    auto other = others.find(layer);
    if (other == others.end() || !other->second.isLike(mark))
      return layer;
  }
  return std::nullopt;
}

// Each iteration of a loop of unknown count leaves the open step as it is.
static LogicalResult checkWholeSteps(scf::ForOp loop, const CacheState &from,
                                     const CacheState &to) {
  std::optional<int64_t> layer = findChange(to.marks, from.marks);
  const auto &marks = layer ? to.marks : from.marks;
  if (!layer)
    layer = findChange(from.marks, to.marks);
  if (!layer)
    return success();
  InFlightDiagnostic diag =
      loop.emitOpError()
      << "expected a loop that appends to layers to have constant bounds, or "
         "whole steps in each iteration, but got one that changes the open "
         "step's append to layer "
      << *layer;
  AppendOp append = marks.at(*layer).op;
  diag.attachNote(append.getLoc()) << "appended to here";
  return diag;
}

// Whether `next` says less than `known`, or names more that went into a value.
// Numbers above `last` mean nothing to another pass over a loop.
static bool hasNews(const Fact &known, const Fact &next, unsigned last) {
  auto isKnown = [&](const StepPositions &made) {
    return llvm::any_of(known.origin.positions, [&](const StepPositions &old) {
      auto isLike = [&](unsigned a, unsigned b) {
        return a == b || (a > last && b > last);
      };
      return old.op == made.op && isLike(old.lengths, made.lengths) &&
             isLike(old.sequences.number, made.sequences.number);
    });
  };
  return known.positions.has_value() != next.positions.has_value() ||
         known.origin.joins.size() != next.origin.joins.size() ||
         known.origin.isOfPositions != next.origin.isOfPositions ||
         !llvm::all_of(next.origin.positions, isKnown) ||
         TokenCounts(known.tokens).keepCommon(next.tokens) ||
         (known.cache &&
          TokenCounts(known.cache->atLeast).keepCommon(next.cache->atLeast));
}

// The first pass is the first iteration. What it changes isn't known in the
// next, and so on until a pass changes nothing more: that one is any iteration.
LogicalResult Steps::runUnknownFor(scf::ForOp loop, Facts facts) {
  const Facts before = facts;
  unsigned last = rules.newNumber();
  SmallVector<bool> isOther(facts.size(), false),
      hasOtherLengths(facts.size(), false);
  for (bool isStable = false; !isStable;) {
    isStable = true;
    ++ops; // an empty iteration takes its time, too
    frame[loop.getInductionVar()] = fresh();
    bind(loop.getRegionIterArgs(), facts);
    FailureOr<Facts> after = run(*loop.getBody());
    if (failed(after))
      return failure();
    auto change = [&](bool &known, bool isChanged) {
      isStable &= known || !isChanged;
      known |= isChanged;
    };
    for (auto [i, fact] : llvm::enumerate(facts)) {
      const Fact &end = (*after)[i];
      if (fact.cache && failed(checkWholeSteps(loop, *fact.cache, *end.cache)))
        return failure();
      Fact next = merge(fact, end);
      isStable &= !hasNews(fact, next, last);
      change(isOther[i], !(fact.identity == next.identity));
      if (fact.cache && fact.cache->lengths != next.cache->lengths) {
        change(hasOtherLengths[i], true);
        rules.end(fact.cache->lengths, loop.getRegionIterArgs()[i]);
      }
      fact = next;
    }
  }
  for (auto [result, was, is] : llvm::zip(loop.getResults(), before, facts))
    if (was.cache && was.cache->lengths != is.cache->lengths)
      rules.end(was.cache->lengths, result);
  bind(loop.getResults(), facts);
  return success();
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

static void mergeMarks(std::map<int64_t, Mark> &marks,
                       const std::map<int64_t, Mark> &others,
                       Operation *branch) {
  for (auto &[layer, mark] : marks) {
    auto other = others.find(layer);
    if (!mark.branch && (other == others.end() || !other->second.isLike(mark)))
      mark.branch = branch;
  }
  for (auto [layer, mark] : others) {
    if (!mark.branch)
      mark.branch = branch;
    marks.try_emplace(layer, mark);
  }
}

Fact Steps::merge(const Fact &a, const Fact &b, Operation *branch) {
  if (a.identity == b.identity)
    return a;
  Fact result = fresh();
  result.tokens = a.tokens;
  result.tokens.keepCommon(b.tokens);
  result.origin = a.origin;
  result.origin.add(b.origin);
  if (a.positions && b.positions && *a.positions == *b.positions)
    result.positions = a.positions;
  if (!a.cache || !b.cache)
    return result;
  result.cache = a.cache;
  CacheState &cache = *result.cache;
  if (a.cache->lengths != b.cache->lengths)
    cache.lengths = rules.newNumber();
  cache.atLeast.keepCommon(b.cache->atLeast);
  mergeMarks(cache.marks, b.cache->marks, branch);
  return result;
}

LogicalResult Steps::runIf(scf::IfOp choice) {
  Region *thenRegion = &choice.getThenRegion(),
         *elseRegion = &choice.getElseRegion();
  auto runBranch = [&](Region *region) -> FailureOr<Facts> {
    return region->empty() ? FailureOr<Facts>(Facts()) : run(region->front());
  };
  if (std::optional<int64_t> isThen = integerOf(choice.getCondition())) {
    skip(*isThen ? *elseRegion : *thenRegion);
    FailureOr<Facts> facts = runBranch(*isThen ? thenRegion : elseRegion);
    if (succeeded(facts))
      bind(choice.getResults(), *facts);
    return facts;
  }
  size_t ends = rules.countEnds();
  FailureOr<Facts> thenFacts = runBranch(thenRegion);
  if (failed(thenFacts))
    return failure();
  StepRules::Ends thenEnds = rules.takeEnds(ends);
  FailureOr<Facts> elseFacts = runBranch(elseRegion);
  if (failed(elseFacts))
    return failure();
  for (auto [lengths, newer] : llvm::reverse(thenEnds))
    rules.end(lengths, newer);
  for (auto [result, a, b] :
       llvm::zip(choice.getResults(), *thenFacts, *elseFacts)) {
    frame[result] = merge(a, b, choice);
    if (a.cache && a.cache->lengths != b.cache->lengths)
      for (const Fact &old : {a, b})
        rules.end(old.cache->lengths, result);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LogicalResult Steps::runCall(func::CallOp call) {
  func::FuncOp callee = calls.bodyOf(call);
  if (!callee || !canEnter(callee)) {
    if (calls.isPartOfStep(call))
      return call.emitOpError()
             << "expected a function of one block that returns, so that its "
                "part of a step can be followed, but got another one";
    if (failed(runOther(call)))
      return failure();
    // What is computed elsewhere is new: the next tokens' rows of this step's.
    if (!callee)
      for (Value result : call.getResults())
        frame[result].origin = {};
    return success();
  }
  if (++depth > kMaxDepth)
    return call.emitOpError()
           << "expected calls of " << kMaxDepth
           << " functions inside of each other at most, so that steps can be "
              "followed, but got more";
  Frame caller;
  Facts operands = factsOf(call.getOperands());
  std::swap(frame, caller);
  bind(callee.getArguments(), operands);
  FailureOr<Facts> facts = run(callee.getBody().front());
  std::swap(frame, caller);
  --depth;
  if (succeeded(facts))
    bind(call.getResults(), *facts);
  return facts;
}
