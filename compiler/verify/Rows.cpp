// What rows are made of: the positions that they were made at, what was joined
// along the width, and the tokens whose they are; see Follow.h.
#include "compiler/verify/Follow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

void Origin::add(const Origin &other) {
  for (const Positions &made : other.positions)
    if (positions.size() < 2 && !llvm::is_contained(positions, made))
      positions.push_back(made);
  joins.insert(other.joins.begin(), other.joins.end());
}

// Whether columns stay what they are: a join is one in the result, too.
static bool keepsColumns(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) ||
         isa<RotaryOp, RMSNormOp, LayerNormOp, ActivateOp, tensor::ConcatOp>(op);
}

// What goes into the results of an op without a rule of its own.
Origin Follower::originOf(Operation *op) {
  Origin origin;
  // A size is the same at all positions, and what is computed elsewhere is new:
  // the next tokens' rows of this step's.
  if (isa<tensor::DimOp, tensor::RankOp, func::CallOp>(op))
    return origin;
  llvm::SetVector<Value> sources(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), sources);
  for (Value source : sources) {
    Origin more = factOf(source).origin;
    if (!keepsColumns(op))
      more.joins.clear();
    // What is chosen by a number that rows gave, a token, isn't made at theirs.
    if (getElementTypeOrSelf(source).isIntOrIndex() &&
        !op->hasTrait<OpTrait::Elementwise>())
      more.positions.clear();
    origin.add(more);
  }
  auto join = dyn_cast<tensor::ConcatOp>(op);
  if (join && join.getResultType().getRank() == 2 && join.getDim() == 1)
    origin.joins.insert(join);
  return origin;
}

// What is rotated or embedded at positions belongs to the step of these.
LogicalResult Follower::checkMadeAt(Operation *op, StringRef what, Value rows,
                                    const Positions &positions) {
  for (Positions made : factOf(rows).origin.positions) {
    if (made == positions)
      continue;
    InFlightDiagnostic diag =
        op->emitOpError() << "expected " << what
                          << " that were made at the op's own positions, but "
                             "got some made at those of "
                          << (ended.contains(made.lengths) ? "a step before"
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
// Heads
//===----------------------------------------------------------------------===//

// The value that `piece` is a part of, or the negative of a part.
static Value wholeOf(Value piece) {
  while (Operation *op = piece.getDefiningOp()) {
    if (!isa<tensor::ExtractSliceOp, tensor::CastOp, arith::NegFOp>(op))
      break;
    piece = op->getOperand(0);
  }
  return piece;
}

// Tokens are rows: what is joined along the width must be heads of `width`, else
// old and new keys stand beside each other.
static LogicalResult checkJoin(AppendOp append, tensor::ConcatOp join,
                               StringRef what, int64_t width) {
  // Columns of one value in another order are no other tokens: a rotation that
  // is written out.
  auto wholes = llvm::map_to_vector(join.getInputs(), wholeOf);
  if (llvm::all_equal(wholes) && wholes.front() != join.getInputs().front())
    return success();
  for (Value piece : join.getInputs()) {
    int64_t columns = cast<RankedTensorType>(piece.getType()).getDimSize(1);
    if (!ShapedType::isDynamic(columns) && columns % width == 0)
      continue;
    InFlightDiagnostic diag = append.emitOpError()
                              << "expected " << what
                              << " joined along the width to be whole heads of "
                              << width << ", but got a piece of width ";
    if (ShapedType::isDynamic(columns))
      diag << "that isn't known";
    else
      diag << columns;
    diag.attachNote(join.getLoc()) << "joined along the width here";
    diag.attachNote(piece.getLoc())
        << "hint: tokens are rows: append " << nameOf(piece)
        << " in a step of its own, and attend to the cache";
    return diag;
  }
  return success();
}

LogicalResult Follower::checkHeads(AppendOp op, StringRef what, Value rows,
                                   int64_t width) {
  for (tensor::ConcatOp join : factOf(rows).origin.joins)
    if (failed(count(op)) || failed(checkJoin(op, join, what, width)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

// The number of rows, as far as the type of an operand says it.
static int64_t rowsOf(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (auto rows = dyn_cast<RankedTensorType>(type))
      if (!rows.isDynamicDim(0))
        return rows.getDimSize(0);
  return 0;
}

// What is known of the tokens of an append: those of a splat or a constant.
FailureOr<Follower::TokenCounts> Follower::tokensOf(AppendOp op) {
  TokenCounts tokens;
  Fact fact = factOf(op.getSequences());
  if (int64_t rows = rowsOf(op); rows && fact.element) {
    APInt sequence;
    tokens[fact.elementNumber] = {
        rows, matchPattern(fact.element, m_ConstantInt(&sequence))
                  ? std::to_string(sequence.getSExtValue())
                  : nameOf(fact.element)};
  } else if (auto constant =
                 dyn_cast_or_null<DenseIntElementsAttr>(fact.constant)) {
    auto add = [&](Attribute sequence, int64_t count) {
      auto &[total, name] = tokens[numberOf(sequence)];
      total += count;
      name = std::to_string(cast<IntegerAttr>(sequence).getInt());
    };
    if (failed(count(op, constant.isSplat() ? 1 : constant.size())))
      return failure();
    if (constant.isSplat())
      add(constant.getSplatValue<Attribute>(), constant.size());
    else
      for (Attribute sequence : constant.getValues<Attribute>())
        add(sequence, 1);
  }
  return tokens;
}

LogicalResult Follower::checkCapacity(AppendOp op, const Cache &cache) {
  int64_t capacity = op.getCache().getType().getCapacity();
  FailureOr<TokenCounts> chunk = tokensOf(op);
  if (failed(chunk))
    return failure();
  for (const auto &[sequence, tokens] : *chunk) {
    auto found = cache.tokens.find(sequence);
    int64_t before = found == cache.tokens.end() ? 0 : found->second;
    uint64_t after = uint64_t(before) + tokens.first;
    if (after <= uint64_t(capacity))
      continue;
    InFlightDiagnostic diag =
        op.emitOpError() << "expected a chunk that fits into the capacity of "
                         << capacity << " positions, but got " << tokens.first
                         << (tokens.first == 1 ? " token" : " tokens")
                         << " of sequence " << tokens.second << " after "
                         << before;
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
