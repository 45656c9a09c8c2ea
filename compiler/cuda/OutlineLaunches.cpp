// kvc-outline-launches: see Passes.td.
//
// The twin of kvc-outline-parallel: what the body captures becomes the kernel's
// parameters, and the host writes them behind each other, in the LLVM form of each
// type, where the launcher reads them.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "compiler/cpu/Outline.h"
#include "compiler/cuda/Launch.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvc {
#define GEN_PASS_DEF_OUTLINELAUNCHES
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

class Launches {
public:
  Launches(func::FuncOp forward, gpu::GPUModuleOp kernels)
      : forward(forward), kernels(kernels), symbols(kernels),
        converter(forward.getContext()),
        pointer(LLVM::LLVMPointerType::get(forward.getContext())),
        launcher(forward.getArgument(AbiArgument::Executor)) {}

  void outline(scf::ParallelOp loop);

private:
  gpu::GPUFuncOp buildKernel(scf::ParallelOp loop, Location loc, StringRef name,
                             ArrayRef<Value> captured);

  func::FuncOp forward;
  gpu::GPUModuleOp kernels;
  SymbolTable symbols;
  LLVMTypeConverter converter;
  Type pointer;
  Value launcher;
  int64_t count = 0;
};

} // namespace

// Half a warp has a task: a block of one warp has two of them.
gpu::GPUFuncOp Launches::buildKernel(scf::ParallelOp loop, Location loc,
                                     StringRef name, ArrayRef<Value> captured) {
  auto b = ImplicitLocOpBuilder::atBlockEnd(loc, kernels.getBody());
  SmallVector<Type> types{b.getIndexType()};
  llvm::append_range(types, ValueRange(captured).getTypes());
  auto kernel = gpu::GPUFuncOp::create(b, name, b.getFunctionType(types, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  int32_t threads = kLaneThreads * kTasksOfBlock;
  kernel.setKnownBlockSize(ArrayRef<int32_t>{threads, 1, 1});
  symbols.insert(kernel); // under another name where this one is taken
  b.setInsertionPointToStart(&kernel.getBody().front());
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value lanes = arith::ConstantIndexOp::create(b, kLaneThreads);
  Value inBlock = arith::DivUIOp::create(b, thread, lanes);
  Value first = arith::MulIOp::create(
      b, gpu::BlockIdOp::create(b, gpu::Dimension::x),
      arith::ConstantIndexOp::create(b, kTasksOfBlock));
  Value task = arith::AddIOp::create(b, first, inBlock);
  Value isTask = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, task,
                                       kernel.getArgument(0));
  auto guard = scf::IfOp::create(b, isTask);
  gpu::ReturnOp::create(b);
  b.setInsertionPointToStart(guard.thenBlock());
  IRMapping map;
  map.map(loop.getInductionVars().front(), task);
  for (auto [value, argument] :
       llvm::zip_equal(captured, kernel.getArguments().slice(1, captured.size()))) {
    argument.setLoc(value.getLoc());
    map.map(value, argument);
  }
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, map);
  // What the model has as constants: rotary frequencies.
  guard.walk([&](memref::GetGlobalOp get) {
    auto module = forward->getParentOfType<ModuleOp>();
    if (!symbols.lookup(get.getName()))
      symbols.insert(SymbolTable::lookupSymbolIn(module, get.getName())->clone(),
                     kernels.getBody()->begin());
  });
  return kernel;
}

void Launches::outline(scf::ParallelOp loop) {
  SmallVector<Value> captured = captureValues(loop);
  auto [tasksName, loc] = nameOfTasks(loop);
  std::string name = tasksName.str();
  llvm::replace(name, '.', '_'); // PTX has no such names
  buildKernel(loop, loc, name, captured);

  ImplicitLocOpBuilder b(loc, loop);
  Value tasks = loop.getUpperBound().front(); // kernels start at 0 and step by 1
  captured.insert(captured.begin(), tasks);
  Arguments arguments = storeArguments(b, converter, captured);
  auto number = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, b.getI64Type(), value);
  };
  Value bytes = LLVM::PtrToIntOp::create(
      b, b.getI64Type(),
      LLVM::GEPOp::create(b, pointer, arguments.type, LLVM::ZeroOp::create(b, pointer),
                          ArrayRef<LLVM::GEPArg>{1}));
  Value blocks = arith::IndexCastOp::create(
      b, b.getI64Type(),
      arith::CeilDivUIOp::create(
          b, tasks, arith::ConstantIndexOp::create(b, kTasksOfBlock)));
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(loop.getContext()),
      {pointer, pointer, b.getI64Type(), b.getI64Type(), pointer, b.getI64Type()});
  Value launch = LLVM::LoadOp::create(b, pointer, launcher);
  LLVM::CallOp::create(
      b, type,
      ValueRange{launch, launcher, number(count++), blocks, arguments.address,
                 bytes});
  loop.erase();
}

namespace {
struct OutlineLaunches : kvc::impl::OutlineLaunchesBase<OutlineLaunches> {
  void runOnOperation() override {
    func::FuncOp forward = lookupForward(getOperation());
    if (!forward)
      return;
    if (failed(verifyAbiForward(forward)))
      return signalPassFailure();
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    auto kernels =
        gpu::GPUModuleOp::create(b, getOperation().getLoc(), kKernelModule);
    Launches launches(forward, kernels);
    for (scf::ParallelOp loop : outermostLoops(forward))
      launches.outline(loop);
    // The host reads none of the device's memory, but its own constants.
    WalkResult reads = forward.walk([&](Operation *op) {
      auto load = dyn_cast<memref::LoadOp>(op);
      bool isHosts = load && load.getMemRef().getDefiningOp<memref::GetGlobalOp>();
      if ((load && !isHosts) || isa<memref::StoreOp, memref::CopyOp>(op)) {
        op->emitOpError("expected the device's memory to be touched by tasks alone");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (reads.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
