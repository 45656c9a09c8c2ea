#include "compiler/reference/Emit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvc;
using reference::Emitter;

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

Value reference::activate(Emitter &b, Activation activation, Value x) {
  Type type = x.getType();
  auto constant = [&](double value) { return number(b, type, value); };
  auto mul = [&](Value l, Value r) -> Value {
    return arith::MulFOp::create(b, l, r);
  };
  auto add = [&](Value l, Value r) -> Value {
    return arith::AddFOp::create(b, l, r);
  };
  switch (activation) {
  case Activation::GELU: {
    Value erf =
        math::ErfOp::create(b, mul(x, constant(0.70710678118654752440)));
    return mul(mul(x, add(constant(1), erf)), constant(0.5));
  }
  case Activation::GELUTanh: {
    Value cube = mul(mul(x, x), x);
    Value inner = mul(constant(0.79788456080286535588), // sqrt(2 / pi)
                      add(x, mul(constant(0.044715), cube)));
    Value tanh = math::TanhOp::create(b, inner);
    return mul(mul(x, add(constant(1), tanh)), constant(0.5));
  }
  case Activation::SiLU: {
    Value exp = math::ExpOp::create(b, arith::NegFOp::create(b, x));
    return arith::DivFOp::create(b, x, add(constant(1), exp));
  }
  case Activation::ReLU:
    return arith::MaximumFOp::create(b, x, constant(0));
  }
  llvm_unreachable("every activation is handled above");
}

Value reference::placeInStep(Emitter &b, Value sequences, Value n) {
  Value sequence = tensor::ExtractOp::create(b, sequences, n);
  return accumulate(b, n, index(b, 0), [&](Emitter &b, Value m, Value place) {
    Value other = tensor::ExtractOp::create(b, sequences, m);
    Value same =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, other, sequence);
    Value one = arith::IndexCastUIOp::create(b, b.getIndexType(), same);
    return Value(arith::AddIOp::create(b, place, one));
  });
}
