// KernelBuilder: the few things that every CPU kernel is written with.
//
// A vector has kLanes (16) virtual lanes, whatever the machine's registers: an
// element-wise kernel gives each element one lane, and a reduction over a row
// adds element i into lane i mod 16 and then halves the lanes (`reduceAdd`), so
// that the order of every sum is written here and nowhere else.
#ifndef KVC_COMPILER_CPU_KERNELBUILDER_H
#define KVC_COMPILER_CPU_KERNELBUILDER_H

#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <functional>

namespace kvc {

// On an scf.parallel whose task n touches row n alone of what other such loops touch.
inline constexpr llvm::StringLiteral kRowLoopAttr = "kvc.rows";

class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;

  // `arithmetic` is the type of activations: f32 or f64.
  KernelBuilder(mlir::Location loc, mlir::OpBuilder &builder,
                mlir::Type arithmetic)
      : ImplicitLocOpBuilder(loc, builder), arithmetic(arithmetic) {}

  const mlir::Type arithmetic;

  // What the tasks of `parallel` are called in machine code: the op and what it
  // is of, "linear.attn_q".
  std::string kernel;

  // `value`, called `name` in the text of every later stage.
  Value named(llvm::StringRef name, Value value);

  // Index arithmetic.
  Value index(int64_t value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, index(b)); }
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b) { return mul(a, index(b)); }
  Value divFloor(Value a, int64_t b);
  Value rem(Value a, int64_t b);
  Value divCeil(Value a, int64_t b) { return divFloor(add(a, b - 1), b); }
  Value min(Value a, Value b);
  Value min(Value a, int64_t b) { return min(a, index(b)); }
  Value less(Value a, Value b);
  // To index, from an integer.
  Value toIndex(Value integer);

  // Numbers of the arithmetic's type, scalars or vectors like `like`.
  Value number(double value);
  Value splat(Value scalar);
  Value splat(double value) { return splat(number(value)); }
  mlir::VectorType lanes();
  // a + b * c in one rounding.
  Value fma(Value b, Value c, Value a);

  // for (i = from; i < to; i += step), with `name` for i; returns the last values
  // of `state`.
  using Body = llvm::function_ref<void(Value i)>;
  using StatefulBody = llvm::function_ref<llvm::SmallVector<Value>(
      Value i, ValueRange state)>;
  void forLoop(llvm::StringRef name, Value from, Value to, int64_t step,
               Body body);
  llvm::SmallVector<Value> forLoop(llvm::StringRef name, Value from, Value to,
                                   int64_t step, ValueRange state,
                                   StatefulBody body);
  // Independent tasks 0 to count-1, in any order, on any thread; a task's number
  // is called `name`. They are `kernel`, or `variant` of it if it has several.
  mlir::scf::ParallelOp parallel(llvm::StringRef name, Value count, Body body,
                                 llvm::StringRef variant = "");
  // Several such kinds of tasks, dispatched together.
  struct Tasks {
    Value count;
    std::function<void(Value)> body;
  };
  void parallel(llvm::StringRef name, llvm::ArrayRef<Tasks> tasks,
                llvm::StringRef variant = "");
  // A task for each of `count` rows, which touches nothing of other rows that such
  // tasks write: they may be joined with those of another such loop
  // (kvc-join-row-loops).
  void forEachRow(Value count, Body body);
  void ifThen(Value condition, llvm::function_ref<void()> body);
  void ifElse(Value condition, llvm::function_ref<void()> body,
              llvm::function_ref<void()> otherwise);

  // Numbers that are a constant of the module, called `name` there.
  Value table(llvm::StringRef name, mlir::DenseElementsAttr numbers);

  // A task's own memory of the arithmetic's type, on its thread's stack.
  Value scratch(llvm::ArrayRef<int64_t> shape);

  // Loads `count` (1 to 16) elements at `indices` into the first lanes, 0 in
  // the others, converted to the arithmetic's type.
  Value loadLanes(Value memref, ValueRange indices, int64_t count = kLanes);
  // The same of what `load(offset, size)` gives for `size` elements from `offset` on,
  // of any float type.
  Value loadLanes(int64_t count,
                  llvm::function_ref<Value(int64_t offset, int64_t size)> load);
  // Stores the first `count` lanes, converted to the memref's element type.
  void storeLanes(Value vector, Value memref, ValueRange indices,
                  int64_t count = kLanes);
  Value loadScalar(Value memref, ValueRange indices);
  void storeScalar(Value scalar, Value memref, ValueRange indices);

  // Calls `body(offset, count)` for each run of 16 of `width` elements, and for
  // the rest: the count is a constant of the program.
  void forEachRun(int64_t width,
                  llvm::function_ref<void(Value offset, int64_t count)> body);
  // The same with a vector handed on.
  Value forEachRun(int64_t width, Value state,
                   llvm::function_ref<Value(Value offset, int64_t count,
                                            Value state)> body);

  // The sum of all lanes: 16 to 8 to 4 to 2 to 1, low half plus high half.
  Value reduceAdd(Value vector);
  Value reduceMax(Value vector);
  Value max(Value a, Value b);

  // Converts a scalar or vector between float types; narrowing from f64 goes
  // through f32, so that it is the same operation on every machine.
  Value convert(Value value, mlir::Type element);

  // `value`, a scalar or vector, with one NaN in place of any: for what is stored
  // where others see it, since machines and orders of operands give different ones.
  Value oneNaN(Value value) { return oneNaN(value, value); }
  // The same of `converted`, what became of it in another type.
  Value oneNaN(Value value, Value converted);

  // An activation of a scalar or vector.
  Value activate(Value x, Activation activation);

  // Rows of memref<?xWxT>, by its first axis.
  Value rowsOf(Value memref);
  int64_t widthOf(Value memref);
};

} // namespace kvc

#endif // KVC_COMPILER_CPU_KERNELBUILDER_H
