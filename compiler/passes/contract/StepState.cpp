// The rules of a step; see StepState.h.
#include "compiler/passes/contract/StepState.h"
#include "compiler/passes/contract/Contract.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

CacheState StepRules::newCache(CacheType type) {
  CacheState state;
  state.lengths = newNumber();
  state.layers.resize(type.getLayers());
  return state;
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

LogicalResult StepRules::checkPositions(Operation *op, const Fact &positions) {
  if (!positions.positions)
    return op->emitOpError()
           << "expected positions of one kvc.positions, so that their step can "
              "be followed, but got positions that depend on control flow";
  Operation *end = endedBy.lookup(positions.positions->lengths);
  if (!end)
    return success();
  InFlightDiagnostic diag =
      op->emitOpError() << "expected positions of this step, but got those of a "
                           "step before, which restart there";
  PositionsOp stale = positions.positions->op;
  diag.attachNote(stale.getLoc()) << "made of the lengths of an older cache";
  for (Value result : end->getResults())
    if (isa<CacheType>(result.getType())) {
      diag.attachNote(end->getLoc())
          << "hint: lengths change here: use kvc.positions of "
          << nameOf(result);
      break;
    }
  return diag;
}

LogicalResult StepRules::embed(EmbedOp op, const Fact &positions) {
  if (failed(checkPositions(op, positions)))
    return failure();
  PositionsOp source = positions.positions->op;
  int64_t capacity = source.getCache().getType().getCapacity();
  auto table = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getTableAttr());
  int64_t rows = table.getLayerShape()[0];
  if (rows >= capacity)
    return success();
  InFlightDiagnostic diag =
      op.emitOpError() << "expected a position table with a row for each position "
                          "of the cache's capacity ("
                       << capacity << "), but got " << rows << " rows";
  diag.attachNote(table.getLoc()) << "the table";
  diag.attachNote(source.getCache().getLoc())
      << "hint: use a capacity of " << rows << " at most for "
      << nameOf(source.getCache());
  return diag;
}

//===----------------------------------------------------------------------===//
// Appending and reading
//===----------------------------------------------------------------------===//

// The layer, after the checks that append and attend share.
FailureOr<int64_t> StepRules::checkAccess(Operation *op, Value cache,
                                          const Fact &cacheFact,
                                          const Fact &layer,
                                          const Fact &positions,
                                          const Fact &sequences) {
  auto constant = dyn_cast_or_null<IntegerAttr>(layer.identity.constant);
  if (!constant)
    return op->emitOpError()
           << "expected a layer that is a constant or the variable of a loop "
              "with constant bounds, so that layers can be followed, but got "
              "one that isn't known";
  int64_t layers = cacheFact.cache->layers.size();
  int64_t number = constant.getInt();
  if (number < 0 || number >= layers)
    return op->emitOpError() << "expected a layer from 0 to " << layers - 1
                             << ", but got " << number;
  if (failed(checkPositions(op, positions)))
    return failure();
  PositionsOp source = positions.positions->op;
  if (positions.positions->lengths != cacheFact.cache->lengths) {
    InFlightDiagnostic diag =
        op->emitOpError()
        << "expected positions of the cache that the op takes, but got those of "
           "another cache";
    diag.attachNote(source.getLoc()) << "made of another cache here";
    diag.attachNote(cache.getLoc())
        << "hint: use kvc.positions of " << nameOf(cache);
    return diag;
  }
  if (!(positions.positions->sequences == sequences.identity)) {
    InFlightDiagnostic diag =
        op->emitOpError()
        << "expected positions of the op's own sequences, but got those of "
           "other tokens";
    diag.attachNote(source.getLoc()) << "made of other sequences here";
    diag.attachNote(source.getSequences().getLoc())
        << "hint: use " << nameOf(source.getSequences());
    return diag;
  }
  return number;
}

LogicalResult StepRules::checkCapacity(AppendOp op, const CacheState &cache,
                                       const Fact &sequences) {
  int64_t capacity = op.getCache().getType().getCapacity();
  TokenCounts chunk = countTokens(op.getSequences(), sequences);
  for (const auto &[sequence, tokens] : chunk) {
    int64_t before = cache.atLeast.of(sequence);
    uint64_t after = uint64_t(before) + tokens.count;
    if (after <= uint64_t(capacity))
      continue;
    InFlightDiagnostic diag =
        op.emitOpError() << "expected a chunk that fits into the capacity of "
                         << capacity << " positions, but got " << tokens.count
                         << (tokens.count == 1 ? " token of " : " tokens of ")
                         << chunk.nameOf(sequence) << " after " << before;
    diag.attachNote(op.getSequences().getLoc()) << "the tokens' sequences";
    Diagnostic &hint = diag.attachNote(op.getCache().getLoc())
                       << "hint: use a capacity of " << after
                       << " at least for " << nameOf(op.getCache());
    if (before < capacity)
      hint << ", or at most " << capacity - before << " of these tokens here";
    return diag;
  }
  return success();
}

FailureOr<Fact> StepRules::append(AppendOp op, const Fact &cache,
                                  const Fact &layer, const Fact &positions,
                                  const Fact &sequences) {
  FailureOr<int64_t> number =
      checkAccess(op, op.getCache(), cache, layer, positions, sequences);
  if (failed(number))
    return failure();
  if (const auto &mark = cache.cache->layers[*number]) {
    InFlightDiagnostic diag =
        op.emitOpError() << "expected one append to a layer in a step, but got a "
                            "second one to layer "
                         << *number;
    diag.attachNote(AppendOp(mark->op).getLoc()) << "appended to here";
    diag.attachNote(op.getCache().getLoc())
        << "hint: use " << nameOf(op.getCache())
        << ", which has the chunk in this layer already";
    return diag;
  }
  if (failed(checkCapacity(op, *cache.cache, sequences)))
    return failure();
  Fact next{{newNumber(), {}}, cache.cache, {}};
  next.cache->layers[*number] = Mark{op, sequences.identity};
  return next;
}

LogicalResult StepRules::attend(AttendOp op, const Fact &cache,
                                const Fact &layer, const Fact &positions,
                                const Fact &sequences) {
  FailureOr<int64_t> number =
      checkAccess(op, op.getCache(), cache, layer, positions, sequences);
  if (failed(number))
    return failure();
  const auto &mark = cache.cache->layers[*number];
  if (!mark || mark->isInOneBranch) {
    InFlightDiagnostic diag =
        op.emitOpError()
        << "expected the step's keys of layer " << *number
        << " to be appended before they are read, but got a cache "
        << (mark ? "to which one branch only appended them" : "without them");
    if (mark)
      diag.attachNote(AppendOp(mark->op).getLoc()) << "appended in one branch";
    else
      diag.attachNote(op.getCache().getLoc()) << "this cache";
    for (Operation *user : op.getCache().getUsers())
      if (auto append = dyn_cast<AppendOp>(user)) {
        diag.attachNote(append.getLoc())
            << "hint: use " << nameOf(append.getResult());
        return diag;
      }
    diag.attachNote(op.getLoc())
        << "hint: use what kvc.append to " << nameOf(op.getCache()) << " gives";
    return diag;
  }
  if (mark->sequences == sequences.identity)
    return success();
  InFlightDiagnostic diag =
      op.emitOpError() << "expected the tokens that were appended to layer "
                       << *number << ", but got others";
  diag.attachNote(op.getSequences().getLoc()) << "the sequences of others";
  AppendOp appended = mark->op;
  diag.attachNote(appended.getLoc())
      << "hint: use " << nameOf(appended.getSequences()) << " of this append";
  return diag;
}

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

FailureOr<Fact> StepRules::advance(AdvanceOp op, const Fact &cache,
                                   const Fact &sequences) {
  int64_t layers = cache.cache->layers.size();
  for (auto [number, mark] : llvm::enumerate(cache.cache->layers)) {
    if (mark && !mark->isInOneBranch) {
      if (mark->sequences == sequences.identity)
        continue;
      InFlightDiagnostic diag =
          op.emitOpError() << "expected the sequences of the tokens that were "
                              "appended, but got others";
      diag.attachNote(op.getSequences().getLoc()) << "the sequences of others";
      AppendOp appended = mark->op;
      diag.attachNote(appended.getLoc())
          << "hint: use " << nameOf(appended.getSequences())
          << " of this append";
      return diag;
    }
    InFlightDiagnostic diag =
        op.emitOpError() << "expected an append to each of the cache's " << layers
                         << " layers, so that all have one length, but got "
                         << (mark ? "one to layer " : "none to layer ") << number
                         << (mark ? " in one branch only" : "");
    if (mark)
      diag.attachNote(AppendOp(mark->op).getLoc()) << "appended in one branch";
    else
      diag.attachNote(op.getCache().getLoc()) << "this cache";
    diag.attachNote(op.getLoc()) << "hint: use what kvc.append to "
                                 << nameOf(op.getCache()) << " at layer "
                                 << number << " gives";
    return diag;
  }
  Fact next{{newNumber(), {}}, cache.cache, {}};
  endedBy[cache.cache->lengths] = op;
  next.cache->lengths = newNumber();
  llvm::fill(next.cache->layers, std::nullopt);
  next.cache->atLeast.add(countTokens(op.getSequences(), sequences));
  return next;
}

LogicalResult StepRules::checkBetweenSteps(Operation *op, Value cache,
                                           const Fact &fact) {
  for (const auto &mark : fact.cache->layers) {
    if (!mark)
      continue;
    InFlightDiagnostic diag =
        op->emitOpError() << "expected a cache between two steps, but got one "
                             "that was appended to and not advanced";
    diag.attachNote(AppendOp(mark->op).getLoc()) << "appended to here";
    diag.attachNote(cache.getLoc())
        << "hint: use what kvc.advance of " << nameOf(cache) << " gives";
    return diag;
  }
  return success();
}

FailureOr<Fact> StepRules::changeLengths(Operation *op, const Fact &cache) {
  if (failed(checkBetweenSteps(op, op->getOperand(0), cache)))
    return failure();
  Fact next{{newNumber(), {}}, cache.cache, {}};
  endedBy[cache.cache->lengths] = op;
  next.cache->lengths = newNumber();
  next.cache->atLeast.clear();
  return next;
}
