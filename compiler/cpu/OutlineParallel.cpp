// kvc-outline-parallel: see Passes.td.
//
// A task's function is an llvm.func `(context, begin, end)` from the start, so
// that its address can be taken; its body is still loops over vectors and
// memrefs. What the body captures passes through a struct on the caller's
// stack, in the LLVM form of each type; conversion to LLVM later resolves the
// casts on both sides.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "compiler/cpu/KernelBuilder.h"
#include "compiler/cpu/Outline.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

namespace kvc {
#define GEN_PASS_DEF_OUTLINEPARALLEL
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

// Rows at most whose tasks cost less than a dispatch: 0.4 us and more, and 0.1 to 0.3 us
// for the norm of a row of 576. Of 16 rows two threads are 2 to 4 % faster with them.
static constexpr int64_t kFewRows = 8;

namespace {

class Outliner {
public:
  Outliner(func::FuncOp function)
      : function(function), symbols(function->getParentOfType<ModuleOp>()),
        converter(function.getContext()),
        pointer(LLVM::LLVMPointerType::get(function.getContext())),
        executor(function.getArgument(AbiArgument::Executor)) {}

  void outline(scf::ParallelOp loop);

private:
  LLVM::LLVMFuncOp buildTask(scf::ParallelOp loop, Location loc, StringRef name,
                             ArrayRef<Value> captured, Type context);

  func::FuncOp function;
  SymbolTable symbols;
  LLVMTypeConverter converter;
  Type pointer;
  Value executor;
};

LLVM::LLVMFuncOp Outliner::buildTask(scf::ParallelOp loop, Location loc,
                                     StringRef name, ArrayRef<Value> captured,
                                     Type context) {
  OpBuilder outside(function);
  Type i64 = outside.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(function.getContext()), {pointer, i64, i64});
  auto task = LLVM::LLVMFuncOp::create(outside, loc, name, type,
                                       LLVM::Linkage::Internal);
  symbols.insert(task); // under another name where this one is taken
  task.setNoInline(true); // it is called in two ways, and a debugger finds it by name
  Block *entry = task.addEntryBlock(outside);
  auto b = ImplicitLocOpBuilder::atBlockEnd(loc, entry);
  auto toIndex = [&](Value integer) -> Value {
    return arith::IndexCastOp::create(b, b.getIndexType(), integer);
  };
  IRMapping map;
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value address = LLVM::GEPOp::create(b, pointer, context,
                                        entry->getArgument(0),
                                        ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    Value loaded = LLVM::LoadOp::create(
        b, value.getLoc(), converter.convertType(value.getType()), address);
    map.map(value, UnrealizedConversionCastOp::create(b, value.getType(), loaded)
                       .getResult(0));
  }
  auto tasks = scf::ForOp::create(
      b, toIndex(entry->getArgument(1)), toIndex(entry->getArgument(2)),
      arith::ConstantIndexOp::create(b, 1));
  LLVM::ReturnOp::create(b, ValueRange{});
  map.map(loop.getInductionVars().front(), tasks.getInductionVar());
  b.setInsertionPointToStart(tasks.getBody());
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, map);
  // Scratch memory is the function's, once, not the task's.
  task.walk([&](memref::AllocaOp op) { op->moveBefore(&entry->front()); });
  return task;
}

void Outliner::outline(scf::ParallelOp loop) {
  SmallVector<Value> captured = captureValues(loop);
  auto [name, loc] = nameOfTasks(loop);
  // It lives on the caller's stack until all tasks are done.
  ImplicitLocOpBuilder b(loc, loop);
  Arguments context = storeArguments(b, converter, captured);
  LLVM::LLVMFuncOp task = buildTask(loop, loc, name, captured, context.type);
  // count = upper bound: kernels start at 0 and step by 1
  Value count = arith::IndexCastOp::create(b, b.getI64Type(),
                                           loop.getUpperBound().front());
  auto number = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, b.getI64Type(), value);
  };
  // One task is the caller's own and no dispatch, and so are those of a few rows.
  Value most = number(loop->hasAttr(kRowLoopAttr) ? kFewRows : 1);
  Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, count, most);
  auto choice = scf::IfOp::create(b, isOwn, /*withElseRegion=*/true);
  b.setInsertionPointToStart(choice.thenBlock());
  LLVM::CallOp::create(b, task, ValueRange{context.address, number(0), count});
  b.setInsertionPointToStart(choice.elseBlock());
  Value parallelFor = LLVM::LoadOp::create(b, pointer, executor);
  Value address = LLVM::AddressOfOp::create(b, pointer, task.getName());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(loop.getContext()),
      {pointer, pointer, pointer, b.getI64Type()});
  LLVM::CallOp::create(
      b, type, ValueRange{parallelFor, executor, address, context.address, count});
  loop.erase();
}

struct OutlineParallel : kvc::impl::OutlineParallelBase<OutlineParallel> {
  void runOnOperation() override {
    func::FuncOp function = lookupForward(getOperation());
    if (!function)
      return;
    if (failed(verifyAbiForward(function)))
      return signalPassFailure();
    SmallVector<scf::ParallelOp> loops = outermostLoops(function);
    for (scf::ParallelOp loop : loops)
      if (loop.getNumLoops() != 1 || !loop.getInitVals().empty() ||
          !matchPattern(loop.getLowerBound().front(), m_Zero()) ||
          !matchPattern(loop.getStep().front(), m_One())) {
        loop.emitOpError("expected one dimension from 0 in steps of 1, without "
                         "reductions");
        return signalPassFailure();
      }
    Outliner outliner(function);
    for (scf::ParallelOp loop : loops)
      outliner.outline(loop);
  }
};
} // namespace
