// The rules of a step: each op takes the newest value of a cache, at positions
// that its lengths made; one append to each layer, reads after it, one advance.
// See Follow.h.
#include "compiler/verify/Follow.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

// The cache, if `value` is the newest one of it.
FailureOr<Cache *> Follower::read(Operation *op, Value value) {
  Fact &fact = factOf(value);
  if (!fact.consumer)
    return fact.cache;
  bool isTwice = fact.consumer == op;
  InFlightDiagnostic diag =
      op->emitOpError()
      << "expected the newest value of the cache, but got one that "
      << (isTwice ? "the same op consumes" : "was consumed before");
  diag.attachNote(fact.consumer->getLoc())
      << (fact.consumer->hasTrait<OpTrait::IsTerminator>()
              ? "handed on here"
              : "consumed here; the cache that this op gives is the newer value");
  if (!isTwice && fact.cache->newest != value)
    diag.attachNote(fact.cache->newest.getLoc())
        << "hint: use " << nameOf(fact.cache->newest);
  return diag;
}

// The same, where `op` makes the next value of it, or hands it on.
FailureOr<Cache *> Follower::consume(Operation *op, Value value) {
  FailureOr<Cache *> cache = read(op, value);
  if (failed(cache))
    return failure();
  Fact &fact = factOf(value);
  fact.consumer = op;
  if (fact.loops == loops)
    return cache;
  InFlightDiagnostic diag =
      op->emitOpError() << "expected a cache that a loop consumes to be "
                           "carried by the loop, but got one from outside";
  diag.attachNote(op->getParentOfType<scf::ForOp>().getLoc())
      << "consumed in each iteration of this loop";
  return diag;
}

void Follower::bind(Value value, Cache &cache) {
  Fact fact{++numbers, value};
  fact.cache = &cache;
  fact.loops = loops;
  facts[value] = fact;
  cache.newest = value;
}

// From here on `newer` is the cache, and positions made of its lengths till now
// are stale.
void Follower::endStep(Cache &cache, Value newer) {
  made.erase(cache.lengths);
  ended[cache.lengths] = newer;
  cache.lengths = ++numbers;
  cache.step.clear();
  bind(newer, cache);
}

// Lengths may change, and a cache leave the program, between two steps only.
LogicalResult Follower::checkBetweenSteps(Operation *op, Value value) {
  FailureOr<Cache *> cache = read(op, value);
  if (failed(cache) || (*cache)->step.empty())
    return cache;
  InFlightDiagnostic diag =
      op->emitOpError() << "expected a cache between two steps, but got one "
                           "that was appended to and not advanced";
  diag.attachNote((*cache)->step.begin()->second.op.getLoc())
      << "appended to here";
  diag.attachNote(value.getLoc())
      << "hint: use what kvc.advance of " << nameOf(value) << " gives";
  return diag;
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

// `source` made what `op` takes for positions. A mask that doesn't start at the
// first position of the sequence is a mistake of its own: its rows are those of the
// chunk, and the keys are all before it.
LogicalResult Follower::reportForeign(Operation *op, Value source,
                                      Cache *cache) {
  InFlightDiagnostic diag = op->emitOpError();
  Operation *maker = source.getDefiningOp();
  if (isa<AttendOp>(op) && maker &&
      llvm::none_of(maker->getOperandTypes(), llvm::IsaPred<TensorType>))
    diag << "expected a mask with a row for each query and a column for each "
            "position of the sequence, from kvc.positions, but got a mask that "
            "is square over the rows of ";
  else
    diag << "expected positions that kvc.positions made from the lengths of the "
            "cache, but got ";
  if (maker)
    diag << "the result of " << maker->getName().getStringRef();
  else
    diag << "an argument of @" << function.getName()
         << ", which anyone may call";
  diag.attachNote(source.getLoc()) << "positions of another origin";
  // The latest positions that the op could take: of its cache, or of the only one.
  auto found = cache ? made.find(cache->lengths)
                     : made.size() == 1 ? made.begin() : made.end();
  if (found != made.end())
    diag.attachNote(found->second.getLoc())
        << "hint: use " << nameOf(found->second);
  else
    diag.attachNote(op->getLoc())
        << "hint: use kvc.positions of the cache that the step starts with";
  return diag;
}

FailureOr<Positions> Follower::positionsFor(Operation *op, Value value,
                                            Cache *cache) {
  Fact &fact = factOf(value);
  if (!fact.positions)
    return reportForeign(op, fact.source, cache);
  Positions positions = *fact.positions;
  Value newer = ended.lookup(positions.lengths);
  if (!newer)
    return positions;
  InFlightDiagnostic diag =
      op->emitOpError() << "expected positions of this step, but got those of a "
                           "step before, which restart there";
  diag.attachNote(positions.op.getLoc())
      << "made of the lengths of an older cache";
  diag.attachNote(newer.getLoc())
      << "hint: lengths change here: use kvc.positions of " << nameOf(newer);
  return diag;
}

LogicalResult Follower::positions(PositionsOp op) {
  FailureOr<Cache *> cache = read(op, op.getCache());
  if (failed(cache))
    return failure();
  Fact fact{++numbers, op};
  fact.positions = Positions{op, (*cache)->lengths,
                             factOf(op.getSequences()).number};
  fact.origin.positions.push_back(*fact.positions);
  facts[op] = fact;
  made[(*cache)->lengths] = op;
  return success();
}

LogicalResult Follower::rotary(RotaryOp op) {
  FailureOr<Positions> positions = positionsFor(op, op.getPositions());
  if (failed(positions))
    return failure();
  Fact result{++numbers, op};
  result.origin = factOf(op.getInput()).origin;
  result.origin.add({{*positions}});
  return facts[op] = result, success();
}

LogicalResult Follower::embed(EmbedOp op) {
  Fact result{++numbers, op};
  if (!op.getPositions()) {
    Origin origin = factOf(op.getIds()).origin;
    if (origin.positions.empty())
      return facts[op] = result, success();
    InFlightDiagnostic diag =
        op.emitOpError() << "expected ids of tokens, or positions as "
                            "kvc.positions gives them, but got ids that are "
                            "computed of positions";
    PositionsOp source = origin.positions.front().op;
    diag.attachNote(source.getLoc()) << "hint: use " << nameOf(source);
    return diag;
  }
  FailureOr<Positions> positions = positionsFor(op, op.getPositions());
  if (failed(positions))
    return failure();
  result.origin.positions.push_back(*positions);
  facts[op] = result;
  Value cache = positions->op.getCache();
  int64_t capacity = cast<CacheType>(cache.getType()).getCapacity();
  auto table = symbols.lookupNearestSymbolFrom<WeightOp>(op, op.getTableAttr());
  int64_t rows = table.getLayerShape()[0];
  if (rows >= capacity)
    return success();
  InFlightDiagnostic diag =
      op.emitOpError() << "expected a position table with a row for each position "
                          "of the cache's capacity ("
                       << capacity << "), but got " << rows << " rows";
  diag.attachNote(table.getLoc()) << "the table";
  diag.attachNote(cache.getLoc()) << "hint: use a capacity of " << rows
                                  << " at most for " << nameOf(cache);
  return diag;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

FailureOr<int64_t> Follower::layerFor(Operation *op, Value layer,
                                      int64_t layers) {
  std::optional<int64_t> number = integerOf(layer);
  if (!number)
    return op->emitOpError()
           << "expected a layer that is made of constants and variables of loops "
              "with constant bounds, so that layers can be followed, but got "
              "one that isn't known";
  if (*number < 0 || *number >= layers)
    return op->emitOpError() << "expected a layer from 0 to " << layers - 1
                             << ", but got " << *number;
  return *number;
}

// The layer of the cache that an append or an attend names.
template <typename Op> FailureOr<Layer> Follower::cacheLayerFor(Op op) {
  FailureOr<int64_t> layer =
      layerFor(op, op.getLayer(), op.getCacheGroup().layers);
  if (failed(layer))
    return failure();
  return Layer(op.getGroup(), *layer);
}

// "layer 2", and of which group where the cache has several.
static std::string textOf(CacheType cache, Layer layer) {
  std::string text = "layer " + std::to_string(layer.second);
  if (cache.getGroups().size() > 1)
    text += " of group " + std::to_string(layer.first);
  return text;
}

// Every weight that an op indexes by a layer has that layer.
LogicalResult Follower::checkWeightLayers(WeightUser user) {
  if (!user.getLayer())
    return success();
  for (const WeightUse &use : user.getWeights()) {
    auto weight = symbols.lookupNearestSymbolFrom<NamedWeight>(user, use.symbol);
    if (failed(layerFor(user, user.getLayer(), weight.getLayers())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Appending and reading
//===----------------------------------------------------------------------===//

// The positions of an append or an attend are those of its cache and sequences.
FailureOr<Positions> Follower::accessFor(Operation *op, Value cache,
                                         Value positions, Value sequences) {
  Cache *state = factOf(cache).cache;
  FailureOr<Positions> made = positionsFor(op, positions, state);
  if (failed(made))
    return failure();
  if (made->lengths != state->lengths) {
    InFlightDiagnostic diag =
        op->emitOpError()
        << "expected positions of the cache that the op takes, but got those of "
           "another cache";
    diag.attachNote(made->op.getLoc()) << "made of another cache here";
    diag.attachNote(cache.getLoc())
        << "hint: use kvc.positions of " << nameOf(cache);
    return diag;
  }
  if (made->sequences != factOf(sequences).number) {
    Value own = made->op.getSequences();
    InFlightDiagnostic diag =
        op->emitOpError()
        << "expected positions of the op's own sequences, but got those of "
           "other tokens";
    diag.attachNote(made->op.getLoc()) << "made of other sequences here";
    diag.attachNote(own.getLoc()) << "hint: use " << nameOf(own);
    return diag;
  }
  return made;
}

// Tokens that aren't those of the append.
static void noteOthers(InFlightDiagnostic &diag, Value sequences, AppendOp append) {
  diag.attachNote(sequences.getLoc()) << "the sequences of others";
  diag.attachNote(append.getLoc())
      << "hint: use " << nameOf(append.getSequences()) << " of this append";
}

LogicalResult Follower::append(AppendOp op) {
  FailureOr<Cache *> cache = consume(op, op.getCache());
  if (failed(cache))
    return failure();
  FailureOr<Positions> positions =
      accessFor(op, op.getCache(), op.getPositions(), op.getSequences());
  if (failed(positions))
    return failure();
  CacheType type = op.getCache().getType();
  FailureOr<Layer> layer = cacheLayerFor(op);
  if (failed(layer))
    return failure();
  auto [entry, isNew] =
      (*cache)->step.try_emplace(*layer, Cache::Append{op, positions->sequences});
  if (!isNew) {
    InFlightDiagnostic diag =
        op.emitOpError() << "expected one append to a layer in a step, but got a "
                            "second one to "
                         << textOf(type, *layer);
    diag.attachNote(entry->second.op.getLoc()) << "appended to here";
    diag.attachNote(op.getCache().getLoc())
        << "hint: use " << nameOf(op.getCache())
        << ", which has the chunk in this layer already";
    return diag;
  }
  if (failed(checkMadeAt(op, "keys", op.getKeys(), *positions)) ||
      failed(checkMadeAt(op, "values", op.getValues(), *positions)) ||
      failed(checkHeads(op, "keys", op.getKeys(), op.getCacheGroup().keyWidth)) ||
      failed(checkHeads(op, "values", op.getValues(),
                        op.getCacheGroup().valueWidth)) ||
      failed(checkCapacity(op, **cache)))
    return failure();
  return bind(op.getResult(), **cache), success();
}

LogicalResult Follower::attend(AttendOp op) {
  FailureOr<Cache *> cache = read(op, op.getCache());
  if (failed(cache))
    return failure();
  FailureOr<Positions> positions =
      accessFor(op, op.getCache(), op.getPositions(), op.getSequences());
  if (failed(positions))
    return failure();
  CacheType type = op.getCache().getType();
  FailureOr<Layer> layer = cacheLayerFor(op);
  if (failed(layer))
    return failure();
  auto found = (*cache)->step.find(*layer);
  if (found == (*cache)->step.end()) {
    InFlightDiagnostic diag = op.emitOpError()
                              << "expected the step's keys of "
                              << textOf(type, *layer)
                              << " to be appended before they are read, but got "
                                 "a cache without them";
    diag.attachNote(op.getCache().getLoc()) << "this cache";
    for (Operation *user : op.getCache().getUsers())
      if (auto append = dyn_cast<AppendOp>(user))
        if (append.getLayer() == op.getLayer() &&
            append.getGroup() == op.getGroup()) {
          diag.attachNote(append.getLoc())
              << "hint: use " << nameOf(append.getResult());
          return diag;
        }
    diag.attachNote(op.getLoc())
        << "hint: use what kvc.append to " << nameOf(op.getCache())
        << " at " << textOf(type, *layer) << " gives";
    return diag;
  }
  if (found->second.sequences != positions->sequences) {
    InFlightDiagnostic diag =
        op.emitOpError() << "expected the tokens that were appended to "
                         << textOf(type, *layer) << ", but got others";
    noteOthers(diag, op.getSequences(), found->second.op);
    return diag;
  }
  if (failed(checkMadeAt(op, "queries", op.getQueries(), *positions)))
    return failure();
  return facts[op] = {++numbers, op}, success();
}

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

LogicalResult Follower::advance(AdvanceOp op) {
  FailureOr<Cache *> cache = consume(op, op.getCache());
  if (failed(cache))
    return failure();
  CacheType type = op.getCache().getType();
  unsigned sequences = factOf(op.getSequences()).number;
  for (const auto &[layer, append] : (*cache)->step) {
    if (append.sequences == sequences)
      continue;
    InFlightDiagnostic diag =
        op.emitOpError() << "expected the sequences of the tokens that were "
                            "appended, but got others";
    noteOthers(diag, op.getSequences(), append.op);
    return diag;
  }
  for (size_t group = 0; group != type.getGroups().size(); ++group)
    for (int64_t i = 0; i != type.getGroups()[group].layers; ++i) {
      Layer missing(group, i);
      if ((*cache)->step.count(missing))
        continue;
      InFlightDiagnostic diag =
          op.emitOpError() << "expected an append to each of the cache's "
                           << type.getLayers()
                           << " layers, so that all have one length, but got none to "
                           << textOf(type, missing);
      diag.attachNote(op.getCache().getLoc()) << "this cache";
      diag.attachNote(op.getLoc()) << "hint: use what kvc.append to "
                                   << nameOf(op.getCache()) << " at "
                                   << textOf(type, missing) << " gives";
      return diag;
    }
  FailureOr<TokenCounts> tokens = tokensOf((*cache)->step.begin()->second.op);
  if (failed(tokens))
    return failure();
  for (const auto &[sequence, more] : *tokens)
    (*cache)->tokens[sequence] += more.first;
  return endStep(**cache, op.getResult()), success();
}

// truncate, fork, reorder
LogicalResult Follower::changeLengths(Operation *op) {
  Value value = op->getOperand(0);
  if (failed(checkBetweenSteps(op, value)))
    return failure();
  FailureOr<Cache *> cache = consume(op, value);
  if (failed(cache))
    return failure();
  (*cache)->tokens.clear();
  return endStep(**cache, op->getResult(0)), success();
}
