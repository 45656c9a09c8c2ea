// A weight matrix in the packed file: see Storage::pack for what stands where.
#include "compiler/cpu/Kernels.h"
#include "compiler/fuse/Packing.h"

using namespace mlir;
using namespace kvc;

static Value viewLayer(KernelBuilder &b, Value weights, WeightOp weight,
                       Value layer, Type element) {
  SmallVector<int64_t> shape = packedShape(weight);
  if (weight.isStacked())
    shape.erase(shape.begin());
  int64_t layerBytes = packedBytes(weight) / weight.getLayers();
  Value offset = b.index(weight.getPacking()->getOffset());
  if (layer)
    offset = b.add(offset, b.mul(layer, layerBytes));
  return b.named(weight.getSymName(),
                 memref::ViewOp::create(b, MemRefType::get(shape, element),
                                        weights, offset, ValueRange{}));
}

Value kvc::viewVector(KernelBuilder &b, Value weights, WeightOp weight,
                      Value layer) {
  return viewLayer(b, weights, weight, layer,
                   weight.getWeightType().getElementType());
}

static Matrix viewPart(KernelBuilder &b, Value weights, WeightOp weight,
                       Value layer) {
  const Storage &storage = weight.getStorage();
  Type element = storage.quants ? Type(b.getI8Type())
                                : weight.getWeightType().getElementType();
  return {&storage, viewLayer(b, weights, weight, layer, element)};
}

Matrix kvc::viewMatrix(KernelBuilder &b, Value weights, NamedWeight weight,
                       Value layer) {
  std::vector<WeightOp> parts = weight.getParts();
  auto stack = dyn_cast<StackOp>(weight.getOperation());
  if (!stack)
    return viewPart(b, weights, parts.front(), layer);
  Value places = b.table("layers", stack.getPlaces());
  auto place = [&](int64_t column) {
    return b.toIndex(
        memref::LoadOp::create(b, places, ValueRange{layer, b.index(column)}));
  };
  Value own = place(0), at = place(1);
  std::shared_ptr<Matrix> matrix;
  for (size_t number = parts.size(); number-- != 0;) {
    Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own,
                                        b.index(number));
    // Another part may have fewer layers than that.
    Value inPart = arith::SelectOp::create(b, isOwn, at, b.index(0));
    Matrix view = viewPart(b, weights, parts[number], inPart);
    if (matrix)
      view.isLayers = isOwn, view.otherwise = matrix;
    matrix = std::make_shared<Matrix>(view);
  }
  return *matrix;
}

// `size` bytes at `at` of panel `panel`, as a vector of `element`.
static Value loadBytes(KernelBuilder &b, Value view, Value panel, Value at,
                       int64_t size, Type element) {
  Value bytes = vector::LoadOp::create(
      b, VectorType::get({size}, b.getI8Type()), view, ValueRange{panel, at});
  int64_t count = size * 8 / element.getIntOrFloatBitWidth();
  return vector::BitCastOp::create(b, VectorType::get({count}, element), bytes);
}

Value Matrix::lanes(KernelBuilder &b, Value group, Value k) const {
  if (!storage->quants)
    return b.loadLanes(view, {group, k, b.index(0)});
  const Quants &quants = *storage->quants;
  BlockLayout layout = storage->blockLayout(storage->panel);
  auto words = VectorType::get({kLanes}, b.getI32Type());
  auto floats = VectorType::get({kLanes}, b.getF32Type());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  };

  // Where the block of k begins, and where in it our lanes are.
  int64_t groups = storage->panel / kLanes;
  Value panel = b.divFloor(group, groups);
  Value lane = b.mul(b.rem(group, groups), kLanes);
  Value block = b.mul(b.divFloor(k, storage->elements), layout.bytes);
  Value inBlock = b.rem(k, storage->elements);
  // `perLane` bytes a lane at `offset` and `more` of the block.
  auto load = [&](int64_t offset, Value more, int64_t perLane, Type element) {
    Value at = b.add(b.add(b.add(block, offset), more), b.mul(lane, perLane));
    return loadBytes(b, view, panel, at, perLane * kLanes, element);
  };
  auto half = [&](int64_t offset) {
    return b.convert(load(offset, b.index(0), 2, b.getF16Type()), b.getF32Type());
  };
  // The lowest bits of `value` without `shift` bits.
  auto bits = [&](Value value, Value shift, int64_t mask) -> Value {
    Value shifts = vector::BroadcastOp::create(
        b, words, arith::IndexCastOp::create(b, b.getI32Type(), shift));
    return arith::AndIOp::create(b, arith::ShRUIOp::create(b, value, shifts),
                                 constant(mask));
  };

  Value part = b.mul(b.divFloor(inBlock, 32), layout.quantsStride);
  Value word = b.divFloor(b.rem(inBlock, 32), 4);
  Value byte = b.mul(b.rem(inBlock, 4), 8);
  int64_t wordStride = 4 * storage->panel;
  Value quant;
  if (quants.bits == 8) {
    quant = bits(load(layout.quants, b.add(part, b.mul(word, wordStride)), 4,
                      b.getI32Type()),
                 byte, 255);
  } else {
    Value lower = b.add(part, b.mul(b.rem(word, 4), wordStride));
    quant = bits(load(layout.quants, lower, 4, b.getI32Type()),
                 b.add(byte, b.mul(b.divFloor(word, 4), 4)), 15);
    Value upper = part, shift = word;
    if (quants.bits == 6) {
      upper = b.add(upper, b.mul(b.divFloor(word, 4), wordStride));
      shift = b.mul(b.rem(word, 4), 2);
    }
    if (quants.bits > 4) {
      Value more = bits(load(layout.quants + layout.upper, upper, 4, b.getI32Type()),
                        b.add(byte, shift), quants.bits == 5 ? 1 : 3);
      quant = arith::OrIOp::create(
          b, quant, arith::ShLIOp::create(b, more, constant(4)));
    }
  }
  quant = arith::SubIOp::create(b, quant, constant(quants.zero));

  Value scale = half(0), minimum = quants.hasMinimum ? half(layout.minimum) : Value();
  if (quants.hasSubScales) {
    Value sub = b.mul(b.divFloor(inBlock, quants.subBlock), storage->panel);
    auto ofSubBlock = [&](int64_t offset, bool isSigned) -> Value {
      Value bytes = load(offset, sub, 1, b.getI8Type());
      Value wide = isSigned
                       ? Value(arith::ExtSIOp::create(b, words, bytes))
                       : Value(arith::ExtUIOp::create(b, words, bytes));
      return arith::SIToFPOp::create(b, floats, wide);
    };
    scale = arith::MulFOp::create(b, scale, ofSubBlock(layout.scales, true));
    if (minimum)
      minimum = arith::NegFOp::create(
          b, arith::MulFOp::create(b, minimum, ofSubBlock(layout.minima, false)));
  }
  Value number = arith::MulFOp::create(
      b, scale, arith::SIToFPOp::create(b, floats, quant));
  if (minimum)
    number = arith::AddFOp::create(b, number, minimum);
  return b.convert(number, b.arithmetic);
}
