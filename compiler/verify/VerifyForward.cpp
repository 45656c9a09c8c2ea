// kvc-verify-forward: see Passes.td.
//
// The runtime checks tokens, sequences, outputs and capacity before a call, and
// generated code checks nothing. So what indexes memory has to come from there:
// ids from the arguments, positions from kvc.positions, layers from constants and
// loops with constant bounds. And there are two numbers of rows, one a token and one an
// output, which must not meet in one op; no other tensor can stand there, since
// the numbers are known in a call only. So an op that indexes or shapes tensors
// by itself is an error.
#include "compiler/verify/VerifyForward.h"
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kvc {
#define GEN_PASS_DEF_VERIFYFORWARD
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

struct Range {
  int64_t first, last;
};

class ForwardVerifier {
public:
  explicit ForwardVerifier(func::FuncOp forward) : forward(forward) {}
  LogicalResult run();

private:
  enum class Rows { Tokens, Outputs };

  LogicalResult checkSignature();
  LogicalResult checkLogits();
  LogicalResult checkOp(Operation *op);
  LogicalResult checkRows(Operation *op);
  LogicalResult setRows(Operation *op, std::optional<Rows> mine);
  LogicalResult checkIf(scf::IfOp choice);
  LogicalResult checkEmbed(EmbedOp op);
  LogicalResult checkRotary(RotaryOp op);
  LogicalResult checkLayer(Operation *op, Value layer, int64_t layers);
  LogicalResult checkWeights(Operation *op, Value layer);
  LogicalResult checkCacheAccess(Operation *op, CacheType cache, Value layer,
                                 Value positions, Value sequences);
  LogicalResult expectArgument(Operation *op, Value value, unsigned number,
                               StringRef what);
  LogicalResult expectPositions(Operation *op, Value positions);

  func::FuncOp forward;
  int64_t vocab = 0;
  DenseMap<Value, Rows> rows; // of tensors with a row a token or an output
};

LogicalResult ForwardVerifier::checkSignature() {
  if (failed(verifyForwardSignature(forward)))
    return failure();
  if (!forward.getBody().hasOneBlock() ||
      !isa<func::ReturnOp>(forward.getBody().front().getTerminator()))
    return forward.emitError()
           << "expected @forward to be one block that ends in a return";
  vocab = logitsTypeOf(forward).getDimSize(1);
  rows[forward.getArgument(ForwardArgument::Tokens)] = Rows::Tokens;
  rows[forward.getArgument(ForwardArgument::Sequences)] = Rows::Tokens;
  rows[forward.getArgument(ForwardArgument::Outputs)] = Rows::Outputs;
  return success();
}

LogicalResult ForwardVerifier::expectArgument(Operation *op, Value value,
                                              unsigned number, StringRef what) {
  if (value == forward.getArgument(number))
    return success();
  return op->emitOpError() << "expected its " << what
                           << " to be argument " << number
                           << " of @forward, which the runtime has checked, but got "
                              "another value";
}

LogicalResult ForwardVerifier::expectPositions(Operation *op, Value positions) {
  if (positions.getDefiningOp<PositionsOp>())
    return success();
  return op->emitOpError()
         << "expected its positions to come from kvc.positions in @forward, but "
            "got another value";
}

// The numbers that an index can be; none of them in a loop that doesn't run.
std::optional<Range> rangeOf(Value index) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return Range{constant.getSExtValue(), constant.getSExtValue()};
  if (auto sum = index.getDefiningOp<arith::AddIOp>()) {
    auto lhs = rangeOf(sum.getLhs()), rhs = rangeOf(sum.getRhs());
    Range range;
    if (!lhs || !rhs ||
        llvm::AddOverflow(lhs->first, rhs->first, range.first) ||
        llvm::AddOverflow(lhs->last, rhs->last, range.last))
      return std::nullopt;
    return range;
  }
  auto argument = dyn_cast<BlockArgument>(index);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  APInt first, end, step;
  if (!loop || loop.getInductionVar() != index ||
      !matchPattern(loop.getLowerBound(), m_ConstantInt(&first)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&end)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return std::nullopt;
  Range range{first.getSExtValue(), end.getSExtValue() - 1};
  if (first.slt(end) && !first.isNegative())
    range.last -= (range.last - range.first) % step.getSExtValue();
  return range;
}

LogicalResult ForwardVerifier::checkLayer(Operation *op, Value layer,
                                          int64_t layers) {
  std::optional<Range> range = rangeOf(layer);
  if (!range)
    return op->emitOpError() << "expected its layer to be a constant, the "
                                "variable of a loop with constant bounds or a "
                                "sum of these, but got another value";
  if (range->first < 0 || range->last >= layers)
    return op->emitOpError()
           << "expected layers from 0 to " << layers - 1 << ", but got "
           << range->first << " to " << range->last;
  return success();
}

// Every weight that `op` indexes by a layer has that layer.
LogicalResult ForwardVerifier::checkWeights(Operation *op, Value layer) {
  if (!layer)
    return success();
  for (NamedAttribute attribute : op->getAttrs())
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue())) {
      auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, symbol);
      if (weight && failed(checkLayer(op, layer, weight.getLayers())))
        return failure();
    }
  return success();
}

LogicalResult ForwardVerifier::checkCacheAccess(Operation *op, CacheType cache,
                                                Value layer, Value positions,
                                                Value sequences) {
  if (failed(checkLayer(op, layer, cache.getLayers())) ||
      failed(expectPositions(op, positions)))
    return failure();
  return expectArgument(op, sequences, ForwardArgument::Sequences, "sequences");
}

LogicalResult ForwardVerifier::checkEmbed(EmbedOp op) {
  auto table = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getTableAttr());
  int64_t entries = table.getLayerShape()[0];
  if (op.getIds().getType().getElementType().isInteger(32)) {
    if (entries < vocab)
      return op.emitOpError()
             << "expected the table " << op.getTableAttr() << " to have " << vocab
             << " rows at least (the vocabulary), but got " << entries;
    return expectArgument(op, op.getIds(), ForwardArgument::Tokens, "ids");
  }
  int64_t capacity = cacheTypeOf(forward).getCapacity();
  if (entries < capacity)
    return op.emitOpError()
           << "expected the table " << op.getTableAttr() << " to have " << capacity
           << " rows at least (the capacity), but got " << entries;
  return expectPositions(op, op.getIds());
}

LogicalResult ForwardVerifier::checkRotary(RotaryOp op) {
  // Those that kvc-expand-math gives sines and cosines for.
  constexpr double bound = 0x1p30;
  int64_t last = cacheTypeOf(forward).getCapacity() - 1;
  for (double frequency : op.getFrequencies())
    if (double angle = frequency * double(last); !(angle < bound))
      return op.emitOpError() << "expected angles below 2^30, but got " << angle
                              << " at position " << last;
  return expectPositions(op, op.getPositions());
}

// All tensors of `op` have the same number of rows, or it is the one op that
// goes from tokens to outputs.
LogicalResult ForwardVerifier::checkRows(Operation *op) {
  if (auto select = dyn_cast<SelectOp>(op)) {
    auto input = rows.find(select.getInput());
    if (input != rows.end() && input->second != Rows::Tokens)
      return op->emitOpError() << "expected to select from a row a token, but got a "
                                  "row an output";
    if (failed(setRows(op, Rows::Outputs)))
      return failure();
    return expectArgument(op, select.getRows(), ForwardArgument::Outputs, "rows");
  }
  std::optional<Rows> mine;
  for (Value operand : op->getOperands()) {
    auto found = rows.find(operand);
    if (found == rows.end())
      continue;
    if (mine && *mine != found->second)
      return op->emitOpError() << "expected operands of one number of rows, but "
                                  "got a row a token and a row an output";
    mine = found->second;
  }
  return setRows(op, mine);
}

LogicalResult ForwardVerifier::setRows(Operation *op,
                                       std::optional<Rows> mine) {
  for (Value result : op->getResults()) {
    auto type = dyn_cast<TensorType>(result.getType());
    if (!type)
      continue;
    if (!mine || !type.hasRank() || type.getRank() == 0 ||
        !type.isDynamicDim(0))
      return op->emitOpError() << "expected each tensor in @forward to have a "
                                  "row a token or a row an output, but got "
                               << type;
    rows[result] = *mine;
  }
  return success();
}

// What the branches give has the rows that both give it.
LogicalResult ForwardVerifier::checkIf(scf::IfOp choice) {
  for (Region &region : choice->getRegions())
    for (Operation &nested : region.getOps())
      if (!isa<scf::YieldOp>(nested) && failed(checkOp(&nested)))
        return failure();
  for (OpResult result : choice.getResults()) {
    if (!isa<TensorType>(result.getType()))
      continue;
    unsigned number = result.getResultNumber();
    Rows mine = rows.at(choice.thenYield().getOperand(number));
    if (mine != rows.at(choice.elseYield().getOperand(number)))
      return choice.emitOpError() << "expected both branches to give the same "
                                     "number of rows, but one gives a row a "
                                     "token, the other a row an output";
    rows[result] = mine;
  }
  return success();
}

// Whether each row of what `op` gives is made of the same row of its operands,
// whatever they are (a division by zero stops the program), or more is checked of
// it.
static bool isKnown(Operation *op) {
  return isa_and_nonnull<KVCDialect>(op->getDialect()) ||
         isa<scf::ForOp, scf::IfOp, func::CallOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>() ||
         (OpTrait::hasElementwiseMappableTraits(op) && isSpeculatable(op) &&
          !isa<arith::RemSIOp, arith::RemUIOp>(op)); // MLIR thinks they can't trap
}

LogicalResult ForwardVerifier::checkOp(Operation *op) {
  if (!isKnown(op))
    return op->emitOpError()
           << "expected ops of kvc, ops of arith and math element by element "
              "that no number stops, scf.for and scf.if in @forward, where "
              "nothing is checked, but got this op";
  if (!isa<scf::IfOp>(op) && failed(checkRows(op)))
    return failure();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](func::CallOp call) -> LogicalResult {
        return call.emitOpError() << "expected a call that can be inlined, but "
                                  << call.getCalleeAttr()
                                  << " calls itself or has no body";
      })
      .Case([&](scf::ForOp loop) -> LogicalResult {
        APInt step;
        if (loop.getUnsignedCmp() || !loop.getInductionVar().getType().isIndex())
          return loop.emitOpError() << "expected a loop over signed numbers of "
                                       "type index, but got another";
        if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) ||
            !step.isStrictlyPositive())
          return loop.emitOpError() << "expected a constant step of 1 or more, but got "
                                       "another";
        for (auto [initial, argument] :
             llvm::zip_equal(loop.getInits(), loop.getRegionIterArgs()))
          if (auto found = rows.find(initial); found != rows.end())
            rows[argument] = found->second;
        for (Operation &nested : loop.getBody()->without_terminator())
          if (failed(checkOp(&nested)))
            return failure();
        // What is handed on has the rows of what came in.
        auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
        for (auto [yielded, argument, result] :
             llvm::zip_equal(yield.getResults(), loop.getRegionIterArgs(),
                             loop.getResults())) {
          auto in = rows.find(argument), out = rows.find(yielded);
          if ((in == rows.end()) != (out == rows.end()) ||
              (in != rows.end() && in->second != out->second))
            return loop.emitOpError() << "expected each value of the loop to keep "
                                         "its number of rows, but one changes it";
          if (in != rows.end())
            rows[result] = in->second;
        }
        return success();
      })
      .Case([&](scf::IfOp choice) { return checkIf(choice); })
      .Case([&](EmbedOp o) { return checkEmbed(o); })
      .Case([&](PositionsOp o) {
        return expectArgument(o, o.getSequences(), ForwardArgument::Sequences, "sequences");
      })
      .Case<AppendOp, AttendOp>([&](auto o) {
        return checkCacheAccess(o, o.getCache().getType(), o.getLayer(),
                                o.getPositions(), o.getSequences());
      })
      .Case([&](RotaryOp o) { return checkRotary(o); })
      .Case<RMSNormOp, LayerNormOp, LinearOp, GatedLinearOp>(
          [&](auto o) { return checkWeights(o, o.getLayer()); })
      .Default([](Operation *) { return success(); });
}

// The logits' rows are those that the caller asked for.
LogicalResult ForwardVerifier::checkLogits() {
  auto terminator = cast<func::ReturnOp>(forward.getBody().front().getTerminator());
  auto found = rows.find(terminator.getOperand(ForwardResult::Logits));
  if (found != rows.end() && found->second == Rows::Outputs)
    return success();
  return forward.emitError()
         << "expected the logits of @forward to be those of the rows that a "
            "kvc.select takes by its argument `outputs`";
}

LogicalResult ForwardVerifier::run() {
  if (failed(checkSignature()))
    return failure();
  for (Operation &op : forward.getBody().front().without_terminator())
    if (failed(checkOp(&op)))
      return failure();
  return checkLogits();
}

// Lengths are the runtime's: the step commits once, at its end.
LogicalResult verifyCommit(func::FuncOp forward) {
  SmallVector<AdvanceOp> advances;
  Operation *update = nullptr;
  forward.walk([&](Operation *op) {
    if (auto advance = dyn_cast<AdvanceOp>(op))
      advances.push_back(advance);
    if (isa<TruncateOp, ForkOp, ReorderOp>(op))
      update = op;
  });
  if (update)
    return update->emitOpError(
        "expected outside of @forward: there only the runtime changes which "
        "positions a sequence has");
  Operation *terminator = forward.getBody().back().getTerminator();
  if (advances.size() == 1 && advances[0]->hasOneUse() &&
      *advances[0]->user_begin() == terminator)
    return success();
  return forward.emitError("expected @forward to commit its step by one "
                           "kvc.advance of the cache that it returns, but got ")
         << advances.size() << " of them"
         << (advances.size() == 1 ? ", elsewhere" : "");
}

struct VerifyForward : kvc::impl::VerifyForwardBase<VerifyForward> {
  void runOnOperation() override {
    func::FuncOp forward = lookupForward(getOperation());
    if (!forward) {
      getOperation().emitError("expected a function @forward");
      return signalPassFailure();
    }
    if (failed(verifyForward(forward)) || failed(verifyCommit(forward)))
      signalPassFailure();
  }
};
} // namespace

LogicalResult kvc::verifyForward(func::FuncOp forward) {
  return ForwardVerifier(forward).run();
}
