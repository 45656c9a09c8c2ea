// The parts of kvc-verify-cache-contract, each with one question to a program.
// All follow values through calls, scf.for and scf.if; what one can't follow
// is an error that names it. A diagnostic has a note at the offending value and
// a note "hint: ..." that names the value that should stand there.
#ifndef KVC_COMPILER_VERIFY_CONTRACT_H
#define KVC_COMPILER_VERIFY_CONTRACT_H

#include "dialect/KVC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace kvc::contract {

// Who calls whom. Only functions with a body can be followed.
class Calls {
public:
  explicit Calls(mlir::ModuleOp module);
  // The function that `call` enters, or null if it has no body here.
  mlir::func::FuncOp bodyOf(mlir::func::CallOp call);
  // All calls of `function`, or nothing if others can call it too.
  std::optional<llvm::ArrayRef<mlir::func::CallOp>>
  callersOf(mlir::func::FuncOp function);
  // Calls `visit` for `op`, the ops inside of it, and those of the functions that
  // they call.
  void walk(mlir::Operation *op,
            llvm::function_ref<void(mlir::Operation *)> visit);
  // Whether `op` takes or gives a cache or positions, or calls a function in
  // which an op does.
  bool isPartOfStep(mlir::Operation *op);

private:
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::func::CallOp>>
      callers;
  llvm::DenseSet<mlir::Operation *> open; // functions whose address is taken
  llvm::DenseSet<mlir::Operation *> ofSteps; // functions with parts of steps
};

// Is every cache value that is used the newest one?
mlir::LogicalResult checkCacheVersions(mlir::ModuleOp module, Calls &calls);

// Does every position come from the lengths of a cache?
mlir::LogicalResult checkPositionOrigin(mlir::ModuleOp module, Calls &calls);

// Does every step append to each layer once, whole heads that were made at its
// own positions, read a layer after that, and fit into the cache? And is each
// op of a step in one that was followed? To be asked when the first two are
// answered with yes.
mlir::LogicalResult checkSteps(mlir::ModuleOp module, Calls &calls);

// The attribute of a module or function that asks for exact equivalence.
inline constexpr llvm::StringLiteral kExactAttr = "kvc.exact";

// Does each cache keep every position where that is asked for?
mlir::LogicalResult checkExactness(mlir::ModuleOp module);

// How the printed program names `value`: %name or %3.
std::string nameOf(mlir::Value value);

} // namespace kvc::contract

#endif // KVC_COMPILER_VERIFY_CONTRACT_H
