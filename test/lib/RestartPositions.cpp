// kvc-test-restart-positions: the classic mistake, on purpose. Each
// kvc.positions is replaced by positions that start at 0 in every step, which
// kvc-verify-cache-contract rejects; compiled without that check, the program gives
// other numbers from the second chunk on.
#include "test/lib/RestartPositions.h"
#include "compiler/reference/Emit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace kvc;

namespace {
struct RestartPositions
    : PassWrapper<RestartPositions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RestartPositions)

  StringRef getArgument() const override {
    return "kvc-test-restart-positions";
  }
  StringRef getDescription() const override {
    return "positions restart at 0 in every step (a mistake, for tests)";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<arith::ArithDialect, scf::SCFDialect, tensor::TensorDialect>();
  }
  void runOnOperation() override {
    getOperation().walk([](PositionsOp op) {
      OpBuilder builder(op);
      reference::Emitter b(op.getLoc(), builder);
      Value sequences = op.getSequences();
      op.getResult().replaceAllUsesWith(reference::tabulate(
          b, op.getType(), reference::rowCount(b, sequences),
          [&](reference::Emitter &b, Value n) -> Value {
            return arith::IndexCastOp::create(
                b, b.getI64Type(), reference::indexInStep(b, sequences, n));
          }));
      op.erase();
    });
  }
};
} // namespace

void kvc::test::registerRestartPositions() {
  PassRegistration<RestartPositions>();
}
