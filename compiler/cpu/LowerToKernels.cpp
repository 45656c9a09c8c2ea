// kvc-lower-to-kernels: see Passes.td. Walks `@forward` op by op and has each
// written as a kernel (Kernels.h) from buffers into a buffer.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "compiler/cpu/Kernels.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kvc {
#define GEN_PASS_DEF_LOWERTOKERNELS
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

// A head's sums are unrolled, 16 elements a vector, and its scratch memory is on
// a thread's stack.
constexpr int64_t kMaxHeadWidth = 1024;

class ForwardLowering {
public:
  ForwardLowering(func::FuncOp forward, TileShape tile)
      : forward(forward), tile(tile) {}
  LogicalResult run();

private:
  LogicalResult lowerBlock(KernelBuilder &b, Block &block);
  LogicalResult lowerLoop(KernelBuilder &b, scf::ForOp loop);
  LogicalResult lower(KernelBuilder &b, Operation *op);

  Value buffer(Value tensor) { return buffers.lookup(tensor); }
  // A buffer for `tensor`, with as many rows as `like` (a tensor, too).
  Value allocate(KernelBuilder &b, Value tensor, Value like);
  // The same, or the buffer of `operand` if that is not needed any more.
  Value reuseOrAllocate(KernelBuilder &b, Value tensor, Value operand);
  bool diesAt(Value tensor, Operation *op);
  Value weight(KernelBuilder &b, Operation *op, FlatSymbolRefAttr symbol,
               Value layer);
  Value scalar(Value index) { return index ? scalars.lookup(index) : Value(); }
  void lowerLinear(KernelBuilder &b, Operation *op, Value input,
                            ArrayRef<FlatSymbolRefAttr> weights,
                            ArrayRef<FlatSymbolRefAttr> biases, Value layer,
                            std::optional<Activation> activation,
                            Value residual);

  func::FuncOp forward;
  TileShape tile;
  func::FuncOp lowered;
  CacheBuffers cache;
  DenseMap<Value, Value> buffers; // tensor to memref
  DenseMap<Value, Value> scalars; // index to index
  Value logits;                   // the tensor that is returned
};

bool ForwardLowering::diesAt(Value tensor, Operation *op) {
  // A buffer can be written over where it is ours and not the caller's, the
  // value's only later use is `op` itself, not something inside of it, and the
  // value is made in the block of `op`, once.
  if (tensor.getParentBlock() != op->getBlock() ||
      llvm::is_contained(forward.getArguments(), tensor))
    return false;
  return llvm::all_of(tensor.getUsers(), [&](Operation *user) {
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    return user == op || (ancestor != op && ancestor->isBeforeInBlock(op));
  }) && llvm::count(op->getOperands(), tensor) == 1;
}

Value ForwardLowering::allocate(KernelBuilder &b, Value tensor, Value like) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (tensor == logits)
    return buffers[tensor] = viewLogits(b, lowered, type);
  Value rows = memref::DimOp::create(b, buffer(like), b.index(0));
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  return buffers[tensor] = memref::AllocOp::create(b, memref, ValueRange{rows});
}

Value ForwardLowering::reuseOrAllocate(KernelBuilder &b, Value tensor,
                                       Value operand) {
  if (tensor != logits && diesAt(operand, tensor.getDefiningOp()) &&
      operand.getType() == tensor.getType())
    return buffers[tensor] = buffer(operand);
  return allocate(b, tensor, operand);
}

Value ForwardLowering::weight(KernelBuilder &b, Operation *op,
                              FlatSymbolRefAttr symbol, Value layer) {
  if (!symbol)
    return Value();
  auto declaration = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, symbol);
  return viewWeight(b, lowered.getArgument(AbiArgument::Weights), declaration,
                    declaration.isStacked() ? scalar(layer) : Value());
}

void ForwardLowering::lowerLinear(
    KernelBuilder &b, Operation *op, Value input,
    ArrayRef<FlatSymbolRefAttr> weights, ArrayRef<FlatSymbolRefAttr> biases,
    Value layer, std::optional<Activation> activation, Value residual) {
  LinearKernel kernel;
  kernel.input = buffer(input);
  for (FlatSymbolRefAttr symbol : weights)
    kernel.weights.push_back(weight(b, op, symbol, layer));
  for (FlatSymbolRefAttr symbol : biases)
    kernel.biases.push_back(weight(b, op, symbol, layer));
  kernel.activation = activation;
  Value result = op->getResult(0);
  kernel.residual = residual ? buffer(residual) : Value();
  kernel.output = residual && residual != input
                      ? reuseOrAllocate(b, result, residual)
                      : allocate(b, result, input);
  kernel.isLogits = result == logits;
  emitLinear(b, kernel, tile);
}

LogicalResult ForwardLowering::lower(KernelBuilder &b, Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp constant) -> LogicalResult {
        if (!constant.getType().isIndex())
          return constant.emitOpError("expected only constants of type index");
        scalars[constant] = b.clone(*op)->getResult(0);
        return success();
      })
      .Case([&](arith::AddIOp o) -> LogicalResult {
        if (!o.getType().isIndex())
          return o.emitOpError("expected only sums of type index");
        scalars[o] = b.add(scalar(o.getLhs()), scalar(o.getRhs()));
        return success();
      })
      .Case([&](PositionsOp o) {
        emitPositions(b, cache, buffer(o.getSequences()),
                      allocate(b, o.getPositions(), o.getSequences()));
        return success();
      })
      .Case([&](EmbedOp o) {
        emitEmbed(b, buffer(o.getIds()), weight(b, o, o.getTableAttr(), Value()),
                  allocate(b, o.getResult(), o.getIds()));
        return success();
      })
      .Case([&](SelectOp o) {
        emitSelect(b, buffer(o.getInput()), buffer(o.getRows()),
                   allocate(b, o.getResult(), o.getRows()));
        return success();
      })
      .Case([&](RMSNormOp o) {
        emitRMSNorm(b, buffer(o.getInput()),
                    weight(b, o, o.getWeightAttr(), o.getLayer()),
                    o.getEpsilon().convertToDouble(),
                    allocate(b, o.getResult(), o.getInput()));
        return success();
      })
      .Case([&](LayerNormOp o) {
        emitLayerNorm(b, buffer(o.getInput()),
                      weight(b, o, o.getWeightAttr(), o.getLayer()),
                      weight(b, o, o.getBiasAttr(), o.getLayer()),
                      o.getEpsilon().convertToDouble(),
                      allocate(b, o.getResult(), o.getInput()));
        return success();
      })
      .Case([&](LinearOp o) {
        lowerLinear(b, o, o.getInput(), {o.getWeightAttr()},
                    {o.getBiasAttr()}, o.getLayer(), o.getActivation(),
                    o.getResidual());
        return success();
      })
      .Case([&](GatedLinearOp o) {
        lowerLinear(b, o, o.getInput(), {o.getGateAttr(), o.getUpAttr()},
                    {o.getGateBiasAttr(), o.getUpBiasAttr()}, o.getLayer(),
                    o.getActivation(), Value());
        return success();
      })
      .Case([&](ActivateOp o) {
        Value input = buffer(o.getInput());
        emitElementwise(b, {input},
                        reuseOrAllocate(b, o.getResult(), o.getInput()),
                        [&](ValueRange x) {
                          return b.activate(x[0], o.getActivation());
                        });
        return success();
      })
      .Case<arith::AddFOp, arith::MulFOp>([&](auto o) {
        Value lhs = buffer(o.getLhs()), rhs = buffer(o.getRhs());
        emitElementwise(b, {lhs, rhs}, reuseOrAllocate(b, o.getResult(), o.getLhs()),
                        [&](ValueRange x) -> Value {
                          return decltype(o)::create(b, x[0], x[1]);
                        });
        return success();
      })
      .Case([&](RotaryOp o) {
        Value input = buffer(o.getInput());
        emitRotary(b, o, input, buffer(o.getPositions()),
                   reuseOrAllocate(b, o.getResult(), o.getInput()));
        return success();
      })
      .Case([&](AppendOp o) {
        emitAppend(b, cache, buffer(o.getKeys()),
                   buffer(o.getValues()), scalar(o.getLayer()),
                   buffer(o.getPositions()), buffer(o.getSequences()));
        return success();
      })
      .Case([&](AttendOp o) {
        emitAttend(b, cache, buffer(o.getQueries()),
                   scalar(o.getLayer()), buffer(o.getPositions()),
                   buffer(o.getSequences()), o.getScale().convertToDouble(),
                   allocate(b, o.getResult(), o.getQueries()));
        return success();
      })
      .Case([&](scf::ForOp loop) { return lowerLoop(b, loop); })
      .Default([&](Operation *other) {
        return other->emitOpError("expected an op that the CPU lowering knows "
                                  "inside @forward; see kvc-lower-to-linalg for "
                                  "the reference lowering of every op");
      });
}

LogicalResult ForwardLowering::lowerBlock(KernelBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(lower(b, &op)))
      return failure();
  return success();
}

// A loop over layers: what it carries stays in the buffer it came in.
LogicalResult ForwardLowering::lowerLoop(KernelBuilder &b, scf::ForOp loop) {
  for (auto [initial, argument] :
       llvm::zip_equal(loop.getInits(), loop.getRegionIterArgs())) {
    if (isa<CacheType>(argument.getType()))
      continue;
    if (!isa<RankedTensorType>(argument.getType()))
      return loop.emitOpError("expected the loop to carry rows and caches, but "
                              "got ")
             << argument.getType();
    Value mine = buffer(initial);
    if (!diesAt(initial, loop)) {
      mine = allocate(b, argument, initial);
      memref::CopyOp::create(b, buffer(initial), mine);
    }
    buffers[argument] = mine;
  }
  auto lowered =
      scf::ForOp::create(b, scalar(loop.getLowerBound()),
                         scalar(loop.getUpperBound()), scalar(loop.getStep()));
  scalars[loop.getInductionVar()] = lowered.getInductionVar();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(lowered.getBody());
    if (failed(lowerBlock(b, *loop.getBody())))
      return failure();
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    SmallVector<std::pair<Value, Value>> copies; // from, to
    for (auto [yielded, argument] :
         llvm::zip_equal(yield.getResults(), loop.getRegionIterArgs()))
      if (!isa<CacheType>(argument.getType()) &&
          buffer(yielded) != buffer(argument))
        copies.push_back({buffer(yielded), buffer(argument)});
    // They happen at once: what another of them writes over is set aside first.
    for (auto &[from, to] : copies)
      if (llvm::is_contained(llvm::make_second_range(copies), from)) {
        Value rows = memref::DimOp::create(b, from, b.index(0));
        Value aside = memref::AllocOp::create(
            b, cast<MemRefType>(from.getType()), ValueRange{rows});
        memref::CopyOp::create(b, from, aside);
        from = aside;
      }
    for (auto [from, to] : copies)
      memref::CopyOp::create(b, from, to);
  }
  for (auto [argument, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults()))
    if (!isa<CacheType>(result.getType()))
      buffers[result] = buffer(argument);
  return success();
}

LogicalResult ForwardLowering::run() {
  if (failed(verifyForwardSignature(forward)))
    return failure();
  Block &body = forward.getBody().front();
  logits = body.getTerminator()->getOperand(0);
  if (logits.getParentBlock() != &body || !logits.getDefiningOp<LinearOp>())
    return forward.emitError()
           << "expected the logits of @forward to come from a kvc.linear";
  CacheType cacheType = cacheTypeOf(forward);
  if (cacheType.getKeyWidth() > kMaxHeadWidth)
    return forward.emitError()
           << "expected heads of at most " << kMaxHeadWidth
           << " elements for the CPU, but got " << cacheType.getKeyWidth();

  OpBuilder builder(forward);
  Type arithmetic = cast<RankedTensorType>(logits.getType()).getElementType();
  lowered = createAbiForward(builder, forward.getLoc(), arithmetic);
  auto bind = [&](unsigned argument, unsigned abiArgument) {
    buffers[body.getArgument(argument)] = lowered.getArgument(abiArgument);
  };
  bind(ForwardArgument::Tokens, AbiArgument::Tokens);
  bind(ForwardArgument::Sequences, AbiArgument::Sequences);
  bind(ForwardArgument::Outputs, AbiArgument::Outputs);
  cache = {cacheType, lowered.getArgument(AbiArgument::Pool),
           lowered.getArgument(AbiArgument::Pages),
           lowered.getArgument(AbiArgument::Lengths)};

  builder.setInsertionPointToStart(&lowered.getBody().front());
  KernelBuilder b(forward.getLoc(), builder, arithmetic);
  if (failed(lowerBlock(b, body)))
    return failure();
  func::ReturnOp::create(b);
  forward.erase();
  return success();
}

struct LowerToKernels : kvc::impl::LowerToKernelsBase<LowerToKernels> {
  using LowerToKernelsBase::LowerToKernelsBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    func::FuncOp forward = lookupForward(module);
    if (!forward) {
      module.emitError("expected a function @forward");
      return signalPassFailure();
    }
    for (auto weight : module.getOps<WeightOp>())
      if (!weight.getPacking() || weight.getPacking()->getPanel() != kLanes) {
        weight.emitOpError("expected panels of ")
            << kLanes << " from kvc-pack-weights";
        return signalPassFailure();
      }
    if (failed(ForwardLowering(forward, {tileRows, tilePanels}).run()))
      return signalPassFailure();
    for (auto weight : llvm::make_early_inc_range(module.getOps<WeightOp>()))
      weight.erase();
  }
};
} // namespace
