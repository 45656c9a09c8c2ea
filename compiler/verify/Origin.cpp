// What went into a value: the positions that it was made at, and joins along the
// width.
#include "compiler/verify/Contract.h"
#include "compiler/verify/StepState.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

void Origin::add(const Origin &other) {
  for (const StepPositions &made : other.positions)
    if (!llvm::is_contained(positions, made))
      positions.push_back(made);
  for (tensor::ConcatOp join : other.joins)
    if (!llvm::is_contained(joins, join))
      joins.push_back(join);
  isOfPositions |= other.isOfPositions;
}

// Whether each element of the result is a sum over the columns of `operand`: a
// join is none any more.
static bool mixesColumns(Operation *op, Value operand) {
  if (isa<LinearOp, GatedLinearOp>(op))
    return operand == op->getOperand(0);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumReductionLoops() > 0;
}

Origin contract::originOf(Operation *op, Calls &calls,
                          llvm::function_ref<Fact(Value)> factOf) {
  Origin origin;
  // A size is the same at all positions.
  if (isa<tensor::DimOp, tensor::RankOp>(op))
    return origin;
  llvm::SetVector<Value> sources(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), sources);
  for (Value source : sources) {
    Origin more = factOf(source).origin;
    if (mixesColumns(op, source))
      more.joins.clear();
    // What is chosen by a number that rows gave, a token, isn't made at theirs.
    if (getElementTypeOrSelf(source).isIntOrIndex() && !more.isOfPositions &&
        !op->hasTrait<OpTrait::Elementwise>())
      more.positions.clear();
    origin.add(more);
  }
  calls.walk(op, [&](Operation *inner) {
    auto join = dyn_cast<tensor::ConcatOp>(inner);
    if (join && join.getResultType().getRank() == 2 && join.getDim() == 1)
      origin.add({{}, {join}});
  });
  if (op->getDialect() == op->getContext()->getLoadedDialect<KVCDialect>())
    origin.isOfPositions = false;
  return origin;
}
