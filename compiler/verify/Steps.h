// Follows a program as it runs: each function that others can call, or that
// nobody calls, is entered once, calls are entered, loops with constant bounds
// are run iteration by iteration, those of unknown count until nothing new comes
// to be known, and both branches of an scf.if are merged where it isn't known
// which one runs. StepRules judges the ops.
#ifndef KVC_COMPILER_VERIFY_STEPS_H
#define KVC_COMPILER_VERIFY_STEPS_H

#include "compiler/verify/Contract.h"
#include "compiler/verify/StepState.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kvc::contract {

// Ops that were followed, or that never run.
struct Reached {
  llvm::DenseSet<mlir::Operation *> ops;
  llvm::DenseSet<mlir::Region *> dead;
};

// Functions whose blocks branch have no caches: see CacheVersions.
inline bool canEnter(mlir::func::FuncOp function) {
  return function.getBody().hasOneBlock() &&
         mlir::isa<mlir::func::ReturnOp>(
             function.getBody().front().getTerminator());
}

class Steps {
public:
  Steps(Calls &calls, Reached &reached) : calls(calls), reached(reached) {}
  mlir::LogicalResult checkFrom(mlir::func::FuncOp root);

private:
  using Frame = llvm::DenseMap<mlir::Value, Fact>;
  using Facts = std::vector<Fact>;

  // A value that nothing is known of, but which value it is.
  Fact fresh() { return {{rules.newNumber(), {}}}; }
  Fact constant(mlir::Attribute value) { return {{0, value}}; }
  Fact factOf(mlir::Value value) {
    auto [entry, isNew] = frame.try_emplace(value);
    if (isNew)
      entry->second = fresh();
    return entry->second;
  }
  Facts factsOf(mlir::ValueRange values);
  void bind(mlir::ValueRange values, const Facts &facts);
  std::optional<int64_t> integerOf(mlir::Value value);

  // Runs a block and gives what is known of its terminator's operands.
  mlir::FailureOr<Facts> run(mlir::Block &block);
  mlir::LogicalResult run(mlir::Operation *op);
  mlir::LogicalResult set(mlir::Value result, mlir::FailureOr<Fact> fact);
  mlir::LogicalResult runOther(mlir::Operation *op);
  std::optional<Facts> fold(mlir::Operation *op);
  bool writesRows(mlir::Operation *op);
  Identity identityOf(mlir::OpResult result);

  mlir::LogicalResult runFor(mlir::scf::ForOp loop);
  mlir::LogicalResult runUnknownFor(mlir::scf::ForOp loop, Facts start);
  mlir::LogicalResult runIf(mlir::scf::IfOp choice);
  mlir::LogicalResult runCall(mlir::func::CallOp call);
  // What is known of a value that is `a` or `b`, by which branch of an scf.if
  // runs, or by the number of a loop's iterations.
  Fact merge(const Fact &a, const Fact &b, mlir::Operation *branch = nullptr);
  void skip(mlir::Region &region);

  Calls &calls;
  Reached &reached;
  StepRules rules;
  Frame frame;
  std::map<std::vector<uintptr_t>, unsigned> computed; // see identityOf
  int64_t ops = 0;
  int depth = 0;
};

} // namespace kvc::contract

#endif // KVC_COMPILER_VERIFY_STEPS_H
