// Products of rows as they are with matrices of any storage. Floats are widened to the
// arithmetic's type where they are multiplied, which the multiply-adds hide; blocks
// take longer, once for all tiles of a task.
#include "compiler/cpu/LinearTile.h"

using namespace mlir;
using namespace kvc;

namespace {
class FloatProduct : public Product {
public:
  FloatProduct(KernelBuilder &b, const LinearKernel &kernel,
               const LinearTarget &target, const Matrix &like, int64_t groups)
      : b(b), kernel(kernel), target(target), input(kernel.inputOf(like)),
        isBlocks(like.storage->quants.has_value()) {
    if (groups && isBlocks)
      widened = b.named("widened", b.scratch({kProductBlock, groups, kLanes}));
  }

  void prepare(const ProductBlock &block) override {
    if (!widened)
      return;
    b.forLoop("k", block.begin, block.end, 1, [&](Value k) {
      for (auto [g, group] : llvm::enumerate(block.groups))
        b.storeLanes(
            kernel.weights[block.matrices.front()].lanes(b, group, k), widened,
            {b.sub(k, block.begin), b.index(g), b.index(0)});
    });
  }

  SmallVector<Value> sum(const ProductBlock &block, ArrayRef<Value> rows,
                         const TileShare &share) override {
    SmallVector<Value> zeros(block.matrices.size() * rows.size() *
                                 block.groups.size(),
                             b.splat(0.0));
    int64_t unroll = kernel.inputs % kUnroll == 0 ? kUnroll : 1;
    return b.forLoop(
        "k", block.begin, block.end, unroll, zeros,
        [&](Value first, ValueRange state) {
          std::optional<Prefetch> ahead =
              prefetch(block, first, unroll, rows.size() == 1, share);
          SmallVector<Value> next(state);
          for (int64_t i = 0; i != unroll; ++i) {
            if (ahead)
              ahead->emit(i, target.spreadsRequests() ? unroll : 1);
            multiplyAdd(block, rows, i ? b.add(first, i) : first, next);
          }
          return next;
        });
  }

private:
  static constexpr int64_t kUnroll = 4;

  // The processor itself sees to one row's streams of whole lines. Blocks are read
  // more slowly than memory brings them.
  std::optional<Prefetch> prefetch(const ProductBlock &block, Value k, int64_t count,
                                   bool isRow, const TileShare &share) {
    if (isBlocks)
      return std::nullopt;
    SmallVector<Stream> streams;
    for (size_t matrix : block.matrices)
      for (Value group : block.groups)
        streams.push_back({kernel.weights[matrix].view, group});
    auto type = cast<MemRefType>(streams.front().view.getType());
    if (isRow && type.getElementTypeBitWidth() >= 32)
      return std::nullopt;
    return Prefetch(b, streams, k, count, kProductBlock, block.groups.size(),
                    isRow ? Reader::Row : Reader::Few, share);
  }

  // Adds the products with input k.
  void multiplyAdd(const ProductBlock &block, ArrayRef<Value> rows, Value k,
                   MutableArrayRef<Value> sums) {
    size_t groups = block.groups.size();
    SmallVector<Value> w;
    for (size_t matrix : block.matrices)
      for (auto [g, group] : llvm::enumerate(block.groups))
        w.push_back(widened ? b.loadLanes(widened, {b.sub(k, block.begin),
                                                    b.index(g), b.index(0)})
                            : kernel.weights[matrix].lanes(b, group, k));
    // A row's input is used up before the next is loaded: one register.
    for (auto [r, row] : llvm::enumerate(rows)) {
      Value x = b.splat(b.loadScalar(input, {row, k}));
      for (size_t m = 0; m != block.matrices.size(); ++m)
        for (size_t g = 0; g != groups; ++g) {
          Value &sum = sums[(m * rows.size() + r) * groups + g];
          sum = b.fma(x, w[m * groups + g], sum);
        }
    }
  }

  KernelBuilder &b;
  const LinearKernel &kernel;
  const LinearTarget &target;
  const Value input;
  const bool isBlocks;
  // [kProductBlock][groups][16]: a block of inputs of what tiles share, or null.
  Value widened;
};
} // namespace

std::unique_ptr<Product> kvc::makeFloatProduct(KernelBuilder &b,
                                               const LinearKernel &kernel,
                                               const LinearTarget &target,
                                               const Matrix &like,
                                               int64_t groups) {
  return std::make_unique<FloatProduct>(b, kernel, target, like, groups);
}
