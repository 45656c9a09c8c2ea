// kvc-verify-forward: see Passes.td.
//
// The runtime checks tokens, sequences, outputs and capacity before a call, and
// generated code checks nothing. So what indexes memory has to come from there:
// ids from the arguments, positions from kvc.positions; the cache contract has
// looked at layers. And there are two numbers of rows, one a token and one an
// output, which must not meet in one op; no other tensor can stand there, since
// the numbers are known in a call only.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "compiler/verify/ForwardOps.h"

namespace kvc {
#define GEN_PASS_DEF_VERIFYFORWARD
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

class ForwardVerifier {
public:
  explicit ForwardVerifier(func::FuncOp forward) : forward(forward) {}
  LogicalResult run();

private:
  enum class Rows { Tokens, Outputs };

  LogicalResult checkBlock(Block &block);
  LogicalResult checkOp(Operation *op);
  LogicalResult checkLoop(scf::ForOp loop);
  LogicalResult checkBranch(scf::IfOp choice);
  LogicalResult checkEmbed(EmbedOp op);
  LogicalResult checkRotary(RotaryOp op);
  LogicalResult checkSelect(SelectOp op);
  LogicalResult checkRows(Operation *op);
  LogicalResult setRows(Operation *op, std::optional<Rows> mine);
  LogicalResult handOn(Operation *op, ValueRange from, ValueRange to);
  LogicalResult expectArgument(Operation *op, Value value, unsigned number,
                               StringRef what);
  LogicalResult checkPositioned(Positioned op);
  LogicalResult checkResults();

  func::FuncOp forward;
  DenseMap<Value, Rows> rows; // of tensors
};

//===----------------------------------------------------------------------===//
// What indexes memory
//===----------------------------------------------------------------------===//

LogicalResult ForwardVerifier::expectArgument(Operation *op, Value value,
                                              unsigned number, StringRef what) {
  if (value == forward.getArgument(number))
    return success();
  return op->emitOpError() << "expected its " << what
                           << " to be argument " << number
                           << " of @forward, which the runtime has checked, but got "
                              "another value";
}

LogicalResult ForwardVerifier::checkPositioned(Positioned op) {
  if (Value positions = op.getPositions();
      positions && !positions.getDefiningOp<PositionsOp>())
    return op.emitOpError() << "expected its positions to come from kvc.positions "
                               "in @forward, but got another value";
  Value sequences = op.getSequences();
  return sequences ? expectArgument(op, sequences, ForwardArgument::Sequences,
                                    "sequences")
                   : success();
}

LogicalResult ForwardVerifier::checkEmbed(EmbedOp op) {
  // The contract has compared a table of positions with the capacity.
  if (op.getPositions())
    return success();
  auto table = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getTableAttr());
  int64_t entries = table.getLayerShape()[0], vocab = logitsTypeOf(forward).getDimSize(1);
  if (entries < vocab)
    return op.emitOpError()
           << "expected the table " << op.getTableAttr() << " to have " << vocab
           << " rows at least (the vocabulary), but got " << entries;
  return expectArgument(op, op.getIds(), ForwardArgument::Tokens, "ids");
}

LogicalResult ForwardVerifier::checkRotary(RotaryOp op) {
  // Those that kvc-expand-math gives sines and cosines for.
  constexpr double bound = 0x1p30;
  int64_t last = cacheTypeOf(forward).getCapacity() - 1;
  for (double frequency : op.getFrequencies())
    if (double angle = frequency * double(last); !(angle < bound))
      return op.emitOpError() << "expected angles below 2^30, but got " << angle
                              << " at position " << last;
  return success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

// All tensors of `op` have the same number of rows.
LogicalResult ForwardVerifier::checkRows(Operation *op) {
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
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      continue;
    if (!mine || type.getRank() == 0 || !type.isDynamicDim(0))
      return op->emitOpError() << "expected each tensor in @forward to have a "
                                  "row a token or a row an output, but got "
                               << type;
    if (isa<FloatType>(type.getElementType()) &&
        type.getElementType() != logitsTypeOf(forward).getElementType())
      return op->emitOpError()
             << "expected rows of " << logitsTypeOf(forward).getElementType()
             << ", the type of the logits, but got " << type;
    rows[result] = *mine;
  }
  return success();
}

// The one op that goes from tokens to outputs.
LogicalResult ForwardVerifier::checkSelect(SelectOp op) {
  if (rows.at(op.getInput()) != Rows::Tokens)
    return op->emitOpError() << "expected to select from a row a token, but got a "
                                "row an output";
  if (failed(setRows(op, Rows::Outputs)))
    return failure();
  return expectArgument(op, op.getRows(), ForwardArgument::Outputs, "rows");
}

// What is handed on keeps its number of rows; that of an scf.if's first branch
// and of a loop's initial values comes first.
LogicalResult ForwardVerifier::handOn(Operation *op, ValueRange from,
                                      ValueRange to) {
  for (auto [source, target] : llvm::zip_equal(from, to))
    if (auto found = rows.find(source); found != rows.end()) {
      Rows mine = found->second;
      if (rows.try_emplace(target, mine).first->second != mine)
        return op->emitOpError()
               << "expected each value that is handed on to keep its number of "
                  "rows, but got a row a token and a row an output";
    }
  return success();
}

LogicalResult ForwardVerifier::checkLoop(scf::ForOp loop) {
  if (failed(handOn(loop, loop.getInits(), loop.getRegionIterArgs())) ||
      failed(handOn(loop, loop.getInits(), loop.getResults())) ||
      failed(checkBlock(*loop.getBody())))
    return failure();
  return handOn(loop, loop.getYieldedValues(), loop.getResults());
}

LogicalResult ForwardVerifier::checkBranch(scf::IfOp choice) {
  for (Region *region : choice.getRegions())
    if (!region->empty() &&
        (failed(checkBlock(region->front())) ||
         failed(handOn(choice, region->front().getTerminator()->getOperands(),
                       choice.getResults()))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult ForwardVerifier::checkOp(Operation *op) {
  if (!isForwardOp(op))
    return op->emitOpError()
           << "expected ops that both lowerings know in @forward (those of kvc "
              "but truncate, fork and reorder; arithmetic on rows and on "
              "indices; scf.for over indices and scf.if), but got this op";
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return checkLoop(loop);
  if (auto choice = dyn_cast<scf::IfOp>(op))
    return checkBranch(choice);
  if (auto select = dyn_cast<SelectOp>(op))
    return checkSelect(select);
  if (failed(checkRows(op)))
    return failure();
  if (auto positioned = dyn_cast<Positioned>(op))
    if (failed(checkPositioned(positioned)))
      return failure();
  if (auto embed = dyn_cast<EmbedOp>(op))
    return checkEmbed(embed);
  if (auto rotary = dyn_cast<RotaryOp>(op))
    return checkRotary(rotary);
  if (auto positions = dyn_cast<PositionsOp>(op))
    return expectArgument(op, positions.getSequences(),
                          ForwardArgument::Sequences, "sequences");
  return success();
}

LogicalResult ForwardVerifier::checkBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(checkOp(&op)))
      return failure();
  return success();
}

// The logits' rows are those that the caller asked for; and lengths are the
// runtime's: the step advances them once, at its end.
LogicalResult ForwardVerifier::checkResults() {
  Operation *end = forward.getBody().front().getTerminator();
  if (rows.at(end->getOperand(ForwardResult::Logits)) != Rows::Outputs)
    return forward.emitError()
           << "expected the logits of @forward to be those of the rows that a "
              "kvc.select takes by its argument `outputs`";
  int64_t advances = 0;
  forward.walk([&](AdvanceOp) { ++advances; });
  auto advance = end->getOperand(ForwardResult::Cache).getDefiningOp<AdvanceOp>();
  if (advances == 1 && advance && advance->hasOneUse())
    return success();
  return forward.emitError("expected @forward to end its step by one "
                           "kvc.advance of the cache that it returns, but got ")
         << advances << " of them" << (advances == 1 ? ", elsewhere" : "");
}

LogicalResult ForwardVerifier::run() {
  if (failed(verifyForwardSignature(forward)))
    return failure();
  if (!forward.getBody().hasOneBlock() ||
      !isa<func::ReturnOp>(forward.getBody().front().getTerminator()))
    return forward.emitError()
           << "expected @forward to be one block that ends in a return";
  rows[forward.getArgument(ForwardArgument::Tokens)] = Rows::Tokens;
  rows[forward.getArgument(ForwardArgument::Sequences)] = Rows::Tokens;
  rows[forward.getArgument(ForwardArgument::Outputs)] = Rows::Outputs;
  if (failed(checkBlock(forward.getBody().front())))
    return failure();
  return checkResults();
}

struct VerifyForward : kvc::impl::VerifyForwardBase<VerifyForward> {
  void runOnOperation() override {
    func::FuncOp forward = lookupForward(getOperation());
    if (!forward) {
      getOperation().emitError("expected a function @forward");
      return signalPassFailure();
    }
    if (failed(ForwardVerifier(forward).run()))
      signalPassFailure();
  }
};
} // namespace
