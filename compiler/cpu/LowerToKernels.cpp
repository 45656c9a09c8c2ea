// kvc-lower-to-kernels: see Passes.td. Walks `@forward` op by op and has each
// written as a kernel (Kernels.h) from buffers into a buffer.
#include "compiler/ForwardSignature.h"
#include "compiler/ModuleText.h"
#include "compiler/Passes.h"
#include "compiler/cpu/ForwardLowering.h"
#include "compiler/verify/ForwardOps.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kvc {
#define GEN_PASS_DEF_LOWERTOKERNELS
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

// A head's sums are unrolled, 16 elements a vector, and its scratch memory is on
// a thread's stack.
static constexpr int64_t kMaxHeadWidth = 1024;
// The same of the query heads that share a KV head: the sum of (width + 64).
static constexpr int64_t kMaxGroupElements = 1 << 16;

// What machine code calls the op's kernels: "linear.attn_q", "attend.attended",
// "together.attn_q.attn_k.attn_v".
static std::string kernelName(Operation *op) {
  std::string kernel = op->getName().stripDialect().str();
  auto add = [&](StringRef of) {
    if (!of.empty())
      kernel += "." + of.str();
  };
  if (auto user = dyn_cast<WeightUser>(op))
    add(user.getWeights().front().symbol.getValue());
  else if (auto together = dyn_cast<TogetherOp>(op))
    together.walk([&](WeightUser member) {
      add(member.getWeights().front().symbol.getValue());
    });
  else if (op->getNumResults())
    add(textName(op->getResult(0)));
  for (char &c : kernel)
    if (!llvm::isAlnum(c) && c != '.' && c != '_')
      c = '_';
  return kernel;
}

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
  Value rows = rowCounts[tensor] = rowCounts.lookup(like);
  if (tensor == logits && tensor.getDefiningOp<LinearOp>())
    return buffers[tensor] = logitsBuffer;
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  return buffers[tensor] = b.named(
             textName(tensor),
             memref::AllocOp::create(b, memref, ValueRange{rows}));
}

Value ForwardLowering::reuseOrAllocate(KernelBuilder &b, Value tensor,
                                       Value operand) {
  if (tensor != logits && diesAt(operand, tensor.getDefiningOp()) &&
      operand.getType() == tensor.getType()) {
    rowCounts[tensor] = rowCounts.lookup(operand);
    return buffers[tensor] = buffer(operand);
  }
  return allocate(b, tensor, operand);
}

Value ForwardLowering::vector(KernelBuilder &b, WeightUser op,
                              FlatSymbolRefAttr symbol) {
  if (!symbol)
    return Value();
  auto declaration = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, symbol);
  return viewVector(b, lowered.getArgument(AbiArgument::Weights), declaration,
                    declaration.isStacked() ? scalar(op.getLayer()) : Value());
}

Matrix ForwardLowering::matrix(KernelBuilder &b, WeightUser op,
                               FlatSymbolRefAttr symbol) {
  auto declaration = SymbolTable::lookupNearestSymbolFrom<NamedWeight>(op, symbol);
  return viewMatrix(b, lowered.getArgument(AbiArgument::Weights), declaration,
                    declaration.isStacked() ? scalar(op.getLayer()) : Value());
}

LinearKernel ForwardLowering::linearKernel(KernelBuilder &b, Operation *op,
                                           RoundedInput &made) {
  Value input = cast<RowTasks>(op).getInput();
  LinearKernel kernel{textLocation(op),
                      cast<RankedTensorType>(input.getType()).getDimSize(1)};
  auto addWeights = [&](WeightUser user, ArrayRef<FlatSymbolRefAttr> weights,
                        ArrayRef<FlatSymbolRefAttr> biases) {
    for (FlatSymbolRefAttr symbol : weights)
      kernel.weights.push_back(matrix(b, user, symbol));
    for (FlatSymbolRefAttr symbol : biases)
      kernel.biases.push_back(vector(b, user, symbol));
  };
  Value residual;
  bool rounds, narrows;
  if (auto linear = dyn_cast<LinearOp>(op)) {
    addWeights(linear, linear.getWeightAttr(), linear.getBiasAttr());
    kernel.activation = linear.getActivation();
    residual = linear.getResidual();
    rounds = linear.getRounded();
    narrows = linear.getNarrowed();
  } else {
    auto gated = cast<GatedLinearOp>(op);
    addWeights(gated, {gated.getGateAttr(), gated.getUpAttr()},
               {gated.getGateBiasAttr(), gated.getUpBiasAttr()});
    kernel.activation = gated.getActivation();
    rounds = gated.getRounded();
    narrows = gated.getNarrowed();
  }
  auto make = [&](Value &rounded, ArrayRef<int64_t> row, Type element, StringRef suffix,
                  function_ref<void(KernelBuilder &, Value, Value)> emit) {
    if (rounded)
      return;
    SmallVector<int64_t> shape{ShapedType::kDynamic};
    shape.append(row.begin(), row.end());
    rounded = b.named((textName(input) + "_" + suffix + "ed").str(),
                      memref::AllocOp::create(b, MemRefType::get(shape, element),
                                              rowCounts.lookup(input)));
    std::string name = std::exchange(b.kernel, b.kernel + "." + suffix.str());
    emit(b, buffer(input), rounded);
    b.kernel = name;
  };
  if (rounds)
    make(made.rounded, {kernel.inputs / (2 * kLanes), RoundedRow::Words},
         b.getI32Type(), "round", emitRoundRows);
  if (narrows && isTiles(forward) && target.hasPairDot)
    make(made.narrowed, llvm::divideCeil(kernel.inputs, 32) * 16, b.getI32Type(),
         "narrow", emitPairRows);
  else if (narrows)
    make(made.narrowed, kernel.inputs, b.arithmetic, "narrow", emitNarrowRows);
  Value result = op->getResult(0);
  kernel.input = buffer(input);
  kernel.rounded = rounds ? made.rounded : Value();
  kernel.narrowed = narrows ? made.narrowed : Value();
  kernel.residual = residual ? buffer(residual) : Value();
  kernel.output = residual && residual != input
                      ? reuseOrAllocate(b, result, residual)
                      : allocate(b, result, input);
  kernel.isLogits = result == logits;
  kernel.isTiles = isTiles(forward);
  return kernel;
}

// Element by element, in the vectors of a kernel as it is on tensors.
void ForwardLowering::lowerArithmetic(KernelBuilder &b, Operation *op) {
  SmallVector<Value> inputs = llvm::map_to_vector(
      op->getOperands(), [&](Value operand) { return buffer(operand); });
  Value result = op->getResult(0);
  emitElementwise(b, inputs, reuseOrAllocate(b, result, op->getOperand(0)),
                  [&](ValueRange x) {
                    OperationState state(b.getLoc(), op->getName(), x,
                                         b.lanes(), op->getAttrs());
                    return b.create(state)->getResult(0);
                  });
}

LogicalResult ForwardLowering::lower(KernelBuilder &b, Operation *op) {
  auto fail = [](Operation *op) -> LogicalResult {
    return op->emitOpError("expected an op that @forward may use in its fused "
                           "form (compiler/verify/ForwardOps.h)");
  };
  if (!isForwardOp(op))
    return fail(op);
  b.setLoc(textLocation(op));
  b.kernel = kernelName(op);
  if (isIndexArithmetic(op)) {
    Operation *copy = b.clone(*op, scalars);
    if (isa<arith::ConstantOp>(copy))
      copy->setLoc(b.getLoc()); // its name says less than its number
    return success();
  }
  if (isRowArithmetic(op)) {
    lowerArithmetic(b, op);
    return success();
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](PositionsOp o) {
        emitPositions(b, cache, buffer(o.getSequences()),
                      allocate(b, o.getPositions(), o.getSequences()));
        return success();
      })
      .Case([&](EmbedOp o) {
        emitEmbed(b, buffer(o.getIds()), matrix(b, o, o.getTableAttr()),
                  allocate(b, o.getResult(), o.getIds()));
        return success();
      })
      .Case([&](SelectOp o) {
        emitSelect(b, buffer(o.getInput()), buffer(o.getRows()),
                   allocate(b, o.getResult(), o.getRows()));
        return success();
      })
      .Case([&](RMSNormOp o) {
        emitRMSNorm(b, buffer(o.getInput()), vector(b, o, o.getWeightAttr()),
                    o.getEpsilon().convertToDouble(),
                    allocate(b, o.getResult(), o.getInput()));
        return success();
      })
      .Case([&](LayerNormOp o) {
        emitLayerNorm(b, buffer(o.getInput()), vector(b, o, o.getWeightAttr()),
                      vector(b, o, o.getBiasAttr()),
                      o.getEpsilon().convertToDouble(),
                      allocate(b, o.getResult(), o.getInput()));
        return success();
      })
      .Case<LinearOp, GatedLinearOp>([&](Operation *o) {
        RoundedInput made;
        emitLinear(b, linearKernel(b, o, made), target);
        return success();
      })
      .Case([&](TogetherOp o) {
        SmallVector<LinearKernel> kernels;
        RoundedInput made; // they have one input
        for (auto [result, member] : llvm::zip_equal(o.getResults(), o.getOps())) {
          kernels.push_back(linearKernel(b, &member, made));
          buffers[result] = kernels.back().output;
          rowCounts[result] = rowCounts.lookup(member.getResult(0));
        }
        emitLinear(b, kernels, target);
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
      .Case([&](RotaryOp o) {
        Value input = buffer(o.getInput());
        emitRotary(b, o, input, buffer(o.getPositions()),
                   reuseOrAllocate(b, o.getResult(), o.getInput()));
        return success();
      })
      .Case([&](AppendOp o) {
        emitAppend(b, GroupBuffers(cache, o.getGroup()), buffer(o.getKeys()),
                   buffer(o.getValues()), scalar(o.getLayer()),
                   buffer(o.getPositions()), buffer(o.getSequences()));
        return success();
      })
      .Case([&](AttendOp o) -> LogicalResult {
        int64_t width = o.getCacheGroup().keyWidth;
        int64_t group = o.getType().getDimSize(1) / width / o.getCacheGroup().kvHeads;
        int64_t most = kMaxGroupElements / (width + 64);
        if (group > most)
          return o.emitOpError()
                 << "expected at most " << most
                 << " query heads of this width to share a KV head for the CPU, "
                    "but got "
                 << group;
        emitAttend(b, GroupBuffers(cache, o.getGroup()), buffer(o.getQueries()),
                   scalar(o.getLayer()), buffer(o.getPositions()),
                   buffer(o.getSequences()), o.getScale().convertToDouble(),
                   o.getWindow(),
                   allocate(b, o.getResult(), o.getQueries()), target);
        return success();
      })
      .Case([&](scf::ForOp loop) { return lowerFor(b, loop); })
      .Case([&](scf::IfOp choice) { return lowerIf(b, choice); })
      .Default(fail);
}

LogicalResult ForwardLowering::lowerBlock(KernelBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(lower(b, &op)))
      return failure();
  return success();
}

LogicalResult ForwardLowering::run() {
  if (failed(verifyForwardSignature(forward)))
    return failure();
  Block &body = forward.getBody().front();
  logits = body.getTerminator()->getOperand(ForwardResult::Logits);
  CacheType cacheType = cacheTypeOf(forward);
  for (const Group &group : cacheType.getGroups())
    if (group.keyWidth > kMaxHeadWidth)
      return forward.emitError()
             << "expected heads of at most " << kMaxHeadWidth
             << " elements for the CPU, but got " << group.keyWidth;

  OpBuilder builder(forward);
  RankedTensorType logitsType = logitsTypeOf(forward);
  lowered = createAbiForward(builder, textLocation(forward),
                             logitsType.getElementType());
  builder.setInsertionPointToStart(&lowered.getBody().front());
  KernelBuilder b(lowered.getLoc(), builder, logitsType.getElementType());
  auto bind = [&](unsigned argument, unsigned abiArgument) {
    Value tensor = body.getArgument(argument);
    buffers[tensor] = lowered.getArgument(abiArgument);
    rowCounts[tensor] = b.rowsOf(buffers[tensor]);
  };
  bind(ForwardArgument::Tokens, AbiArgument::Tokens);
  bind(ForwardArgument::Sequences, AbiArgument::Sequences);
  bind(ForwardArgument::Outputs, AbiArgument::Outputs);
  cache = {cacheType, lowered.getArgument(AbiArgument::Pool),
           lowered.getArgument(AbiArgument::Pages),
           lowered.getArgument(AbiArgument::Lengths)};
  logitsBuffer = viewLogits(b, lowered, logitsType);

  if (failed(lowerBlock(b, body)))
    return failure();
  // Those of no linear layer, which writes them there itself.
  b.kernel = "logits";
  if (buffer(logits) != logitsBuffer)
    emitElementwise(b, {buffer(logits)}, logitsBuffer,
                    [&](ValueRange x) { return b.oneNaN(x[0]); });
  func::ReturnOp::create(b);
  forward.erase();
  return success();
}

namespace {
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
      if (!weight.getPacking() ||
          weight.getPacking()->getPanel() != weight.getStorage().panel) {
        weight.emitOpError("expected panels of ")
            << weight.getStorage().panel << " from kvc-assign-packing";
        return signalPassFailure();
      }
    ProductShapes floats{{2, 2}, {6, 1}}, integers{{2, 2}, {4, 1}};
    for (auto [given, shapes] : {std::pair<ArrayRef<int64_t>, ProductShapes *>{
                                     floatShapes, &floats},
                                 {integerShapes, &integers}}) {
      if (given.empty())
        continue;
      if (given.size() != 4) {
        module.emitError("expected 4 numbers for the shapes of a product, but got ")
            << given.size();
        return signalPassFailure();
      }
      *shapes = {{given[0], given[1]}, {given[2], given[3]}};
    }
    LinearTarget target{vectorBits, byteDot,  pairDot,  tiles, {tileRows, tileGroups},
                        floats,     integers, taskRows, taskBytes};
    if (target.isDevice() && isTiles(module)) {
      module.emitError("expected the numerics of class fma for a device, but got tiles");
      return signalPassFailure();
    }
    if (failed(ForwardLowering(forward, target).run()))
      return signalPassFailure();
    for (auto weight : llvm::make_early_inc_range(module.getOps<NamedWeight>()))
      weight->erase();
    module->setLoc(textLocation(module));
  }
};
} // namespace
