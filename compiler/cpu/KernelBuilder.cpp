#include "compiler/cpu/KernelBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace kvc;

Value KernelBuilder::named(StringRef name, Value value) {
  if (!name.empty())
    value.setLoc(NameLoc::get(getStringAttr(name), getLoc()));
  return value;
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value KernelBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}
Value KernelBuilder::add(Value a, Value b) {
  return arith::AddIOp::create(*this, a, b);
}
Value KernelBuilder::sub(Value a, Value b) {
  return arith::SubIOp::create(*this, a, b);
}
Value KernelBuilder::mul(Value a, Value b) {
  return arith::MulIOp::create(*this, a, b);
}
Value KernelBuilder::divFloor(Value a, int64_t b) {
  return arith::DivUIOp::create(*this, a, index(b));
}
Value KernelBuilder::rem(Value a, int64_t b) {
  return arith::RemUIOp::create(*this, a, index(b));
}
Value KernelBuilder::min(Value a, Value b) {
  return arith::MinUIOp::create(*this, a, b);
}
Value KernelBuilder::less(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, a, b);
}
Value KernelBuilder::toIndex(Value integer) {
  return arith::IndexCastOp::create(*this, getIndexType(), integer);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

VectorType KernelBuilder::lanes() { return VectorType::get({kLanes}, arithmetic); }

Value KernelBuilder::number(double value) {
  return arith::ConstantOp::create(*this, getFloatAttr(arithmetic, value));
}

Value KernelBuilder::splat(Value scalar) {
  return vector::BroadcastOp::create(*this, lanes(), scalar);
}

// Not vector.fma, which becomes llvm.fmuladd: one or two roundings, as the
// machine likes.
Value KernelBuilder::fma(Value b, Value c, Value a) {
  return math::FmaOp::create(*this, b, c, a);
}

Value KernelBuilder::convert(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  auto like = [&](Type type) -> Type {
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      return VectorType::get(vector.getShape(), type);
    return type;
  };
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(*this, like(element), value);
  if (from.isF64() && !element.isF32())
    value = arith::TruncFOp::create(*this, like(getF32Type()), value);
  return arith::TruncFOp::create(*this, like(element), value);
}

Value KernelBuilder::oneNaN(Value value, Value converted) {
  double quiet = std::numeric_limits<double>::quiet_NaN();
  Value isNaN =
      arith::CmpFOp::create(*this, arith::CmpFPredicate::UNO, value, value);
  Type type = converted.getType();
  Value nan = arith::ConstantOp::create(
      *this, getFloatAttr(getElementTypeOrSelf(type), quiet));
  if (isa<VectorType>(type))
    nan = vector::BroadcastOp::create(*this, type, nan);
  return arith::SelectOp::create(*this, isNaN, nan, converted);
}

Value KernelBuilder::max(Value a, Value b) {
  Value greater =
      arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(*this, greater, a, b);
}

// Halves the lanes with `combine` until one is left.
static Value halve(KernelBuilder &b, Value vector,
                   function_ref<Value(Value, Value)> combine) {
  for (int64_t half = kLanes / 2; half >= 1; half /= 2) {
    auto part = [&](int64_t offset) -> Value {
      return vector::ExtractStridedSliceOp::create(b, vector, {offset}, {half},
                                                   {1});
    };
    vector = combine(part(0), part(half));
  }
  return vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{0});
}

Value KernelBuilder::reduceAdd(Value vector) {
  return halve(*this, vector, [&](Value low, Value high) -> Value {
    return arith::AddFOp::create(*this, low, high);
  });
}

Value KernelBuilder::reduceMax(Value vector) {
  return halve(*this, vector,
               [&](Value low, Value high) { return max(low, high); });
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void KernelBuilder::forLoop(StringRef name, Value from, Value to, int64_t step,
                            Body body) {
  auto loop = scf::ForOp::create(*this, from, to, index(step));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(named(name, loop.getInductionVar()));
}

SmallVector<Value> KernelBuilder::forLoop(StringRef name, Value from, Value to,
                                          int64_t step, ValueRange state,
                                          StatefulBody body) {
  auto loop = scf::ForOp::create(*this, from, to, index(step), state);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(*this, body(named(name, loop.getInductionVar()),
                                   loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

scf::ParallelOp KernelBuilder::parallel(StringRef name, Value count, Body body,
                                        StringRef variant) {
  auto loop = scf::ParallelOp::create(*this, ValueRange{index(0)},
                                      ValueRange{count}, ValueRange{index(1)});
  std::string full = variant.empty() ? kernel : kernel + "." + variant.str();
  loop->setLoc(NameLoc::get(getStringAttr(full), getLoc()));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(named(name, loop.getInductionVars().front()));
  return loop;
}

void KernelBuilder::forEachRow(Value count, Body body) {
  parallel("n", count, body)->setAttr(kRowLoopAttr, getUnitAttr());
}

void KernelBuilder::parallel(StringRef name, ArrayRef<Tasks> tasks,
                             StringRef variant) {
  Value count = tasks.front().count;
  for (const Tasks &more : tasks.drop_front())
    count = add(count, more.count);
  std::function<void(Value, ArrayRef<Tasks>)> choose = [&](Value task,
                                                           ArrayRef<Tasks> of) {
    Location loc = getLoc(); // a body may have one of its own
    auto first = [&] {
      of.front().body(task);
      setLoc(loc);
    };
    if (of.size() == 1)
      return first();
    ifElse(less(task, of.front().count), first, [&] {
      choose(sub(task, of.front().count), of.drop_front());
    });
  };
  parallel(
      name, count, [&](Value task) { choose(task, tasks); }, variant);
}

void KernelBuilder::ifThen(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(*this, condition);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
}

void KernelBuilder::ifElse(Value condition, function_ref<void()> body,
                           function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
  setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void KernelBuilder::forEachRun(int64_t width,
                               function_ref<void(Value, int64_t)> body) {
  int64_t whole = width / kLanes * kLanes;
  if (whole == kLanes)
    body(index(0), kLanes);
  else if (whole)
    forLoop("i", index(0), index(whole), kLanes,
            [&](Value i) { body(i, kLanes); });
  if (width != whole)
    body(index(whole), width - whole);
}

Value KernelBuilder::forEachRun(
    int64_t width, Value state,
    function_ref<Value(Value, int64_t, Value)> body) {
  int64_t whole = width / kLanes * kLanes;
  if (whole)
    state = forLoop("i", index(0), index(whole), kLanes, state,
                    [&](Value i, ValueRange s) -> SmallVector<Value> {
                      return {body(i, kLanes, s[0])};
                    })[0];
  if (width != whole)
    state = body(index(whole), width - whole, state);
  return state;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::table(StringRef name, DenseElementsAttr numbers) {
  auto type = MemRefType::get(numbers.getType().getShape(), numbers.getElementType());
  auto module = getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  for (auto global : module.getOps<memref::GlobalOp>())
    if (global.getInitialValue() == Attribute(numbers))
      return memref::GetGlobalOp::create(*this, type, global.getSymName());
  // The symbol table gives it a name of its own before it stands in the module.
  OpBuilder nowhere(getContext());
  auto global = memref::GlobalOp::create(
      nowhere, getLoc(), name, getStringAttr("private"), type, numbers,
      /*constant=*/true, /*alignment=*/IntegerAttr());
  SymbolTable(module).insert(global, module.getBody()->begin());
  return memref::GetGlobalOp::create(*this, type, global.getSymName());
}

Value KernelBuilder::scratch(ArrayRef<int64_t> shape) {
  return memref::AllocaOp::create(*this, MemRefType::get(shape, arithmetic),
                                  getI64IntegerAttr(64));
}

// Calls `body(offset, size)` for the powers of two that add up to `count`: a
// run of 13 lanes is read and written as 8 + 4 + 1, without masks.
static void forEachPower(int64_t count,
                         function_ref<void(int64_t, int64_t)> body) {
  for (int64_t offset = 0, size = kLanes; size; size /= 2)
    if (count & size) {
      body(offset, size);
      offset += size;
    }
}

// `indices` with `offset` added to the last.
static SmallVector<Value> shifted(KernelBuilder &b, ValueRange indices,
                                  int64_t offset) {
  SmallVector<Value> result(indices);
  if (offset)
    result.back() = b.add(result.back(), offset);
  return result;
}

Value KernelBuilder::loadLanes(Value memref, ValueRange indices, int64_t count) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return loadLanes(count, [&](int64_t offset, int64_t size) {
    return vector::LoadOp::create(*this, VectorType::get({size}, element), memref,
                                  shifted(*this, indices, offset));
  });
}

Value KernelBuilder::loadLanes(int64_t count,
                               function_ref<Value(int64_t, int64_t)> load) {
  auto part = [&](int64_t offset, int64_t size) -> Value {
    Value x = convert(load(offset, size), arithmetic);
    if (isa<VectorType>(x.getType()))
      return x;
    return vector::BroadcastOp::create(*this, VectorType::get({1}, arithmetic), x);
  };
  if (count == kLanes)
    return part(0, kLanes);
  Value result = splat(0.0);
  forEachPower(count, [&](int64_t offset, int64_t size) {
    result = vector::InsertStridedSliceOp::create(*this, part(offset, size),
                                                  result, {offset}, {1});
  });
  return result;
}

void KernelBuilder::storeLanes(Value vector, Value memref, ValueRange indices,
                               int64_t count) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  forEachPower(count, [&](int64_t offset, int64_t size) {
    Value part = vector;
    if (size != kLanes)
      part = vector::ExtractStridedSliceOp::create(*this, vector, {offset},
                                                   {size}, {1});
    vector::StoreOp::create(*this, convert(part, element), memref,
                            shifted(*this, indices, offset));
  });
}

Value KernelBuilder::loadScalar(Value memref, ValueRange indices) {
  return convert(memref::LoadOp::create(*this, memref, indices), arithmetic);
}

void KernelBuilder::storeScalar(Value scalar, Value memref, ValueRange indices) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  memref::StoreOp::create(*this, convert(scalar, element), memref, indices);
}

Value KernelBuilder::rowsOf(Value memref) {
  return named("rows", memref::DimOp::create(*this, memref, index(0)));
}

int64_t KernelBuilder::widthOf(Value memref) {
  return cast<MemRefType>(memref.getType()).getDimSize(1);
}
