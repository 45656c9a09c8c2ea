// The check behind kvc-verify-forward, for passes that rely on it.
#ifndef KVC_COMPILER_VERIFY_VERIFYFORWARD_H
#define KVC_COMPILER_VERIFY_VERIFYFORWARD_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kvc {

// Checks that `forward`, one block without calls, reads and writes inside what
// the runtime's plan has checked (Passes.td). Fails after a diagnostic.
llvm::LogicalResult verifyForward(mlir::func::FuncOp forward);

} // namespace kvc

#endif // KVC_COMPILER_VERIFY_VERIFYFORWARD_H
