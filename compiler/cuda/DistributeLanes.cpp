// kvc-distribute-lanes: see Passes.td.
//
// A vector of n <= 16 numbers becomes one number in each of the first n lanes, one of
// 16 k a vector of k, and an op on vectors the same op on these. What crosses lanes is a
// shuffle. All lanes of a task do its scalar work, with the same result, and follow the
// same branches; only the first stores it.
//
// Sums keep their order: the lanes that `reduceAdd` halves are the same ones.
#include "compiler/Passes.h"
#include "compiler/cuda/Launch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kvc {
#define GEN_PASS_DEF_DISTRIBUTELANES
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

// Where a view's elements stand: a parameter of the kernel or a task's own memory.
Value rootOf(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

bool isZero(Value index) { return isConstantIntValue(index, 0); }

// Whether each lane touches its own element alone: [...][16], whole vectors.
bool isPrivate(memref::AllocaOp memory) {
  auto isWhole = [](VectorType type, ValueRange indices) {
    return type.getNumElements() == kLanes && isZero(indices.back());
  };
  return memory.getType().getShape().back() == kLanes &&
         llvm::all_of(memory->getUsers(), [&](Operation *user) {
           if (auto load = dyn_cast<vector::LoadOp>(user))
             return isWhole(load.getVectorType(), load.getIndices());
           if (auto store = dyn_cast<vector::StoreOp>(user))
             return isWhole(store.getVectorType(), store.getIndices());
           return false;
         });
}

class Distribution {
public:
  Distribution(gpu::GPUFuncOp kernel)
      : kernel(kernel), b(kernel.getLoc(), kernel.getContext()) {}
  LogicalResult run();

private:
  // How many numbers of a vector a lane has.
  static int64_t perLane(VectorType type) {
    return std::max<int64_t>(1, type.getNumElements() / kLaneThreads);
  }
  static Type ofLane(Type type) {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector)
      return type;
    int64_t count = perLane(vector);
    return count == 1 ? vector.getElementType()
                      : VectorType::get({count}, vector.getElementType());
  }
  Value at(Value value) { return map.lookupOrDefault(value); }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value word(int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value isLaneBelow(int64_t count) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane, index(count));
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }
  Value shuffle(Value value, Value from); // what lane `from`, an i32, has
  Value shuffle(Value value, int64_t from) { return shuffle(value, word(from)); }
  void synchronise() { NVVM::SyncWarpOp::create(b, mask); }

  // The memory that stands for `memref`, and its indices there.
  std::pair<Value, SmallVector<Value>> place(Value memref, ValueRange indices,
                                             bool addsLane);
  // Where lanes exchange numbers by memory: it is read and written in this kernel.
  bool isExchange(Value memref) { return exchanges.contains(rootOf(memref)); }
  void store(Value memref, function_ref<void()> write);

  LogicalResult rewrite(Block &from);
  LogicalResult rewrite(Operation &op);
  void allocate(memref::AllocaOp op);
  void load(vector::LoadOp op);
  Value bitCast(vector::BitCastOp op);
  Value reduce(vector::ReductionOp op);
  FailureOr<Value> intrinsic(LLVM::CallIntrinsicOp op);
  LogicalResult constant(arith::ConstantOp op);
  LogicalResult loop(scf::ForOp op);
  LogicalResult branch(scf::IfOp op);

  gpu::GPUFuncOp kernel;
  ImplicitLocOpBuilder b;
  IRMapping map;
  Value lane, laneWord, inBlock, mask;
  DenseSet<Value> exchanges, privates;
  DenseSet<Value> shared; // new memory with an axis of a block's tasks
};

} // namespace

Value Distribution::shuffle(Value value, Value from) {
  Type type = value.getType();
  auto move = [&](Value value) -> Value {
    // A segment of 16 lanes, of which `from` is any.
    return NVVM::ShflOp::create(b, value.getType(), mask, value, from,
                                word((32 - kLaneThreads) << 8 | 31),
                                NVVM::ShflKind::idx, UnitAttr());
  };
  auto asInteger = [&](int64_t bits) -> Type { return b.getIntegerType(bits); };
  if (type.isF32() || type.isInteger(32))
    return move(value);
  if (type.isIndex())
    return arith::IndexCastOp::create(
        b, type,
        shuffle(arith::IndexCastOp::create(b, asInteger(64), value), from));
  int64_t bits = type.getIntOrFloatBitWidth();
  Value integer = isa<FloatType>(type)
                      ? Value(arith::BitcastOp::create(b, asInteger(bits), value))
                      : value;
  if (bits < 32) {
    integer = arith::TruncIOp::create(
        b, asInteger(bits),
        move(arith::ExtUIOp::create(b, asInteger(32), integer)));
  } else { // 64
    Value half = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
    Value low = move(arith::TruncIOp::create(b, asInteger(32), integer));
    Value high = move(arith::TruncIOp::create(
        b, asInteger(32), arith::ShRUIOp::create(b, integer, half)));
    integer = arith::OrIOp::create(
        b, arith::ExtUIOp::create(b, asInteger(64), low),
        arith::ShLIOp::create(b, arith::ExtUIOp::create(b, asInteger(64), high),
                              half));
  }
  return isa<FloatType>(type) ? Value(arith::BitcastOp::create(b, type, integer))
                              : integer;
}

std::pair<Value, SmallVector<Value>>
Distribution::place(Value memref, ValueRange indices, bool addsLane) {
  Value memory = at(memref);
  SmallVector<Value> result;
  if (shared.contains(memory))
    result.push_back(inBlock);
  for (Value i : indices)
    result.push_back(at(i));
  if (privates.contains(memref))
    result.pop_back();
  else if (addsLane)
    result.back() = isZero(indices.back())
                        ? lane
                        : Value(arith::AddIOp::create(b, result.back(), lane));
  return {memory, result};
}

// What others read now has been read before, and what is written now is seen.
void Distribution::store(Value memref, function_ref<void()> write) {
  bool isSeen = isExchange(memref);
  if (isSeen)
    synchronise();
  write();
  if (isSeen)
    synchronise();
}

void Distribution::allocate(memref::AllocaOp op) {
  SmallVector<int64_t> shape(op.getType().getShape());
  if (isPrivate(op)) {
    privates.insert(op);
    shape.pop_back();
    map.map(op.getResult(),
            memref::AllocaOp::create(
                b, MemRefType::get(shape, op.getType().getElementType()))
                .getResult());
    return;
  }
  shape.insert(shape.begin(), kTasksOfBlock);
  auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                          gpu::AddressSpace::Workgroup);
  Value memory = kernel.addWorkgroupAttribution(
      MemRefType::get(shape, op.getType().getElementType(), AffineMap(), space),
      op.getLoc());
  shared.insert(memory);
  map.map(op.getResult(), memory);
}

void Distribution::load(vector::LoadOp op) {
  int64_t count = op.getVectorType().getNumElements();
  Type element = op.getVectorType().getElementType();
  if (int64_t each = perLane(op.getVectorType()); each > 1) {
    auto [memory, indices] = place(op.getBase(), op.getIndices(), /*addsLane=*/false);
    indices.back() = arith::AddIOp::create(
        b, indices.back(), arith::MulIOp::create(b, lane, index(each)));
    // They stand together at a multiple of their size (Storage::pack).
    auto loaded = vector::LoadOp::create(b, VectorType::get({each}, element), memory,
                                         indices);
    loaded.setAlignment(each * element.getIntOrFloatBitWidth() / 8);
    map.map(op.getResult(), loaded.getResult());
    return;
  }
  auto [memory, indices] = place(op.getBase(), op.getIndices(), /*addsLane=*/true);
  if (count == kLanes) {
    map.map(op.getResult(),
            memref::LoadOp::create(b, memory, indices).getResult());
    return;
  }
  auto inside = scf::IfOp::create(b, element, isLaneBelow(count),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(inside.thenBlock());
  scf::YieldOp::create(
      b, ValueRange{memref::LoadOp::create(b, memory, indices).getResult()});
  b.setInsertionPointToStart(inside.elseBlock());
  scf::YieldOp::create(b, ValueRange{arith::ConstantOp::create(
                                         b, b.getZeroAttr(element))
                                         .getResult()});
  map.map(op.getResult(), inside.getResult(0));
}

// Of what a lane has; or of bytes, one in each lane, a word of four in every fourth's.
Value Distribution::bitCast(vector::BitCastOp op) {
  Value source = at(op.getSource());
  auto from = op.getSourceVectorType(), to = op.getResultVectorType();
  if (perLane(from) == 1 && from.getNumElements() > to.getNumElements()) {
    int64_t parts = from.getNumElements() / to.getNumElements();
    int64_t bits = from.getElementTypeBitWidth();
    Value result;
    for (int64_t part = 0; part != parts; ++part) {
      Value place = arith::AddIOp::create(
          b, arith::MulIOp::create(b, laneWord, word(parts)), word(part));
      Value wide = arith::ExtUIOp::create(b, b.getI32Type(), shuffle(source, place));
      if (part)
        wide = arith::ShLIOp::create(b, wide, word(part * bits));
      result = part ? Value(arith::OrIOp::create(b, result, wide)) : wide;
    }
    return result;
  }
  // vector.bitcast takes no scalars.
  if (!isa<VectorType>(source.getType()))
    source = vector::BroadcastOp::create(b, VectorType::get({1}, source.getType()),
                                         source);
  Type type = ofLane(to);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector::BitCastOp::create(b, vector, source);
  Value one = vector::BitCastOp::create(b, VectorType::get({1}, type), source);
  return vector::ExtractOp::create(b, one, ArrayRef<int64_t>{0});
}

// Of integers, in whose sums no order shows.
Value Distribution::reduce(vector::ReductionOp op) {
  Value value = at(op.getVector());
  for (int64_t distance = kLaneThreads / 2; distance; distance /= 2) {
    Value other =
        shuffle(value, arith::XOrIOp::create(b, laneWord, word(distance)));
    value = op.getKind() == vector::CombiningKind::ADD
                ? Value(arith::AddIOp::create(b, value, other))
                : Value(arith::MaxSIOp::create(b, value, other));
  }
  return value;
}

// The dot product of four bytes without a sign by four with one, added to a word.
FailureOr<Value> Distribution::intrinsic(LLVM::CallIntrinsicOp op) {
  if (op.getIntrin() != "llvm.x86.avx512.vpdpbusd.512")
    return op.emitOpError("expected an intrinsic that a device has, but got ")
           << op.getIntrin();
  return NVVM::DotAccumulate4WayOp::create(
             b, b.getI32Type(), at(op.getArgs()[1]), NVVM::DotAccumulateType::UNSIGNED,
             at(op.getArgs()[2]), NVVM::DotAccumulateType::SIGNED, at(op.getArgs()[0]))
      .getResult();
}

LogicalResult Distribution::constant(arith::ConstantOp op) {
  auto dense = cast<DenseElementsAttr>(op.getValue());
  if (dense.isSplat()) {
    auto value = cast<TypedAttr>(dense.getSplatValue<Attribute>());
    if (auto vector = dyn_cast<VectorType>(ofLane(dense.getType())))
      value = DenseElementsAttr::get(vector, dense.getSplatValue<Attribute>());
    map.map(op.getResult(), arith::ConstantOp::create(b, value).getResult());
    return success();
  }
  if (!dense.getElementType().isInteger(1))
    return op.emitOpError("expected equal numbers or bits, but got ") << dense;
  int64_t bits = 0;
  for (auto [i, bit] : llvm::enumerate(dense.getValues<bool>()))
    bits |= int64_t(bit) << i;
  Value shifted = arith::ShRUIOp::create(b, word(bits), laneWord);
  map.map(op.getResult(),
          arith::TruncIOp::create(b, b.getI1Type(), shifted).getResult());
  return success();
}

LogicalResult Distribution::loop(scf::ForOp op) {
  SmallVector<Value> initial = llvm::map_to_vector(
      op.getInitArgs(), [&](Value value) { return at(value); });
  auto made = scf::ForOp::create(b, at(op.getLowerBound()), at(op.getUpperBound()),
                                 at(op.getStep()), initial);
  made.getInductionVar().setLoc(op.getInductionVar().getLoc());
  map.map(op.getInductionVar(), made.getInductionVar());
  map.map(op.getRegionIterArgs(), made.getRegionIterArgs());
  map.map(op.getResults(), made.getResults());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  if (failed(rewrite(*op.getBody())))
    return failure();
  // One without results has its terminator from the start.
  if (Operation *end = op.getBody()->getTerminator(); end->getNumOperands())
    scf::YieldOp::create(b, llvm::map_to_vector(end->getOperands(), [&](Value value) {
                           return at(value);
                         }));
  return success();
}

LogicalResult Distribution::branch(scf::IfOp op) {
  SmallVector<Type> types = llvm::map_to_vector(
      op.getResultTypes(), [&](Type type) { return ofLane(type); });
  auto made = scf::IfOp::create(b, types, at(op.getCondition()),
                                /*withElseRegion=*/bool(op.elseBlock()));
  map.map(op.getResults(), made.getResults());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : {std::pair(op.thenBlock(), made.thenBlock()),
                          std::pair(op.elseBlock(), made.elseBlock())}) {
    if (!from)
      continue;
    b.setInsertionPointToStart(to);
    if (failed(rewrite(*from)))
      return failure();
    if (Operation *end = from->getTerminator(); end->getNumOperands())
      scf::YieldOp::create(b,
                           llvm::map_to_vector(end->getOperands(), [&](Value value) {
                             return at(value);
                           }));
  }
  return success();
}

LogicalResult Distribution::rewrite(Operation &op) {
  b.setLoc(op.getLoc());
  auto set = [&](Value value) {
    map.map(op.getResult(0), value);
    return success();
  };
  auto holdsVectors = [](TypeRange types) {
    return llvm::any_of(types, [](Type type) { return isa<VectorType>(type); });
  };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](memref::AllocaOp o) { return allocate(o), success(); })
      .Case([&](vector::LoadOp o) { return load(o), success(); })
      .Case([&](vector::StoreOp o) {
        store(o.getBase(), [&] {
          auto [memory, indices] = place(o.getBase(), o.getIndices(), true);
          int64_t count = o.getVectorType().getNumElements();
          OpBuilder::InsertionGuard guard(b);
          if (count != kLanes)
            b.setInsertionPointToStart(
                scf::IfOp::create(b, isLaneBelow(count)).thenBlock());
          memref::StoreOp::create(b, at(o.getValueToStore()), memory, indices);
        });
        return success();
      })
      .Case([&](memref::LoadOp o) {
        auto [memory, indices] = place(o.getMemRef(), o.getIndices(), false);
        return set(memref::LoadOp::create(b, memory, indices));
      })
      .Case([&](memref::StoreOp o) {
        store(o.getMemRef(), [&] {
          auto [memory, indices] = place(o.getMemRef(), o.getIndices(), false);
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToStart(
              scf::IfOp::create(b, isLaneBelow(1)).thenBlock());
          memref::StoreOp::create(b, at(o.getValueToStore()), memory, indices);
        });
        return success();
      })
      // Threads hide the wait, and of a thread alone the other is no instruction.
      .Case<memref::PrefetchOp, LLVM::FenceOp>([&](auto) { return success(); })
      .Case([&](vector::BitCastOp o) { return set(bitCast(o)); })
      .Case([&](vector::ReductionOp o) { return set(reduce(o)); })
      .Case([&](LLVM::CallIntrinsicOp o) -> LogicalResult {
        FailureOr<Value> value = intrinsic(o);
        return failed(value) ? failure() : set(*value);
      })
      .Case([&](vector::BroadcastOp o) -> LogicalResult {
        if (auto from = dyn_cast<VectorType>(o.getSource().getType()))
          return set(shuffle(at(o.getSource()), int64_t(0)));
        return set(at(o.getSource()));
      })
      .Case([&](vector::StepOp) { return set(lane); })
      .Case([&](vector::ExtractOp o) -> LogicalResult {
        if (!o.hasDynamicPosition())
          return set(shuffle(at(o.getSource()), o.getStaticPosition().front()));
        Value from = arith::IndexCastOp::create(
            b, b.getI32Type(), at(o.getDynamicPosition().front()));
        return set(shuffle(at(o.getSource()), from));
      })
      .Case([&](vector::InsertOp o) -> LogicalResult {
        if (o.hasDynamicPosition())
          return o.emitOpError("expected a constant position");
        Value here =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                                  index(o.getStaticPosition().front()));
        return set(select(here, at(o.getValueToStore()), at(o.getDest())));
      })
      .Case([&](vector::ExtractStridedSliceOp o) -> LogicalResult {
        int64_t offset = cast<IntegerAttr>(o.getOffsets()[0]).getInt();
        if (offset == 0)
          return set(at(o.getSource()));
        return set(shuffle(at(o.getSource()),
                           arith::AddIOp::create(b, laneWord, word(offset))));
      })
      .Case([&](vector::InsertStridedSliceOp o) -> LogicalResult {
        int64_t offset = cast<IntegerAttr>(o.getOffsets()[0]).getInt();
        int64_t count = o.getSourceVectorType().getNumElements();
        Value part = at(o.getValueToStore()), here = isLaneBelow(offset + count);
        if (offset) {
          part = shuffle(part, arith::SubIOp::create(b, laneWord, word(offset)));
          here = arith::AndIOp::create(
              b, here,
              arith::CmpIOp::create(b, arith::CmpIPredicate::uge, lane,
                                    index(offset)));
        }
        return set(select(here, part, at(o.getDest())));
      })
      .Case([&](scf::ForOp o) { return loop(o); })
      .Case([&](scf::IfOp o) { return branch(o); })
      .Default([&](Operation *) -> LogicalResult {
        auto value = dyn_cast<arith::ConstantOp>(op);
        if (value && isa<VectorType>(value.getType()))
          return constant(value);
        bool hasVectors = holdsVectors(op.getOperandTypes()) ||
                          holdsVectors(op.getResultTypes());
        if (!hasVectors) {
          b.clone(op, map);
          return success();
        }
        if (!op.hasTrait<OpTrait::Elementwise>())
          return op.emitOpError("expected an op that a lane can do by itself");
        OperationState state(b.getLoc(), op.getName());
        for (Value operand : op.getOperands())
          state.addOperands(at(operand));
        for (Type type : op.getResultTypes())
          state.addTypes(ofLane(type));
        state.addAttributes(op.getAttrs());
        map.map(op.getResults(), b.create(state)->getResults());
        return success();
      });
}

LogicalResult Distribution::rewrite(Block &from) {
  for (Operation &op : from.without_terminator())
    if (failed(rewrite(op)))
      return failure();
  return success();
}

LogicalResult Distribution::run() {
  DenseMap<Value, int> touched; // 1: read, 2: written
  kernel.walk([&](Operation *op) {
    auto touch = [&](Value memref, int how) { touched[rootOf(memref)] |= how; };
    if (auto load = dyn_cast<memref::LoadOp>(op))
      touch(load.getMemRef(), 1);
    if (auto load = dyn_cast<vector::LoadOp>(op))
      touch(load.getBase(), 1);
    if (auto store = dyn_cast<memref::StoreOp>(op))
      touch(store.getMemRef(), 2);
    if (auto store = dyn_cast<vector::StoreOp>(op))
      touch(store.getBase(), 2);
  });
  for (auto [root, how] : touched) {
    auto own = root.getDefiningOp<memref::AllocaOp>();
    if (how == 3 && !(own && isPrivate(own)))
      exchanges.insert(root);
  }
  // The old ops move behind what is written anew.
  Block &body = kernel.getBody().front();
  Block *old = body.splitBlock(body.begin());
  b.setInsertionPointToEnd(&body);
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  lane = arith::RemUIOp::create(b, thread, index(kLaneThreads));
  inBlock = arith::DivUIOp::create(b, thread, index(kLaneThreads));
  laneWord = arith::IndexCastOp::create(b, b.getI32Type(), lane);
  Value first = arith::MulIOp::create(
      b, arith::IndexCastOp::create(b, b.getI32Type(), inBlock), word(kLaneThreads));
  mask = arith::ShLIOp::create(b, word((1 << kLaneThreads) - 1), first);
  if (failed(rewrite(*old)))
    return failure();
  b.setLoc(kernel.getLoc());
  gpu::ReturnOp::create(b);
  old->dropAllReferences();
  old->dropAllDefinedValueUses();
  old->erase();
  return success();
}

namespace {
struct DistributeLanes : kvc::impl::DistributeLanesBase<DistributeLanes> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(Distribution(kernel).run()))
        return signalPassFailure();
  }
};
} // namespace
