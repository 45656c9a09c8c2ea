// Are keys and values whole heads? Tokens are rows: what is joined along the
// width must be heads, else old and new keys stand beside each other.
#include "compiler/passes/contract/Contract.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

static LogicalResult checkJoin(AppendOp append, Value value, StringRef what,
                               int64_t width) {
  while (true) {
    if (auto rotary = value.getDefiningOp<RotaryOp>())
      value = rotary.getInput();
    else if (auto cast = value.getDefiningOp<tensor::CastOp>())
      value = cast.getSource();
    else
      break;
  }
  auto join = value.getDefiningOp<tensor::ConcatOp>();
  if (!join || join.getDim() != 1)
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

LogicalResult kvc::contract::checkHeads(ModuleOp module) {
  bool failedOnce = false;
  module.walk([&](AppendOp append) {
    CacheType cache = append.getCache().getType();
    failedOnce |=
        failed(checkJoin(append, append.getKeys(), "keys", cache.getKeyWidth()));
    failedOnce |= failed(checkJoin(append, append.getValues(), "values",
                                   cache.getValueWidth()));
  });
  return failure(failedOnce);
}
