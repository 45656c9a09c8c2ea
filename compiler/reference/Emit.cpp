#include "compiler/reference/Emit.h"
#include "compiler/fuse/Packing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::reference;

Value reference::index(Emitter &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value reference::number(Emitter &b, Type type, double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

Value reference::toFloat(Emitter &b, Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  unsigned fromBits = from.getIntOrFloatBitWidth();
  unsigned toBits = type.getIntOrFloatBitWidth();
  bool viaF32 = fromBits == toBits || (fromBits == 64 && toBits < 32);
  if (viaF32)
    return toFloat(b, toFloat(b, value, b.getF32Type()), type);
  if (fromBits < toBits)
    return arith::ExtFOp::create(b, type, value);
  return arith::TruncFOp::create(b, type, value);
}

Value reference::oneNaN(Emitter &b, Value value) {
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  Value nan = number(b, value.getType(),
                     std::numeric_limits<double>::quiet_NaN());
  return arith::SelectOp::create(b, isNaN, nan, value);
}

Value reference::toIndex(Emitter &b, Value value) {
  return arith::IndexCastOp::create(b, b.getIndexType(), value);
}

Value reference::extractIndex(Emitter &b, Value tensor, ValueRange indices) {
  return toIndex(b, tensor::ExtractOp::create(b, tensor, indices));
}

Value reference::rowCount(Emitter &b, Value tensor) {
  return tensor::DimOp::create(b, tensor, 0);
}

Value reference::emptyRows(Emitter &b, RankedTensorType type, Value rows) {
  SmallVector<Value> sizes;
  if (type.isDynamicDim(0))
    sizes.push_back(rows);
  return tensor::EmptyOp::create(b, type, sizes);
}

void reference::repeat(Emitter &b, Value count,
                       function_ref<void(Emitter &, Value)> body) {
  scf::ForOp::create(b, index(b, 0), count, index(b, 1), ValueRange(),
                     [&](OpBuilder &inner, Location loc, Value i, ValueRange) {
                       Emitter at(loc, inner);
                       body(at, i);
                       scf::YieldOp::create(at);
                     });
}

Value reference::accumulate(Emitter &b, Value count, Value state,
                            function_ref<Value(Emitter &, Value, Value)> body) {
  auto loop = scf::ForOp::create(
      b, index(b, 0), count, index(b, 1), state,
      [&](OpBuilder &inner, Location loc, Value i, ValueRange states) {
        Emitter at(loc, inner);
        scf::YieldOp::create(at, body(at, i, states[0]));
      });
  return loop.getResult(0);
}

Value reference::tabulate(Emitter &b, RankedTensorType type, Value count,
                          function_ref<Value(Emitter &, Value)> body) {
  return accumulate(b, count, emptyRows(b, type, count),
                    [&](Emitter &b, Value i, Value table) -> Value {
                      return tensor::InsertOp::create(b, body(b, i), table, i);
                    });
}

Value reference::generate(Emitter &b, RankedTensorType type, Value rows,
                          function_ref<Value(Emitter &, Value, Value)> body) {
  return generic(b, emptyRows(b, type, rows), {}, {}, 0,
                 [&](Emitter &b, ValueRange) {
                   Value n = linalg::IndexOp::create(b, 0);
                   Value i = linalg::IndexOp::create(b, 1);
                   return body(b, n, i);
                 });
}

Value reference::generic(Emitter &b, Value init, ValueRange inputs,
                         ArrayRef<AffineMap> maps, unsigned reductions,
                         function_ref<Value(Emitter &, ValueRange)> body) {
  unsigned rank = cast<RankedTensorType>(init.getType()).getRank();
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.append(reductions, utils::IteratorType::reduction);
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(
      AffineMap::getMultiDimIdentityMap(rank + reductions, b.getContext())
          .getMajorSubMap(rank));
  auto op = linalg::GenericOp::create(
      b, init.getType(), inputs, init, allMaps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange elements) {
        Emitter at(loc, inner);
        linalg::YieldOp::create(at, body(at, elements));
      });
  return op.getResult(0);
}

WeightView::WeightView(Emitter &b, Operation *op, WeightOp weight, Value layer)
    : storage(weight.getStorage()) {
  Value file = op->getParentOfType<func::FuncOp>().getArgument(0);
  Value offset = index(b, weight.getPacking()->getOffset());
  if (layer) {
    Value bytes = index(b, packedBytes(weight) / weight.getLayers());
    offset = arith::AddIOp::create(b, offset,
                                   arith::MulIOp::create(b, layer, bytes));
  }
  type = RankedTensorType::get(
      weight.getLayerShape(),
      storage.quants ? b.getF32Type() : weight.getWeightType().getElementType());
  SmallVector<int64_t> shape = packedShape(weight);
  if (weight.isStacked())
    shape.erase(shape.begin());
  auto stored = MemRefType::get(
      shape, storage.quants ? b.getI8Type() : type.getElementType());
  Value view = memref::ViewOp::create(b, stored, file, offset, ValueRange());
  tensor = bufferization::ToTensorOp::create(
      b, memref::getTensorTypeFromMemRefType(stored), view, /*restrict=*/true);
}

// See Storage::pack for what stands where: panels are single rows here.
Value WeightView::number(Emitter &b, Value row, Value column) const {
  if (!storage.quants)
    return tensor::ExtractOp::create(b, tensor, ValueRange{row, column});
  const Quants &quants = *storage.quants;
  BlockLayout layout = storage.blockLayout(/*panel=*/1);
  Value block = mul(b, div(b, column, storage.elements), layout.bytes);
  Value inBlock = rem(b, column, storage.elements);
  auto at = [&](int64_t offset, Value more) {
    Value byte = add(b, add(b, block, index(b, offset)), more);
    return tensor::ExtractOp::create(b, tensor, ValueRange{row, byte});
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, b.getI16Type(), value);
  };
  auto byte = [&](int64_t offset, Value more) -> Value {
    return arith::ExtUIOp::create(b, b.getI16Type(), at(offset, more));
  };
  auto half = [&](int64_t offset) -> Value {
    Value high = arith::ShLIOp::create(b, byte(offset + 1, index(b, 0)), constant(8));
    Value bits = arith::OrIOp::create(b, byte(offset, index(b, 0)), high);
    return toFloat(b, arith::BitcastOp::create(b, b.getF16Type(), bits),
                   b.getF32Type());
  };
  auto whole = [&](Value integer) -> Value {
    return arith::SIToFPOp::create(b, b.getF32Type(), integer);
  };
  // `value` shifted by `shift` bits, and of these the lowest.
  auto bits = [&](Value value, Value shift, int64_t mask) -> Value {
    shift = arith::IndexCastOp::create(b, b.getI16Type(), shift);
    return arith::AndIOp::create(b, arith::ShRUIOp::create(b, value, shift),
                                 constant(mask));
  };

  Value part = mul(b, div(b, inBlock, 32), layout.quantsStride);
  Value word = div(b, rem(b, inBlock, 32), 4), inWord = rem(b, inBlock, 4);
  Value quant;
  if (quants.bits == 8) {
    quant = byte(layout.quants, add(b, part, rem(b, inBlock, 32)));
  } else {
    Value lower = add(b, add(b, part, inWord), mul(b, rem(b, word, 4), 4));
    quant = bits(byte(layout.quants, lower), mul(b, div(b, word, 4), 4), 15);
    Value upper = add(b, part, inWord), shift = word;
    if (quants.bits == 6) {
      upper = add(b, upper, mul(b, div(b, word, 4), 4));
      shift = mul(b, rem(b, word, 4), 2);
    }
    if (quants.bits > 4) {
      Value more = bits(byte(layout.quants + layout.upper, upper), shift,
                        quants.bits == 5 ? 1 : 3);
      quant = arith::OrIOp::create(b, quant,
                                   arith::ShLIOp::create(b, more, constant(4)));
    }
  }
  quant = arith::SubIOp::create(b, quant, constant(quants.zero));

  Value scale = half(0), minimum = quants.hasMinimum ? half(layout.minimum) : Value();
  if (quants.hasSubScales) {
    Value sub = div(b, inBlock, quants.subBlock);
    scale = arith::MulFOp::create(
        b, scale, whole(arith::ExtSIOp::create(b, b.getI16Type(),
                                               at(layout.scales, sub))));
    if (minimum)
      minimum = arith::NegFOp::create(
          b, arith::MulFOp::create(b, minimum, whole(byte(layout.minima, sub))));
  }
  Value number = arith::MulFOp::create(b, scale, whole(quant));
  return minimum ? arith::AddFOp::create(b, number, minimum) : number;
}

Value WeightView::numbers(Emitter &b) const {
  if (!storage.quants)
    return tensor;
  return generate(b, type, Value(), [&](Emitter &b, Value row, Value column) {
    return number(b, row, column);
  });
}

Value reference::ofWeight(Emitter &b, Operation *op, FlatSymbolRefAttr symbol,
                          Value layer,
                          function_ref<Value(Emitter &, const WeightView &)> value) {
  auto weight = SymbolTable::lookupNearestSymbolFrom<NamedWeight>(op, symbol);
  std::vector<WeightOp> parts = weight.getParts();
  auto stack = dyn_cast<StackOp>(weight.getOperation());
  if (!stack)
    return value(b, WeightView(b, op, parts.front(), layer));
  Value places = arith::ConstantOp::create(b, stack.getPlaces());
  auto place = [&](int64_t column) {
    return extractIndex(b, places, {layer, index(b, column)});
  };
  Value own = place(0), at = place(1);
  // The last part is it where none before is.
  std::function<Value(Emitter &, size_t)> choose = [&](Emitter &b, size_t number) {
    auto here = [&](Emitter &b) {
      return value(b, WeightView(b, op, parts[number], at));
    };
    if (number + 1 == parts.size())
      return here(b);
    auto branch = [](auto value) {
      return [value](OpBuilder &inner, Location loc) {
        Emitter at(loc, inner);
        scf::YieldOp::create(at, value(at));
      };
    };
    Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own,
                                        index(b, number));
    return scf::IfOp::create(b, isOwn, branch(here), branch([&](Emitter &b) {
                               return choose(b, number + 1);
                             }))
        .getResult(0);
  };
  return choose(b, 0);
}

Value reference::rowsOf(Emitter &b, Value rows, RankedTensorType type) {
  return emptyRows(b, type, rowCount(b, rows));
}

Value reference::add(Emitter &b, Value l, Value r) {
  return arith::AddIOp::create(b, l, r);
}
Value reference::mul(Emitter &b, Value l, int64_t r) {
  return arith::MulIOp::create(b, l, index(b, r));
}
Value reference::div(Emitter &b, Value l, int64_t r) {
  return arith::DivUIOp::create(b, l, index(b, r));
}

Value reference::rem(Emitter &b, Value l, int64_t r) {
  return arith::RemUIOp::create(b, l, index(b, r));
}

Value CacheBuffers::length(Emitter &b, Value sequence) const {
  return toIndex(b, memref::LoadOp::create(b, lengths, sequence));
}

void CacheBuffers::setLength(Emitter &b, Value sequence, Value length) const {
  Value stored = arith::IndexCastOp::create(b, b.getI64Type(), length);
  memref::StoreOp::create(b, stored, lengths, sequence);
}

Value CacheBuffers::page(Emitter &b, int64_t group, Value sequence,
                         Value page) const {
  Value entry = add(b, mul(b, sequence, type.getPagesPerSequence()), page);
  entry = add(b, entry, index(b, type.getFirstPage(group)));
  Value offset = toIndex(b, memref::LoadOp::create(b, pages, entry));
  auto bytes =
      MemRefType::get(type.getGroups()[group].getPageBytes(), b.getI8Type());
  return memref::ViewOp::create(b, bytes, pool, offset, ValueRange());
}

CacheCell CacheBuffers::cell(Emitter &b, int64_t group, Value layer, Value head,
                             Value sequence, Value position) const {
  const Group &layers = type.getGroups()[group];
  int64_t positions = layers.getPositionsPerPage();
  Value number = div(b, position, positions);
  if (layers.wraps())
    number = rem(b, number, layers.getPagesPerSequence());
  return {page(b, group, sequence, number),
          add(b, mul(b, layer, layers.kvHeads), head), rem(b, position, positions)};
}

Value CacheBuffers::pageCount(Emitter &b, int64_t group, Value length) const {
  const Group &layers = type.getGroups()[group];
  Value all = arith::CeilDivUIOp::create(b, length,
                                         index(b, layers.getPositionsPerPage()));
  return arith::MinUIOp::create(b, all, index(b, layers.getPagesPerSequence()));
}
