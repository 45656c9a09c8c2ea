// What the passes share that make a function of each parallel loop of @forward: tasks of
// an executor, kernels of a device.
#ifndef KVC_COMPILER_CPU_OUTLINE_H
#define KVC_COMPILER_CPU_OUTLINE_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvc {

// The parallel loops that stand in no other.
llvm::SmallVector<mlir::scf::ParallelOp> outermostLoops(mlir::func::FuncOp function);

// Values from outside that the loop's body uses. Constants, and the addresses of the
// module's, are made again inside instead.
llvm::SmallVector<mlir::Value> captureValues(mlir::scf::ParallelOp loop);

// The name of the loop's tasks, and where they stand in the model's text.
std::pair<llvm::StringRef, mlir::Location> nameOfTasks(mlir::scf::ParallelOp loop);

// Values behind each other in a struct on the stack of the function in which `b` stands,
// in the LLVM form of each type: its type, and its address.
struct Arguments {
  mlir::Type type;
  mlir::Value address;
};
Arguments storeArguments(mlir::ImplicitLocOpBuilder &b,
                         const mlir::LLVMTypeConverter &converter,
                         mlir::ValueRange values);

} // namespace kvc

#endif // KVC_COMPILER_CPU_OUTLINE_H
