// Are keys and values whole heads?
#include "compiler/verify/Contract.h"
#include "compiler/verify/StepState.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

// The value that `piece` is a part of, or the negative of a part.
static Value wholeOf(Value piece) {
  while (Operation *op = piece.getDefiningOp()) {
    if (!isa<tensor::ExtractSliceOp, tensor::CastOp, arith::NegFOp>(op))
      break;
    piece = op->getOperand(0);
  }
  return piece;
}

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

LogicalResult kvc::contract::checkHeads(AppendOp op, const Fact &keys,
                                        const Fact &values) {
  CacheType cache = op.getCache().getType();
  for (tensor::ConcatOp join : keys.origin.joins)
    if (failed(checkJoin(op, join, "keys", cache.getKeyWidth())))
      return failure();
  for (tensor::ConcatOp join : values.origin.joins)
    if (failed(checkJoin(op, join, "values", cache.getValueWidth())))
      return failure();
  return success();
}
