// Products of the class tiles of inputs and matrices in bf16, by AVX-512's vdpbf16ps.
//
// The instruction adds two products to a sum by two fused multiply-adds, that of the
// words' upper halves first, and treats denormals as the class does. So a word is two
// inputs of the same sum: k and k + 2 of the even ones, k + 1 and k + 3 of the odd ones,
// the first in the upper half. Of 32 inputs a row has 16 words, even and odd ones in
// turns; a matrix's are made from its panels when they are read.
#include "compiler/cpu/LinearTile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace kvc;

namespace {
constexpr int64_t kQuad = 4; // inputs of two words

// Of blocks, in a register tile, beside twice as many of 32 inputs: 32 registers. Of few
// rows, one stream of memory is faster than two.
constexpr int64_t kSums = 8;
constexpr ProductShapes kShapes{{8, 1}, {4, 2}};

class PairsProduct : public Product {
public:
  PairsProduct(KernelBuilder &b, const LinearKernel &kernel, int64_t groups)
      : b(b), kernel(kernel), isShared(groups),
        keeps(isShared || kernel.inputs % kDepth) {}

  void prepare(const ProductBlock &block) override;
  SmallVector<Value> sum(const ProductBlock &block, ArrayRef<Value> rows,
                         const TileShare &share) override;

private:
  Type words() { return VectorType::get({kLanes}, b.getI32Type()); }
  VectorType halves() { return VectorType::get({2 * kLanes}, b.getBF16Type()); }
  // Inputs k and k + 1 of a group, of `count` that there are; others are 0.
  Value loadTwo(const Matrix &matrix, Value group, Value k, int64_t count);
  // The even and the odd words of the inputs k to k + 3.
  std::pair<Value, Value> pairsOf(const Matrix &matrix, Value group, Value k,
                                  int64_t count);
  // Fills the words of 32 inputs, from `first` on, at `at` of `weights`.
  void keepPairs(const ProductBlock &block, Value first, Value at);
  void allocateWeights(const ProductBlock &block, int64_t subs) {
    int64_t count = block.matrices.size() * block.groups.size();
    weights = b.named(
        "weights",
        memref::AllocaOp::create(
            b,
            MemRefType::get({subs, kDepth / kQuad, 2, count, kLanes}, b.getI32Type()),
            b.getI64IntegerAttr(64)));
  }
  void prefetch(const ProductBlock &block, Value k, int64_t count,
                const TileShare &share);
  // Adds the products of 32 inputs to `sums`, [rows][matrices * groups].
  void multiplyAdd(const ProductBlock &block, ArrayRef<Value> rows, Value first,
                   Value at, MutableArrayRef<Value> sums);

  KernelBuilder &b;
  const LinearKernel &kernel;
  const bool isShared;
  const bool keeps; // what is multiplied in `weights`
  Value weights;    // [8 or 1][8][even, odd][matrices * groups][16] words
};
} // namespace

Value PairsProduct::loadTwo(const Matrix &matrix, Value group, Value k, int64_t count) {
  if (count <= 0)
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(halves(), b.getFloatAttr(b.getBF16Type(), 0)));
  if (count > 1) { // they stand together
    auto type = cast<MemRefType>(matrix.view.getType());
    Value flat = memref::CollapseShapeOp::create(
        b, matrix.view, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
    return vector::LoadOp::create(b, VectorType::get({2 * kLanes}, type.getElementType()),
                                  flat, ValueRange{group, b.mul(k, kLanes)});
  }
  Value zeros = loadTwo(matrix, group, k, 0);
  Value one = vector::LoadOp::create(b, VectorType::get({kLanes}, b.getBF16Type()),
                                     matrix.view, ValueRange{group, k, b.index(0)});
  return vector::InsertStridedSliceOp::create(b, one, zeros, ArrayRef<int64_t>{0},
                                              ArrayRef<int64_t>{1});
}

std::pair<Value, Value> PairsProduct::pairsOf(const Matrix &matrix, Value group,
                                              Value k, int64_t count) {
  Value early = loadTwo(matrix, group, k, count);
  Value late = loadTwo(matrix, group, b.add(k, 2), count - 2);
  auto pairs = [&](int64_t half) -> Value {
    SmallVector<int64_t> lanes;
    for (int64_t lane = half; lane != half + kLanes; ++lane)
      lanes.append({2 * kLanes + lane, lane});
    return vector::ShuffleOp::create(b, early, late, lanes);
  };
  return {pairs(0), pairs(kLanes)};
}

void PairsProduct::keepPairs(const ProductBlock &block, Value first, Value at) {
  auto keep = [&](Value k, int64_t count) {
    int64_t i = 0;
    for (size_t matrix : block.matrices)
      for (Value group : block.groups) {
        auto [even, odd] = pairsOf(kernel.weights[matrix], group, k, count);
        for (auto [parity, word] : llvm::enumerate(std::array{even, odd}))
          vector::StoreOp::create(
              b, vector::BitCastOp::create(b, cast<VectorType>(words()), word), weights,
              ValueRange{at, b.divFloor(b.sub(k, first), kQuad), b.index(parity),
                         b.index(i), b.index(0)});
        ++i;
      }
  };
  int64_t whole = kernel.inputs / kQuad * kQuad; // inputs before it are four by four
  Value last = b.add(first, kDepth);
  Value end = kernel.inputs % kDepth ? b.min(last, whole) : last;
  b.forLoop("k", first, end, kQuad, [&](Value k) { keep(k, kQuad); });
  if (kernel.inputs % kDepth == 0)
    return;
  b.ifThen(b.less(b.index(kernel.inputs), last), [&] {
    keep(b.index(whole), kernel.inputs - whole);
    b.forLoop("k", b.index(whole + kQuad), last, kQuad, [&](Value k) { keep(k, 0); });
  });
}

void PairsProduct::prepare(const ProductBlock &block) {
  if (!isShared)
    return;
  allocateWeights(block, kProductBlock / kDepth);
  b.forLoop("sub", block.begin, block.end, kDepth, [&](Value first) {
    keepPairs(block, first, b.divFloor(b.sub(first, block.begin), kDepth));
  });
}

void PairsProduct::prefetch(const ProductBlock &block, Value k, int64_t count,
                            const TileShare &share) {
  SmallVector<Stream> streams;
  for (size_t matrix : block.matrices)
    for (Value group : block.groups)
      streams.push_back({kernel.weights[matrix].view, group});
  prefetchStreams(b, streams, k, count, kProductBlock, block.groups.size(),
                  /*isRow=*/false, share);
}

void PairsProduct::multiplyAdd(const ProductBlock &block, ArrayRef<Value> rows,
                               Value first, Value at, MutableArrayRef<Value> sums) {
  size_t count = block.matrices.size() * block.groups.size();
  // [even, odd][rows][matrices * groups]
  SmallVector<Value> chains(2 * rows.size() * count, b.splat(0.0));
  Value firstWord = b.divFloor(first, 2);
  for (int64_t quad = 0; quad != kDepth / kQuad; ++quad) {
    SmallVector<Value> w; // [matrices * groups][even, odd]
    Value k = quad ? b.add(first, quad * kQuad) : first;
    if (!keeps) {
      // The processor itself sees to one row's streams of whole lines.
      if (rows.size() > 1)
        prefetch(block, k, kQuad, {});
      for (size_t matrix : block.matrices)
        for (Value group : block.groups) {
          auto [even, odd] = pairsOf(kernel.weights[matrix], group, k, kQuad);
          w.append({even, odd});
        }
    }
    for (int64_t parity : {0, 1}) {
      if (keeps) {
        w.assign(2 * count, {});
        for (size_t i = 0; i != count; ++i)
          w[2 * i + parity] = vector::BitCastOp::create(
              b, halves(),
              vector::LoadOp::create(b, cast<VectorType>(words()), weights,
                                     ValueRange{at, b.index(quad), b.index(parity),
                                                b.index(i), b.index(0)}));
      }
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value word = memref::LoadOp::create(
            b, kernel.narrowed, ValueRange{row, b.add(firstWord, 2 * quad + parity)});
        Value x = vector::BitCastOp::create(
            b, halves(), vector::BroadcastOp::create(b, words(), word));
        for (size_t i = 0; i != count; ++i) {
          Value &chain = chains[(parity * rows.size() + r) * count + i];
          chain = LLVM::CallIntrinsicOp::create(
                      b, b.lanes(), b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                      ValueRange{chain, w[2 * i + parity], x})
                      ->getResult(0);
        }
      }
    }
  }
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = arith::AddFOp::create(
        b, sum, arith::AddFOp::create(b, chains[i], chains[rows.size() * count + i]));
}

SmallVector<Value> PairsProduct::sum(const ProductBlock &block, ArrayRef<Value> rows,
                                     const TileShare &share) {
  size_t groups = block.groups.size(), count = block.matrices.size() * groups;
  size_t most = std::max<size_t>(1, kSums / count);
  if (keeps && !isShared)
    allocateWeights(block, 1);
  SmallVector<Value> result(rows.size() * count); // [matrices][rows][groups]
  for (size_t from = 0; from < rows.size(); from += most) {
    ArrayRef<Value> part = rows.slice(from, std::min(most, rows.size() - from));
    SmallVector<Value> zeros(part.size() * count, b.splat(0.0));
    SmallVector<Value> sums = b.forLoop(
        "sub", block.begin, block.end, kDepth, zeros,
        [&](Value first, ValueRange state) {
          SmallVector<Value> next(state);
          Value at = b.index(0);
          if (isShared) {
            at = b.divFloor(b.sub(first, block.begin), kDepth);
            prefetch(block, first, kDepth, share);
          } else if (keeps) {
            keepPairs(block, first, at);
          }
          multiplyAdd(block, part, first, at, next);
          return next;
        });
    for (auto [i, sum] : llvm::enumerate(sums)) {
      size_t r = from + i / count, matrix = i % count / groups;
      result[(matrix * rows.size() + r) * groups + i % groups] = sum;
    }
  }
  return result;
}

// The 16 inputs of eight words, in the order in which these have them.
static SmallVector<int64_t> lanesOfWords() {
  SmallVector<int64_t> lanes;
  for (int64_t k = 0; k != kLanes; k += kQuad)
    lanes.append({k + 2, k, k + 3, k + 1});
  return lanes;
}

void kvc::emitPairRows(KernelBuilder &b, Value input, Value output) {
  int64_t width = b.widthOf(input), half = kLanes / 2;
  auto words = VectorType::get({half}, b.getI32Type());
  b.forEachRow(b.rowsOf(input), [&](Value n) {
    b.forEachRun(width, [&](Value i, int64_t count) {
      Value numbers = b.convert(b.loadLanes(input, {n, i}, count), b.getBF16Type());
      Value pairs = vector::ShuffleOp::create(b, numbers, numbers, lanesOfWords());
      vector::StoreOp::create(b, vector::BitCastOp::create(b, words, pairs), output,
                              ValueRange{n, b.divFloor(i, 2)});
    });
    int64_t filled = llvm::divideCeil(width, kLanes) * half;
    if (filled != b.widthOf(output))
      vector::StoreOp::create(
          b,
          arith::ConstantOp::create(b, DenseElementsAttr::get(words, int32_t(0))),
          output, ValueRange{n, b.index(filled)});
  });
}

Value kvc::loadPairs(KernelBuilder &b, Value pairs, Value row, Value first) {
  SmallVector<int64_t> order = lanesOfWords(), lanes(kLanes);
  for (auto [at, lane] : llvm::enumerate(order))
    lanes[lane] = at;
  Value words = vector::LoadOp::create(
      b, VectorType::get({kLanes / 2}, b.getI32Type()), pairs,
      ValueRange{row, b.divFloor(first, 2)});
  Value numbers = vector::BitCastOp::create(
      b, VectorType::get({kLanes}, b.getBF16Type()), words);
  return vector::ShuffleOp::create(b, numbers, numbers, lanes);
}

ProductShapes kvc::pairsShapes() { return kShapes; }

std::unique_ptr<Product> kvc::makePairsProduct(KernelBuilder &b,
                                               const LinearKernel &kernel,
                                               int64_t groups) {
  return std::make_unique<PairsProduct>(b, kernel, groups);
}
