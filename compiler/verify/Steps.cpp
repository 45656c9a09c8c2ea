// The ops that are no control flow; see Steps.h.
#include "compiler/verify/Steps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

Steps::Facts Steps::factsOf(ValueRange values) {
  Facts facts;
  for (Value value : values)
    facts.push_back(factOf(value));
  return facts;
}

void Steps::bind(ValueRange values, const Facts &facts) {
  for (auto [value, fact] : llvm::zip_equal(values, facts))
    frame[value] = fact;
}

std::optional<int64_t> Steps::integerOf(Value value) {
  auto attribute =
      dyn_cast_or_null<IntegerAttr>(factOf(value).identity.constant);
  if (!attribute || attribute.getValue().getBitWidth() > 64)
    return std::nullopt;
  return attribute.getValue().getSExtValue();
}

LogicalResult Steps::set(Value result, FailureOr<Fact> fact) {
  if (succeeded(fact))
    frame[result] = std::move(*fact);
  return fact;
}

LogicalResult Steps::run(Operation *op) {
  reached.ops.insert(op);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](PositionsOp op) {
        Fact fact = fresh();
        fact.positions =
            StepPositions{op, factOf(op.getCache()).cache->lengths,
                          factOf(op.getSequences()).identity};
        fact.origin = {{*fact.positions}, {}, true};
        return set(op.getResult(), fact);
      })
      .Case([&](AppendOp op) {
        Fact cache = factOf(op.getCache());
        ops += cache.cache->marks.size() / 16; // copies of many take their time
        return set(
            op.getResult(),
            rules.append(op, {cache, factOf(op.getLayer()),
                              factOf(op.getPositions()),
                              factOf(op.getSequences()),
                              factsOf({op.getKeys(), op.getValues()})}));
      })
      .Case([&](AttendOp op) {
        return set(
            op.getResult(),
            rules.attend(op, {factOf(op.getCache()), factOf(op.getLayer()),
                              factOf(op.getPositions()),
                              factOf(op.getSequences()),
                              {factOf(op.getQueries())}}));
      })
      .Case([&](AdvanceOp op) {
        return set(op.getResult(), rules.advance(op, factOf(op.getCache()),
                                                 factOf(op.getSequences())));
      })
      .Case<TruncateOp, ForkOp, ReorderOp>([&](auto op) {
        return set(op.getResult(),
                   rules.changeLengths(op, factOf(op.getCache())));
      })
      .Case([&](RotaryOp op) {
        return set(op.getResult(), rules.rotary(op, factOf(op.getInput()),
                                                factOf(op.getPositions())));
      })
      .Case([&](EmbedOp op) {
        return set(op.getResult(), rules.embed(op, factOf(op.getIds())));
      })
      .Case([&](tensor::CastOp op) {
        Fact fact = factOf(op.getSource());
        fact.tokens.setRows(rowsOf(op.getResult()));
        return set(op, fact);
      })
      .Case([&](scf::ForOp op) { return runFor(op); })
      .Case([&](scf::IfOp op) { return runIf(op); })
      .Case([&](func::CallOp op) { return runCall(op); })
      .Default([&](Operation *op) { return runOther(op); });
}

// What constants make, if that is known.
std::optional<Steps::Facts> Steps::fold(Operation *op) {
  Attribute value;
  if (matchPattern(op, m_Constant(&value)))
    return Facts{constant(value)};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(factOf(operand).identity.constant);
    if (!operands.back())
      return std::nullopt;
  }
  if (operands.empty() || op->getNumRegions())
    return std::nullopt;
  // Of a copy: folding may change the op.
  Operation *copy = op->clone();
  SmallVector<OpFoldResult> folded;
  bool isFolded = succeeded(copy->fold(operands, folded)) &&
                  llvm::all_of(folded, llvm::IsaPred<Attribute>);
  copy->destroy();
  if (!isFolded || folded.size() != op->getNumResults())
    return std::nullopt;
  Facts facts;
  for (OpFoldResult value : folded)
    facts.push_back(constant(cast<Attribute>(value)));
  return facts;
}

// Ops that compute the same of the same operands give the same value. Of rows
// nobody asks which they are.
Identity Steps::identityOf(OpResult result) {
  Operation *op = result.getOwner();
  if (!getElementTypeOrSelf(result.getType()).isIntOrIndex() || !isPure(op) ||
      op->getNumRegions())
    return fresh().identity;
  auto idOf = [](auto object) {
    return reinterpret_cast<uintptr_t>(object.getAsOpaquePointer());
  };
  std::vector<uintptr_t> key{result.getResultNumber(), idOf(op->getName()),
                             idOf(op->getAttrDictionary()),
                             idOf(result.getType())};
  for (Value operand : op->getOperands()) {
    Identity identity = factOf(operand).identity;
    key.push_back(identity.number);
    key.push_back(idOf(identity.constant));
  }
  unsigned &number = computed[key];
  if (!number)
    number = rules.newNumber();
  return {number, {}};
}

// Whether `op` may write into memory what was made at positions, other than
// tokens that rows gave.
bool Steps::writesRows(Operation *op) {
  return llvm::any_of(op->getOperands(), [&](Value to) {
    return isa<BaseMemRefType>(to.getType()) &&
           llvm::any_of(op->getOperands(), [&](Value from) {
             Origin origin = factOf(from).origin;
             return from != to && !from.getType().isIndex() &&
                    (origin.isOfPositions ||
                     (!getElementTypeOrSelf(from).isIntOrIndex() &&
                      !(origin.positions.empty() && origin.joins.empty())));
           });
  });
}

LogicalResult Steps::runOther(Operation *op) {
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<CacheType>))
    return op->emitOpError()
           << "expected a cache that comes from an argument of a function "
              "through kvc ops, calls of functions with a body, scf.for and "
              "scf.if, so that it can be followed, but got one of this op";
  if (std::optional<Facts> facts = fold(op)) {
    bind(op->getResults(), *facts);
    return success();
  }
  if (writesRows(op))
    return op->emitOpError() << "expected rows of a step in tensors, so that "
                                "they can be followed, but got some in memory";
  auto getFact = [&](Value value) { return factOf(value); };
  TokenCounts tokens = countTokens(op, getFact);
  Origin origin = originOf(op, calls, getFact);
  for (OpResult result : op->getResults()) {
    frame[result] = Fact{identityOf(result)};
    frame[result].origin = origin;
    frame[result].tokens = tokens;
  }
  return success();
}

LogicalResult Steps::checkFrom(func::FuncOp root) {
  if (!canEnter(root))
    return success(); // its parts of steps aren't reached, which is an error
  for (Value argument : root.getArguments()) {
    frame[argument] = fresh();
    if (isa<CacheType>(argument.getType()))
      frame[argument].cache = rules.newCache();
  }
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

LogicalResult kvc::contract::checkSteps(ModuleOp module, Calls &calls) {
  Reached reached;
  bool failedOnce = false;
  module.walk([&](func::FuncOp function) {
    if (function.isExternal())
      return;
    auto callers = calls.callersOf(function);
    if (!callers || callers->empty())
      failedOnce |= failed(Steps(calls, reached).checkFrom(function));
  });
  if (failedOnce)
    return failure();
  module.walk([&](Operation *op) {
    if (!calls.isPartOfStep(op) || reached.ops.contains(op))
      return;
    op->emitOpError() << "expected to be reached from a func.func of one block "
                         "through calls, scf.for and scf.if, so that its step "
                         "can be followed, but got an op that isn't";
    failedOnce = true;
  });
  return failure(failedOnce);
}
