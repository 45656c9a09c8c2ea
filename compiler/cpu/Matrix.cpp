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

Matrix kvc::viewMatrix(KernelBuilder &b, Value weights, WeightOp weight,
                       Value layer) {
  const Storage &storage = weight.getStorage();
  Type element = storage.quants ? Type(b.getI8Type())
                                : weight.getWeightType().getElementType();
  return {&storage, viewLayer(b, weights, weight, layer, element)};
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
  auto words = VectorType::get({kLanes}, b.getI32Type());
  auto word = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  };

  // Where the block of k begins, and where in it our lanes are.
  int64_t groups = storage->panel / kLanes;
  Value panel = b.divFloor(group, groups);
  Value lane = b.mul(b.rem(group, groups), kLanes);
  Value block = b.mul(b.divFloor(k, storage->elements),
                      storage->panel * storage->bytes);
  Value element = b.rem(k, storage->elements);
  Value halves = b.add(block, b.mul(lane, 2));
  auto half = [&](int64_t offset) {
    return b.convert(loadBytes(b, view, panel, b.add(halves, offset),
                               2 * kLanes, b.getF16Type()),
                     b.getF32Type());
  };

  // Four consecutive elements of a row are a word; a nibble's row of words holds
  // the elements of the first half below those of the second.
  int64_t perWord = storage->elements / 2;
  bool nibbles = quants.bits == 4;
  Value inRow = nibbles ? b.rem(element, perWord) : element;
  Value at = b.add(b.add(block, 2 * storage->panel * (quants.hasMinimum ? 2 : 1)),
                   b.add(b.mul(b.divFloor(inRow, 4), 4 * storage->panel),
                         b.mul(lane, 4)));
  Value shift = b.mul(b.rem(inRow, 4), 8);
  if (nibbles)
    shift = b.add(shift, b.mul(b.divFloor(element, perWord), 4));
  Value quant = loadBytes(b, view, panel, at, 4 * kLanes, b.getI32Type());
  Value shifts = vector::BroadcastOp::create(
      b, words, arith::IndexCastOp::create(b, b.getI32Type(), shift));
  quant = arith::AndIOp::create(b, arith::ShRUIOp::create(b, quant, shifts),
                                word(nibbles ? 15 : 255));
  // Bytes stand with 128 added.
  quant = arith::SubIOp::create(b, quant,
                                word(quants.zero + (nibbles ? 0 : 128)));
  auto floats = VectorType::get({kLanes}, b.getF32Type());
  Value number = arith::MulFOp::create(
      b, half(0), arith::SIToFPOp::create(b, floats, quant));
  if (quants.hasMinimum)
    number = arith::AddFOp::create(b, number, half(2 * storage->panel));
  return b.convert(number, b.arithmetic);
}
