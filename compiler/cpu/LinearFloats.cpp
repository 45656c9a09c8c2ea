// Products of rows as they are with matrices of any storage, whose elements are
// widened to the arithmetic's type.
#include "compiler/cpu/LinearTile.h"

using namespace mlir;
using namespace kvc;

namespace {
class FloatProduct : public Product {
public:
  FloatProduct(KernelBuilder &b, const LinearKernel &kernel, const Matrix &like,
               int64_t groups)
      : b(b), kernel(kernel), isShared(groups) {
    Type element = cast<MemRefType>(like.view.getType()).getElementType();
    lineBytes = kLanes * element.getIntOrFloatBitWidth() / 8;
    isNarrow = lineBytes < 64;
    if (groups && element != b.arithmetic)
      widened = b.named("widened", b.scratch({kProductBlock, groups, kLanes}));
  }

  void prepare(const ProductBlock &block) override {
    if (!widened)
      return;
    b.forLoop("k", block.begin, block.end, 1, [&](Value k) {
      prefetch(block, k, 1);
      for (auto [g, group] : llvm::enumerate(block.groups))
        b.storeLanes(
            kernel.weights[block.matrices.front()].lanes(b, group, k), widened,
            {b.sub(k, block.begin), b.index(g), b.index(0)});
    });
  }

  SmallVector<Value> sum(const ProductBlock &block, ArrayRef<Value> rows,
                         Value isFirst) override {
    size_t groups = block.groups.size();
    SmallVector<Value> zeros(block.matrices.size() * rows.size() * groups,
                             b.splat(0.0));
    int64_t unroll = !isShared && kernel.inputs % kUnroll == 0 ? kUnroll : 1;
    return b.forLoop(
        "k", block.begin, block.end, unroll, zeros,
        [&](Value first, ValueRange state) {
          if (!isShared)
            prefetch(block, first, unroll);
          SmallVector<Value> next(state);
          for (int64_t i = 0; i != unroll; ++i)
            multiplyAdd(block, rows, i ? b.add(first, i) : first, next);
          return next;
        });
  }

private:
  static constexpr int64_t kUnroll = 4;

  // What is read once comes from memory, ahead of its use. The processor itself
  // sees to streams of whole lines.
  void prefetch(const ProductBlock &block, Value k, int64_t count) {
    if (!isNarrow)
      return;
    for (size_t matrix : block.matrices)
      for (Value group : block.groups)
        prefetchStream(b, kernel.weights[matrix].view, group, k, count,
                       block.groups.size(), kStreamAhead / lineBytes);
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
      Value x = b.splat(b.loadScalar(kernel.input, {row, k}));
      for (size_t m = 0; m != block.matrices.size(); ++m)
        for (size_t g = 0; g != groups; ++g) {
          Value &sum = sums[(m * rows.size() + r) * groups + g];
          sum = b.fma(x, w[m * groups + g], sum);
        }
    }
  }

  KernelBuilder &b;
  const LinearKernel &kernel;
  const bool isShared;
  bool isNarrow; // an element has less than 32 bits
  int64_t lineBytes;
  // [kProductBlock][groups][16]: a block of inputs of what tiles share, widened
  // once for all of them; or null.
  Value widened;
};
} // namespace

std::unique_ptr<Product> kvc::makeFloatProduct(KernelBuilder &b,
                                               const LinearKernel &kernel,
                                               const Matrix &like,
                                               int64_t groups) {
  return std::make_unique<FloatProduct>(b, kernel, like, groups);
}
