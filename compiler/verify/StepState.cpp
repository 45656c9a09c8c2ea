// The rules of a step; see StepState.h.
#include "compiler/verify/StepState.h"
#include "compiler/verify/Contract.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

void StepRules::end(unsigned lengths, Value newer) {
  Value &entry = newest[lengths];
  ends.emplace_back(lengths, entry);
  entry = newer;
}

StepRules::Ends StepRules::takeEnds(size_t count) {
  Ends taken;
  for (; ends.size() > count; ends.pop_back()) {
    auto [lengths, before] = ends.back();
    taken.emplace_back(lengths, newest[lengths]);
    newest[lengths] = before;
  }
  return taken;
}

LogicalResult StepRules::checkPositions(Operation *op, const Fact &positions) {
  if (!positions.positions)
    return op->emitOpError()
           << "expected positions of one kvc.positions, so that their step can "
              "be followed, but got positions that depend on control flow";
  Value newer = newest.lookup(positions.positions->lengths);
  if (!newer)
    return success();
  InFlightDiagnostic diag =
      op->emitOpError() << "expected positions of this step, but got those of a "
                           "step before, which restart there";
  PositionsOp stale = positions.positions->op;
  diag.attachNote(stale.getLoc()) << "made of the lengths of an older cache";
  diag.attachNote(newer.getLoc())
      << "hint: lengths change here: use kvc.positions of " << nameOf(newer);
  return diag;
}

FailureOr<Fact> StepRules::rotary(RotaryOp op, const Fact &input,
                                  const Fact &positions) {
  if (failed(checkPositions(op, positions)))
    return failure();
  Fact result{{newNumber(), {}}};
  result.origin.add(input.origin);
  result.origin.add({{*positions.positions}});
  return result;
}

// Ids that are i64 are positions.
FailureOr<Fact> StepRules::embed(EmbedOp op, const Fact &ids) {
  Fact result{{newNumber(), {}}};
  if (op.getIds().getType().getElementType().isInteger(32)) {
    if (!ids.origin.isOfPositions)
      return result;
    PositionsOp source = ids.origin.positions.front().op;
    InFlightDiagnostic diag =
        op.emitOpError() << "expected ids of tokens, or positions as "
                            "kvc.positions gives them, but got ids that are "
                            "computed of positions";
    diag.attachNote(source.getLoc()) << "hint: use " << nameOf(source);
    return diag;
  }
  if (failed(checkPositions(op, ids)))
    return failure();
  result.origin.add({{*ids.positions}});
  PositionsOp source = ids.positions->op;
  int64_t capacity = source.getCache().getType().getCapacity();
  auto table = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getTableAttr());
  int64_t rows = table.getLayerShape()[0];
  if (rows >= capacity)
    return result;
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

// What is rotated or embedded at positions belongs to the step of these.
LogicalResult StepRules::checkMadeAt(Operation *op, StringRef what,
                                     const Fact &rows,
                                     const StepPositions &positions) {
  for (StepPositions made : rows.origin.positions) {
    if (made == positions)
      continue;
    InFlightDiagnostic diag =
        op->emitOpError() << "expected " << what
                          << " that were made at the op's own positions, but "
                             "got some made at those of "
                          << (newest.lookup(made.lengths) ? "a step before"
                              : made.lengths != positions.lengths
                                  ? "another cache"
                                  : "other tokens");
    diag.attachNote(made.op.getLoc()) << "made at these positions";
    PositionsOp own = positions.op;
    diag.attachNote(own.getLoc()) << "hint: make them at " << nameOf(own);
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Appending and reading
//===----------------------------------------------------------------------===//

// The layer, after the checks that append and attend share.
FailureOr<int64_t> StepRules::checkAccess(Operation *op,
                                          TypedValue<CacheType> cache,
                                          const Access &access) {
  auto constant = dyn_cast_or_null<IntegerAttr>(access.layer.identity.constant);
  if (!constant)
    return op->emitOpError()
           << "expected a layer that is a constant or the variable of a loop "
              "with constant bounds, so that layers can be followed, but got "
              "one that isn't known";
  int64_t layers = cache.getType().getLayers();
  int64_t number = constant.getInt();
  if (number < 0 || number >= layers)
    return op->emitOpError() << "expected a layer from 0 to " << layers - 1
                             << ", but got " << number;
  if (failed(checkPositions(op, access.positions)))
    return failure();
  const StepPositions &positions = *access.positions.positions;
  PositionsOp source = positions.op;
  if (positions.lengths != access.cache.cache->lengths) {
    InFlightDiagnostic diag =
        op->emitOpError()
        << "expected positions of the cache that the op takes, but got those of "
           "another cache";
    diag.attachNote(source.getLoc()) << "made of another cache here";
    diag.attachNote(cache.getLoc())
        << "hint: use kvc.positions of " << nameOf(cache);
    return diag;
  }
  if (!(positions.sequences == access.sequences.identity)) {
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

// Of the two notes on a layer that one branch appended to, the second says where
// the other append should stand.
static void noteOneBranch(InFlightDiagnostic &diag, const Mark &mark,
                          int64_t layer) {
  diag.attachNote(AppendOp(mark.op).getLoc()) << "appended in one branch";
  diag.attachNote(mark.branch->getLoc())
      << "hint: append to layer " << layer << " in the other branch, too";
}

LogicalResult StepRules::checkCapacity(AppendOp op, const CacheState &cache,
                                       const Fact &sequences) {
  int64_t capacity = op.getCache().getType().getCapacity();
  TokenCounts chunk =
      countTokens(op.getSequences(), sequences, rowsOf(op->getOperands()));
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

FailureOr<Fact> StepRules::append(AppendOp op, const Access &access) {
  FailureOr<int64_t> number = checkAccess(op, op.getCache(), access);
  if (failed(number))
    return failure();
  auto found = access.cache.cache->marks.find(*number);
  if (found != access.cache.cache->marks.end()) {
    InFlightDiagnostic diag =
        op.emitOpError() << "expected one append to a layer in a step, but got a "
                            "second one to layer "
                         << *number;
    if (found->second.branch) {
      noteOneBranch(diag, found->second, *number);
      return diag;
    }
    diag.attachNote(AppendOp(found->second.op).getLoc()) << "appended to here";
    diag.attachNote(op.getCache().getLoc())
        << "hint: use " << nameOf(op.getCache())
        << ", which has the chunk in this layer already";
    return diag;
  }
  const StepPositions &positions = *access.positions.positions;
  if (failed(checkMadeAt(op, "keys", access.rows[0], positions)) ||
      failed(checkMadeAt(op, "values", access.rows[1], positions)) ||
      failed(checkHeads(op, access.rows[0], access.rows[1])) ||
      failed(checkCapacity(op, *access.cache.cache, access.sequences)))
    return failure();
  Fact next{{newNumber(), {}}, access.cache.cache};
  next.cache->marks[*number] = Mark{op, access.sequences.identity};
  return next;
}

FailureOr<Fact> StepRules::attend(AttendOp op, const Access &access) {
  FailureOr<int64_t> number = checkAccess(op, op.getCache(), access);
  if (failed(number))
    return failure();
  auto found = access.cache.cache->marks.find(*number);
  bool isAppended = found != access.cache.cache->marks.end();
  if (!isAppended || found->second.branch) {
    InFlightDiagnostic diag =
        op.emitOpError()
        << "expected the step's keys of layer " << *number
        << " to be appended before they are read, but got a cache "
        << (isAppended ? "to which one branch only appended them"
                       : "without them");
    if (isAppended) {
      noteOneBranch(diag, found->second, *number);
      return diag;
    }
    diag.attachNote(op.getCache().getLoc()) << "this cache";
    for (Operation *user : op.getCache().getUsers())
      if (auto append = dyn_cast<AppendOp>(user))
        if (append.getLayer() == op.getLayer()) {
          diag.attachNote(append.getLoc())
              << "hint: use " << nameOf(append.getResult());
          return diag;
        }
    diag.attachNote(op.getLoc())
        << "hint: use what kvc.append to " << nameOf(op.getCache())
        << " at layer " << *number << " gives";
    return diag;
  }
  if (found->second.sequences == access.sequences.identity) {
    if (failed(checkMadeAt(op, "queries", access.rows[0],
                           *access.positions.positions)))
      return failure();
    return Fact{{newNumber(), {}}};
  }
  InFlightDiagnostic diag =
      op.emitOpError() << "expected the tokens that were appended to layer "
                       << *number << ", but got others";
  diag.attachNote(op.getSequences().getLoc()) << "the sequences of others";
  AppendOp appended = found->second.op;
  diag.attachNote(appended.getLoc())
      << "hint: use " << nameOf(appended.getSequences()) << " of this append";
  return diag;
}

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

FailureOr<Fact> StepRules::advance(AdvanceOp op, const Fact &cache,
                                   const Fact &sequences) {
  const auto &marks = cache.cache->marks;
  int64_t layers = op.getCache().getType().getLayers(), missing = 0;
  for (const auto &[number, mark] : marks) {
    if (number == missing)
      ++missing;
    if (mark.branch) {
      InFlightDiagnostic diag =
          op.emitOpError()
          << "expected an append to each of the cache's " << layers
          << " layers, so that all have one length, but got one to layer "
          << number << " in one branch only";
      noteOneBranch(diag, mark, number);
      return diag;
    }
    if (mark.sequences == sequences.identity)
      continue;
    InFlightDiagnostic diag =
        op.emitOpError() << "expected the sequences of the tokens that were "
                            "appended, but got others";
    diag.attachNote(op.getSequences().getLoc()) << "the sequences of others";
    AppendOp appended = mark.op;
    diag.attachNote(appended.getLoc())
        << "hint: use " << nameOf(appended.getSequences()) << " of this append";
    return diag;
  }
  if (missing < layers) {
    InFlightDiagnostic diag =
        op.emitOpError() << "expected an append to each of the cache's " << layers
                         << " layers, so that all have one length, but got none "
                            "to layer "
                         << missing;
    diag.attachNote(op.getCache().getLoc()) << "this cache";
    diag.attachNote(op.getLoc()) << "hint: use what kvc.append to "
                                 << nameOf(op.getCache()) << " at layer "
                                 << missing << " gives";
    return diag;
  }
  AppendOp appended = marks.begin()->second.op;
  Fact next{{newNumber(), {}}, cache.cache};
  end(cache.cache->lengths, op.getResult());
  next.cache->lengths = newNumber();
  next.cache->marks.clear();
  next.cache->atLeast.add(countTokens(op.getSequences(), sequences,
                                      rowsOf(appended->getOperands())));
  return next;
}

LogicalResult StepRules::checkBetweenSteps(Operation *op, Value cache,
                                           const Fact &fact) {
  if (fact.cache->marks.empty())
    return success();
  InFlightDiagnostic diag =
      op->emitOpError() << "expected a cache between two steps, but got one "
                           "that was appended to and not advanced";
  AppendOp appended = fact.cache->marks.begin()->second.op;
  diag.attachNote(appended.getLoc()) << "appended to here";
  diag.attachNote(cache.getLoc())
      << "hint: use what kvc.advance of " << nameOf(cache) << " gives";
  return diag;
}

FailureOr<Fact> StepRules::changeLengths(Operation *op, const Fact &cache) {
  if (failed(checkBetweenSteps(op, op->getOperand(0), cache)))
    return failure();
  Fact next{{newNumber(), {}}, cache.cache};
  end(cache.cache->lengths, op->getResult(0));
  next.cache->lengths = newNumber();
  next.cache->atLeast.clear();
  return next;
}
