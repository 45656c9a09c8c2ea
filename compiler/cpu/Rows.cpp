// Kernels that treat each row by itself: embedding, selection, norms,
// element-wise ops and the rotary embedding. A task is a row.
#include "compiler/cpu/Kernels.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace kvc;

// table: [entries/16, width, 16], so an entry is a lane of a panel.
void kvc::emitEmbed(KernelBuilder &b, Value ids, Value table, Value output) {
  b.parallel(b.rowsOf(output), [&](Value n) {
    Value id = b.toIndex(memref::LoadOp::create(b, ids, n));
    Value panel = b.divFloor(id, kLanes), lane = b.rem(id, kLanes);
    b.forLoop(b.index(0), b.index(b.widthOf(output)), 1, [&](Value i) {
      b.storeScalar(b.loadScalar(table, {panel, i, lane}), output, {n, i});
    });
  });
}

void kvc::emitSelect(KernelBuilder &b, Value input, Value rows, Value output) {
  b.parallel(b.rowsOf(output), [&](Value m) {
    Value row = b.toIndex(memref::LoadOp::create(b, rows, m));
    b.forEachRun(b.widthOf(output), [&](Value i, int64_t count) {
      b.storeLanes(b.loadLanes(input, {row, i}, count), output, {m, i}, count);
    });
  });
}

void kvc::emitElementwise(KernelBuilder &b, ArrayRef<Value> inputs,
                          Value output,
                          function_ref<Value(ValueRange)> combine) {
  b.parallel(b.rowsOf(output), [&](Value n) {
    b.forEachRun(b.widthOf(output), [&](Value i, int64_t count) {
      SmallVector<Value> loaded;
      for (Value input : inputs)
        loaded.push_back(b.loadLanes(input, {n, i}, count));
      b.storeLanes(combine(loaded), output, {n, i}, count);
    });
  });
}

// 1 / sqrt(sum / width + epsilon)
static Value inverseRoot(KernelBuilder &b, Value sum, int64_t width,
                         double epsilon) {
  Value mean = arith::DivFOp::create(b, sum, b.number(double(width)));
  Value shifted = arith::AddFOp::create(b, mean, b.number(epsilon));
  return arith::DivFOp::create(b, b.number(1.0),
                               math::SqrtOp::create(b, shifted));
}

void kvc::emitRMSNorm(KernelBuilder &b, Value input, Value weight,
                      double epsilon, Value output) {
  int64_t width = b.widthOf(input);
  b.parallel(b.rowsOf(input), [&](Value n) {
    Value squares = b.forEachRun(
        width, b.splat(0.0), [&](Value i, int64_t count, Value sum) {
          Value x = b.loadLanes(input, {n, i}, count);
          return b.fma(x, x, sum);
        });
    Value scale =
        b.splat(inverseRoot(b, b.reduceAdd(squares), width, epsilon));
    b.forEachRun(width, [&](Value i, int64_t count) {
      Value x = arith::MulFOp::create(b, b.loadLanes(input, {n, i}, count), scale);
      Value y = arith::MulFOp::create(b, x, b.loadLanes(weight, i, count));
      b.storeLanes(y, output, {n, i}, count);
    });
  });
}

void kvc::emitLayerNorm(KernelBuilder &b, Value input, Value weight, Value bias,
                        double epsilon, Value output) {
  int64_t width = b.widthOf(input);
  b.parallel(b.rowsOf(input), [&](Value n) {
    Value sum = b.forEachRun(
        width, b.splat(0.0), [&](Value i, int64_t count, Value sum) -> Value {
          return arith::AddFOp::create(b, sum,
                                       b.loadLanes(input, {n, i}, count));
        });
    Value mean = b.splat(
        arith::DivFOp::create(b, b.reduceAdd(sum), b.number(double(width))));
    auto centred = [&](Value i, int64_t count) -> Value {
      return arith::SubFOp::create(b, b.loadLanes(input, {n, i}, count), mean);
    };
    Value squares = b.forEachRun(
        width, b.splat(0.0), [&](Value i, int64_t count, Value sum) {
          Value x = centred(i, count);
          Value next = b.fma(x, x, sum);
          if (count == kLanes)
            return next;
          // The lanes behind the row hold 0 - mean: they keep their sums.
          SmallVector<bool> valid(kLanes);
          std::fill_n(valid.begin(), count, true);
          auto mask = arith::ConstantOp::create(
              b, DenseElementsAttr::get(
                     VectorType::get({kLanes}, b.getI1Type()), valid));
          return Value(arith::SelectOp::create(b, mask, next, sum));
        });
    Value scale =
        b.splat(inverseRoot(b, b.reduceAdd(squares), width, epsilon));
    b.forEachRun(width, [&](Value i, int64_t count) {
      Value x = arith::MulFOp::create(b, centred(i, count), scale);
      Value w = b.loadLanes(weight, i, count);
      Value y = bias ? b.fma(x, w, b.loadLanes(bias, i, count))
                     : Value(arith::MulFOp::create(b, x, w));
      b.storeLanes(y, output, {n, i}, count);
    });
  });
}

// The frequencies of a rotary embedding as a constant of the module, padded to
// whole vectors: memref<Pxf64>.
static Value frequencies(KernelBuilder &b, RotaryOp op) {
  SmallVector<double> values = op.getFrequencies();
  values.resize(llvm::alignTo(values.size(), kLanes), 0.0);
  auto type = MemRefType::get({int64_t(values.size())}, b.getF64Type());
  auto data = DenseElementsAttr::get(
      RankedTensorType::get(type.getShape(), b.getF64Type()),
      ArrayRef<double>(values));
  auto module = op->getParentOfType<ModuleOp>();
  for (auto global : module.getOps<memref::GlobalOp>())
    if (global.getInitialValue() == Attribute(data))
      return memref::GetGlobalOp::create(b, type, global.getSymName());
  memref::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    global = memref::GlobalOp::create(
        b, "rotary_frequencies", b.getStringAttr("private"), type, data,
        /*constant=*/true, /*alignment=*/IntegerAttr());
  }
  SymbolTable(module).insert(global);
  return memref::GetGlobalOp::create(b, type, global.getSymName());
}

void kvc::emitRotary(KernelBuilder &b, RotaryOp op, Value input,
                     Value positions, Value output) {
  int64_t headDim = op.getHeadDim(), pairs = op.getDims() / 2;
  int64_t heads = b.widthOf(input) / headDim;
  Value table = frequencies(b, op);
  auto wide = VectorType::get({kLanes}, b.getF64Type());
  b.parallel(b.rowsOf(input), [&](Value n) {
    Value position = arith::SIToFPOp::create(
        b, b.getF64Type(), memref::LoadOp::create(b, positions, n));
    Value turns = vector::BroadcastOp::create(b, wide, position);
    b.forEachRun(pairs, [&](Value i, int64_t count) {
      // Angles in f64: a position times a frequency has more digits than f32.
      Value angle = arith::MulFOp::create(
          b, turns, vector::LoadOp::create(b, wide, table, i));
      Value cos = b.convert(math::CosOp::create(b, angle), b.arithmetic);
      Value sin = b.convert(math::SinOp::create(b, angle), b.arithmetic);
      b.forLoop(b.index(0), b.index(heads), 1, [&](Value head) {
        Value first = b.add(b.mul(head, headDim), i);
        Value second = b.add(first, pairs);
        Value x = b.loadLanes(input, {n, first}, count);
        Value y = b.loadLanes(input, {n, second}, count);
        Value ySin = arith::MulFOp::create(b, y, sin);
        Value xSin = arith::MulFOp::create(b, x, sin);
        b.storeLanes(b.fma(x, cos, arith::NegFOp::create(b, ySin)), output,
                     {n, first}, count);
        b.storeLanes(b.fma(y, cos, xSin), output, {n, second}, count);
      });
    });
    if (output != input && 2 * pairs != headDim)
      b.forLoop(b.index(0), b.index(heads), 1, [&](Value head) {
        Value rest = b.add(b.mul(head, headDim), 2 * pairs);
        b.forEachRun(headDim - 2 * pairs, [&](Value i, int64_t count) {
          Value at = b.add(rest, i);
          b.storeLanes(b.loadLanes(input, {n, at}, count), output, {n, at},
                       count);
        });
      });
  });
}
