// Small builders shared by the patterns of the reference lowering.
#ifndef KVC_COMPILER_REFERENCE_EMIT_H
#define KVC_COMPILER_REFERENCE_EMIT_H

#include "dialect/KVC.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvc::reference {

using Emitter = mlir::ImplicitLocOpBuilder;
using mlir::Value;

Value index(Emitter &b, int64_t value);
// A float constant of `type`.
Value number(Emitter &b, mlir::Type type, double value);
// Converts between float types. A step from f64 to less than f32 goes through
// f32, and one between f16 and bf16 too.
Value toFloat(Emitter &b, Value value, mlir::Type type);
// `value` with one NaN in place of any: for what is stored where others see it.
Value oneNaN(Emitter &b, Value value);
// Converts an integer to index, with its sign.
Value toIndex(Emitter &b, Value value);
// `tensor[indices]` as index, of a tensor of integers.
Value extractIndex(Emitter &b, Value tensor, mlir::ValueRange indices);

// The number of rows of a tensor, [N, ...], as index.
Value rowCount(Emitter &b, Value tensor);
// A new tensor of `type`, `rows` of them; its elements are not yet defined.
Value emptyRows(Emitter &b, mlir::RankedTensorType type, Value rows);

// As many rows of `type` as `rows` has.
Value rowsOf(Emitter &b, Value rows, mlir::RankedTensorType type);

// for i in [0, count): body(i)
void repeat(Emitter &b, Value count,
            llvm::function_ref<void(Emitter &, Value i)> body);
// for i in [0, count): state = body(i, state); gives the last state.
Value accumulate(
    Emitter &b, Value count, Value state,
    llvm::function_ref<Value(Emitter &, Value i, Value state)> body);
// The vector of `type` with `count` elements body(i), filled by a loop; memory
// may be read in it.
Value tabulate(Emitter &b, mlir::RankedTensorType type, Value count,
               llvm::function_ref<Value(Emitter &, Value i)> body);
// The tensor of `type` with `rows` rows and the elements body(n, i).
Value generate(Emitter &b, mlir::RankedTensorType type, Value rows,
               llvm::function_ref<Value(Emitter &, Value n, Value i)> body);

// A linalg.generic over the axes of `init`, then `reductions` more that are
// summed up by the body. `maps` are those of the inputs; the body gets an
// element of each input and of the output.
Value generic(Emitter &b, Value init, mlir::ValueRange inputs,
              llvm::ArrayRef<mlir::AffineMap> maps, unsigned reductions,
              llvm::function_ref<Value(Emitter &, mlir::ValueRange)> body);

// The axes of `[n, i]` and `[i]` under iterators (n, i), of `[n]` too.
struct RowMaps {
  mlir::AffineMap element, column, row;
  explicit RowMaps(mlir::OpBuilder &b)
      : element(b.getMultiDimIdentityMap(2)),
        column(mlir::AffineMap::get(2, 0, b.getAffineDimExpr(1))),
        row(mlir::AffineMap::get(2, 0, b.getAffineDimExpr(0))) {}
};

// One layer of a weight: a view of the packed file's data section, memref<?xi8>,
// which is the first argument of a function that reads weights. A matrix is
// [rows, columns] of floats, or [rows, bytes of a row] of blocks.
class WeightView {
public:
  // `layer` is one of those that the weight stacks, or null.
  WeightView(Emitter &b, mlir::Operation *op, WeightOp weight, Value layer);
  Rounding rounding() const { return storage.rounding; }
  // The number at [row, column] of a matrix; f32 where it stands in a block.
  Value number(Emitter &b, Value row, Value column) const;
  // All of them, as a tensor of floats.
  Value numbers(Emitter &b) const;

private:
  const Storage &storage;
  mlir::RankedTensorType type; // of the numbers
  Value tensor;                // as they stand
};

// What `value` gives for a layer of a weight; where layers are stored in several
// ways, for the layer's.
Value ofWeight(Emitter &b, mlir::Operation *op, mlir::FlatSymbolRefAttr symbol,
               Value layer,
               llvm::function_ref<Value(Emitter &, const WeightView &)> value);

inline Value readWeight(Emitter &b, mlir::Operation *op,
                        mlir::FlatSymbolRefAttr symbol, Value layer) {
  return ofWeight(b, op, symbol, layer, [](Emitter &b, const WeightView &view) {
    return view.numbers(b);
  });
}

// The activation function of one number: see kvc.activate.
Value activate(Emitter &b, Activation activation, Value x);

// The number of tokens before token n that are of its sequence.
Value indexInStep(Emitter &b, Value sequences, Value n);

Value add(Emitter &b, Value l, Value r);
Value mul(Emitter &b, Value l, int64_t r);
Value div(Emitter &b, Value l, int64_t r);
Value rem(Emitter &b, Value l, int64_t r);

// The buffers of a cache.
struct CacheBuffers {
  CacheType type;
  Value pool, pages, lengths; // memref<?xi8>, memref<?xi64>, memref<?xi64>

  CacheBuffers(CacheType type, mlir::ValueRange buffers)
      : type(type), pool(buffers[0]), pages(buffers[1]), lengths(buffers[2]) {}

  Value length(Emitter &b, Value sequence) const;
  void setLength(Emitter &b, Value sequence, Value length) const;
  // The page `page` of `sequence` for a group of layers, as bytes.
  Value page(Emitter &b, int64_t group, Value sequence, Value page) const;
  // Where `position` of `sequence` stands for a KV head of a layer of a group.
  CacheCell cell(Emitter &b, int64_t group, Value layer, Value head, Value sequence,
                 Value position) const;
  // The pages of a sequence of `length` positions.
  Value pageCount(Emitter &b, int64_t group, Value length) const;
};

} // namespace kvc::reference

#endif // KVC_COMPILER_REFERENCE_EMIT_H
