// The ops that @forward may use. kvc-verify-forward lets no other pass, and both
// lowerings lower each of these.
#ifndef KVC_COMPILER_VERIFY_FORWARDOPS_H
#define KVC_COMPILER_VERIFY_FORWARDOPS_H

#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kvc {

// Arithmetic on rows, element by element.
inline bool isRowArithmetic(mlir::Operation *op) {
  using namespace mlir::arith;
  return mlir::isa<AddFOp, SubFOp, MulFOp, DivFOp, NegFOp, MaximumFOp,
                   MinimumFOp, mlir::math::TanhOp>(op) &&
         mlir::isa<mlir::RankedTensorType>(op->getResult(0).getType()) &&
         mlir::cast<ArithFastMathInterface>(op).getFastMathFlagsAttr().getValue() ==
             FastMathFlags::none;
}

// Constants, arithmetic and comparisons of type index, and the conditions that
// comparisons give. Nothing is promised of their numbers (nuw), which would be
// undefined where the promise doesn't hold.
inline bool isIndexArithmetic(mlir::Operation *op) {
  using namespace mlir::arith;
  if (mlir::isa<ConstantOp>(op))
    return op->getResult(0).getType().isIndex() ||
           op->getResult(0).getType().isInteger(1);
  if (auto flagged = mlir::dyn_cast<ArithIntegerOverflowFlagsInterface>(op))
    if (flagged.getOverflowAttr().getValue() != IntegerOverflowFlags::none)
      return false;
  return mlir::isa<AddIOp, SubIOp, MulIOp, CmpIOp>(op) &&
         op->getOperand(0).getType().isIndex();
}

// Loops over indices, and branches; they hand on rows and caches.
inline bool isForwardControl(mlir::Operation *op) {
  auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op);
  return (loop ? loop.getInductionVar().getType().isIndex() &&
                     !loop.getUnsignedCmp()
               : mlir::isa<mlir::scf::IfOp>(op)) &&
         llvm::all_of(op->getResultTypes(),
                      llvm::IsaPred<mlir::RankedTensorType, CacheType>);
}

inline bool isForwardOp(mlir::Operation *op) {
  if (mlir::isa_and_nonnull<KVCDialect>(op->getDialect()))
    return !mlir::isa<TruncateOp, ForkOp, ReorderOp>(op);
  return isForwardControl(op) || isIndexArithmetic(op) || isRowArithmetic(op);
}

} // namespace kvc

#endif // KVC_COMPILER_VERIFY_FORWARDOPS_H
