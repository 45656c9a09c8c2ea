// Products of the class tiles: by a machine's tile instructions for bf16, and what
// they compute, bit for bit, by fused multiply-adds.
//
// A number is a sum of bf16: its upper 16 bits, those of what is left, and so on, so
// that each step is exact. An input is three of them, or one where it was rounded to
// it, an element of a matrix as many as its storage has digits for. Of their products
// those are taken that an f32 sum notices, the smallest first. For 32 inputs, one after
// the other, a product has two sums, each from 0: of the even inputs and of the odd ones,
// by fused multiply-adds. The two are added to each other, and then to the sum of the
// block of inputs.
//
// That is the instruction tdpbf16ps, where denormals count as 0 and results that are
// denormal become 0: the runtime sees to that for the whole of a model of this class.
#include "compiler/cpu/LinearTile.h"
#include "compiler/cpu/TileOps.h"

using namespace mlir;
using namespace kvc;

namespace {

// The bf16 that the storage's numbers are sums of.
int64_t partsOf(const Storage &storage) {
  return &storage == &bf16Storage ? 1 : &storage == &f16Storage ? 2 : 3;
}

// Those that what the matrix is multiplied with is the sum of.
int64_t inputPartsOf(const LinearKernel &kernel, const Matrix &matrix) {
  return kernel.inputOf(matrix) == kernel.narrowed ? 1 : 3;
}

// A product of a part of the input by one of the matrix; 0 is the smallest.
struct Pair {
  int64_t input, weight;
};

// In the order in which they are added: of f32 by f32, those below 2^-24 of the
// largest are left out, and of f32 by f16 the one that is.
SmallVector<Pair> pairsOf(const LinearKernel &kernel, const Matrix &matrix) {
  int64_t inputParts = inputPartsOf(kernel, matrix);
  int64_t weightParts = partsOf(*matrix.storage);
  SmallVector<Pair> pairs;
  for (int64_t weight = 0; weight != weightParts; ++weight)
    for (int64_t input = 0; input != inputParts; ++input)
      if (input + weight >= weightParts - 1)
        pairs.push_back({input, weight});
  return pairs;
}

// Numbers as bf16 that add up to them, the smallest first, each as an f32.
SmallVector<Value> split(KernelBuilder &b, Value numbers, int64_t parts) {
  auto words = VectorType::get({kLanes}, b.getI32Type());
  Value mask = arith::ConstantOp::create(
      b, DenseElementsAttr::get(words, b.getI32IntegerAttr(int32_t(0xffff0000))));
  SmallVector<Value> result(parts);
  for (int64_t part = parts - 1; part > 0; --part) {
    Value bits = arith::BitcastOp::create(b, words, numbers);
    result[part] = arith::BitcastOp::create(b, b.lanes(),
                                            arith::AndIOp::create(b, bits, mask));
    numbers = arith::SubFOp::create(b, numbers, result[part]);
  }
  result[0] = numbers;
  return result;
}

// Calls `body` with the first lane of each half of the inputs from `first` on, 32 of
// them, and the parts of these inputs of a row; beyond the last input they are 0.
void forEachHalf(KernelBuilder &b, Value input, int64_t parts, Value row, Value first,
                 function_ref<void(int64_t half, ArrayRef<Value> parts)> body) {
  int64_t inputs = b.widthOf(input);
  auto splitAll = [&](int64_t count) {
    for (int64_t half = 0; half != kDepth; half += kLanes) {
      int64_t inHalf = std::clamp<int64_t>(count - half, 0, kLanes);
      Value numbers =
          inHalf ? b.loadLanes(input, {row, b.add(first, half)}, inHalf)
                 : b.splat(0.0);
      body(half, split(b, numbers, parts));
    }
  };
  int64_t rest = inputs % kDepth;
  if (!rest)
    return splitAll(kDepth);
  b.ifElse(b.less(first, b.index(inputs - rest)),
           [&] { splitAll(kDepth); }, [&] { splitAll(rest); });
}

// The upper halves of floats, as integers.
Value upperHalves(KernelBuilder &b, Value numbers) {
  auto words = VectorType::get({kLanes}, b.getI32Type());
  return arith::ShRUIOp::create(
      b, arith::BitcastOp::create(b, words, numbers),
      arith::ConstantOp::create(
          b, DenseElementsAttr::get(words, b.getI32IntegerAttr(16))));
}

// Rows by registers of outputs whose sums, two for each pair, fill the registers but
// for what is multiplied.
TileShape shapeOf(const LinearTarget &target, int64_t pairs) {
  int64_t sums = (target.vectorBits == 512 ? 24 : 12) / (2 * pairs);
  int64_t rows = std::clamp<int64_t>(sums, 1, 2);
  return {rows, std::max<int64_t>(1, sums / rows)};
}

class TilesProduct : public Product {
public:
  TilesProduct(KernelBuilder &b, const LinearKernel &kernel,
               const LinearTarget &target, const Matrix &like, int64_t groups)
      : b(b), kernel(kernel), target(target), isShared(groups),
        input(kernel.inputOf(like)), inputParts(inputPartsOf(kernel, like)),
        weightParts(partsOf(*like.storage)), pairs(pairsOf(kernel, like)),
        lanes(target.vectorBits / 32) {}

  void prepare(const ProductBlock &block) override;
  SmallVector<Value> sum(const ProductBlock &block, ArrayRef<Value> rows,
                         const TileShare &share) override;

private:
  Value weightScratch(const ProductBlock &block, int64_t subs) {
    int64_t count = block.matrices.size() * block.groups.size();
    return b.named("weights", b.scratch({subs, kDepth, weightParts, count * kLanes}));
  }
  // Splits 32 inputs of the matrices and groups, from `first` on, to `at` of
  // `weights`; what is beyond the last input is 0.
  void splitWeights(const ProductBlock &block, Value first, Value at);
  // Adds the products of 32 inputs to `sums`: of all rows and registers, and of some.
  void multiplyAdd(int64_t rows, int64_t registers, Value at);
  void multiplyAdd(int64_t firstRow, int64_t rows, int64_t first, int64_t registers,
                   Value at);
  Value load(Value memref, ArrayRef<Value> at) {
    return vector::LoadOp::create(
        b, VectorType::get({lanes}, b.getF32Type()), memref, at);
  }

  KernelBuilder &b;
  const LinearKernel &kernel;
  const LinearTarget &target;
  const bool isShared;
  const Value input;
  const int64_t inputParts, weightParts;
  const SmallVector<Pair> pairs;
  const int64_t lanes; // of a register
  Value inputs;  // [rows][parts][32]
  Value weights; // [8 or 1][32][parts][matrices * groups * 16]
  Value sums;    // [rows][matrices * groups * 16], of a block
};
} // namespace

void TilesProduct::splitWeights(const ProductBlock &block, Value first, Value at) {
  int64_t count = block.matrices.size() * block.groups.size();
  auto store = [&](Value number, Value k, int64_t part, int64_t i) {
    b.storeLanes(number, weights, {at, k, b.index(part), b.index(i * kLanes)});
  };
  Value end = b.min(b.add(first, kDepth), kernel.inputs);
  b.forLoop("k", first, end, 1, [&](Value k) {
    int64_t i = 0;
    for (size_t matrix : block.matrices)
      for (Value group : block.groups) {
        const Matrix &from = kernel.weights[matrix];
        if (weightParts < 3)
          prefetchStreams(b, Stream{from.view, group}, k, 1, kProductBlock,
                          block.groups.size(), /*isRow=*/true, {});
        for (auto [part, number] :
             llvm::enumerate(split(b, from.lanes(b, group, k), weightParts)))
          store(number, b.sub(k, first), part, i);
        ++i;
      }
  });
  if (kernel.inputs % kDepth)
    b.forLoop("k", b.sub(end, first), b.index(kDepth), 1, [&](Value k) {
      for (int64_t i = 0; i != count; ++i)
        for (int64_t part = 0; part != weightParts; ++part)
          store(b.splat(0.0), k, part, i);
    });
}

void TilesProduct::prepare(const ProductBlock &block) {
  if (!isShared)
    return;
  weights = weightScratch(block, kProductBlock / kDepth);
  b.forLoop("sub", block.begin, block.end, kDepth, [&](Value first) {
    splitWeights(block, first, b.divFloor(b.sub(first, block.begin), kDepth));
  });
}

void TilesProduct::multiplyAdd(int64_t rows, int64_t registers, Value at) {
  TileShape most = shapeOf(target, pairs.size());
  for (int64_t row = 0; row < rows; row += most.rows)
    for (int64_t i = 0; i < registers; i += most.groups)
      multiplyAdd(row, std::min(most.rows, rows - row), i,
                  std::min(most.groups, registers - i), at);
}

void TilesProduct::multiplyAdd(int64_t firstRow, int64_t rows, int64_t first,
                               int64_t registers, Value at) {
  auto column = [&](int64_t i) { return b.index((first + i) * lanes); };
  auto row = [&](int64_t r) { return b.index(firstRow + r); };
  Value zero = vector::BroadcastOp::create(
      b, VectorType::get({lanes}, b.getF32Type()), b.number(0.0));
  // [pairs][even, odd][rows][registers]
  auto place = [&](int64_t pair, int64_t odd, int64_t r, int64_t i) {
    return ((2 * pair + odd) * rows + r) * registers + i;
  };
  SmallVector<Value> chains(2 * pairs.size() * rows * registers, zero);
  chains = b.forLoop(
      "k", b.index(0), b.index(kDepth), 2, chains,
      [&](Value even, ValueRange state) {
        SmallVector<Value> next(state);
        for (int64_t odd : {0, 1}) {
          Value k = odd ? b.add(even, odd) : even;
          SmallVector<Value> w; // [parts][registers]
          for (int64_t part = 0; part != weightParts; ++part)
            for (int64_t i = 0; i != registers; ++i)
              w.push_back(load(weights, {at, k, b.index(part), column(i)}));
          for (int64_t r = 0; r != rows; ++r) {
            SmallVector<Value, 3> x;
            for (int64_t part = 0; part != inputParts; ++part)
              x.push_back(vector::BroadcastOp::create(
                  b, zero.getType(),
                  b.loadScalar(inputs, {row(r), b.index(part), k})));
            for (auto [p, pair] : llvm::enumerate(pairs))
              for (int64_t i = 0; i != registers; ++i) {
                Value &chain = next[place(p, odd, r, i)];
                chain = b.fma(x[pair.input], w[pair.weight * registers + i], chain);
              }
          }
        }
        return next;
      });
  for (int64_t r = 0; r != rows; ++r)
    for (int64_t i = 0; i != registers; ++i) {
      Value sum = load(sums, {row(r), column(i)});
      for (size_t p = 0; p != pairs.size(); ++p)
        sum = arith::AddFOp::create(
            b, sum,
            arith::AddFOp::create(b, chains[place(p, 0, r, i)],
                                  chains[place(p, 1, r, i)]));
      vector::StoreOp::create(b, sum, sums, ValueRange{row(r), column(i)});
    }
}

SmallVector<Value> TilesProduct::sum(const ProductBlock &block,
                                     ArrayRef<Value> rows, const TileShare &) {
  int64_t count = block.matrices.size() * block.groups.size();
  int64_t rowCount = rows.size();
  inputs = b.named("inputs", b.scratch({rowCount, inputParts, kDepth}));
  sums = b.named("sums", b.scratch({rowCount, count * kLanes}));
  if (!isShared)
    weights = weightScratch(block, 1);
  auto place = [&](int64_t r, int64_t i) {
    return SmallVector<Value>{b.index(r), b.index(i * kLanes)};
  };
  for (int64_t r = 0; r != rowCount; ++r)
    for (int64_t i = 0; i != count; ++i)
      b.storeLanes(b.splat(0.0), sums, place(r, i));
  b.forLoop("sub", block.begin, block.end, kDepth, [&](Value first) {
    Value at = b.index(0);
    if (isShared)
      at = b.divFloor(b.sub(first, block.begin), kDepth);
    else
      splitWeights(block, first, at);
    for (int64_t r = 0; r != rowCount; ++r)
      forEachHalf(b, input, inputParts, rows[r], first,
                  [&](int64_t half, ArrayRef<Value> parts) {
                    for (auto [part, number] : llvm::enumerate(parts))
                      b.storeLanes(number, inputs,
                                   {b.index(r), b.index(part), b.index(half)});
                  });
    multiplyAdd(rowCount, count * kLanes / lanes, at);
  });
  SmallVector<Value> result; // [matrices][rows][groups]
  for (size_t matrix = 0; matrix != block.matrices.size(); ++matrix)
    for (int64_t r = 0; r != rowCount; ++r)
      for (size_t group = 0; group != block.groups.size(); ++group)
        result.push_back(b.loadLanes(
            sums, place(r, matrix * block.groups.size() + group)));
  return result;
}

namespace {
// The same in tiles, of two times 16 rows by groups of 16 outputs: a matrix's words are
// two inputs of an output.
class AMXProduct : public Product {
public:
  AMXProduct(KernelBuilder &b, const LinearKernel &kernel, const Matrix &like)
      : b(b), kernel(kernel), parts(kernel.parts.lookup(kernel.inputOf(like))),
        weightParts(partsOf(*like.storage)), pairs(pairsOf(kernel, like)) {}

  void prepare(const ProductBlock &block) override;
  void forEachSum(const ProductBlock &block, ArrayRef<Value> rows,
                  const TileShare &share,
                  function_ref<void(size_t, Value)> body) override;

private:
  KernelBuilder &b;
  const LinearKernel &kernel;
  const Value parts; // of the input
  const int64_t weightParts;
  const SmallVector<Pair> pairs;
  Value weights; // [8][parts][groups][16][16] words
};
} // namespace

void AMXProduct::prepare(const ProductBlock &block) {
  int64_t groups = block.groups.size(), half = kDepth / 2;
  auto words = VectorType::get({kLanes}, b.getI32Type());
  weights = b.named(
      "weights",
      memref::AllocaOp::create(
          b,
          MemRefType::get({kProductBlock / kDepth, weightParts, groups, half, kLanes},
                          b.getI32Type()),
          b.getI64IntegerAttr(64)));
  const Matrix &from = kernel.weights[block.matrices.front()];
  int64_t last = kernel.inputs / 2 * 2; // inputs before it are pairs
  b.forLoop("sub", block.begin, block.end, kDepth, [&](Value first) {
    Value at = b.divFloor(b.sub(first, block.begin), kDepth);
    Value end = b.min(b.add(first, kDepth), last);
    auto storePair = [&](Value k, bool isWhole) {
      for (int64_t g = 0; g != groups; ++g) {
        Value group = block.groups[g];
        if (weightParts < 3)
          prefetchStreams(b, Stream{from.view, group}, k, 1 + isWhole, kProductBlock,
                          groups, /*isRow=*/false, {});
        SmallVector<Value> even = split(b, from.lanes(b, group, k), weightParts);
        SmallVector<Value> odd(weightParts, b.splat(0.0));
        if (isWhole)
          odd = split(b, from.lanes(b, group, b.add(k, 1)), weightParts);
        for (int64_t part = 0; part != weightParts; ++part) {
          Value upper = arith::ShLIOp::create(
              b, upperHalves(b, odd[part]),
              arith::ConstantOp::create(
                  b, DenseElementsAttr::get(words, b.getI32IntegerAttr(16))));
          vector::StoreOp::create(
              b, arith::OrIOp::create(b, upperHalves(b, even[part]), upper), weights,
              ValueRange{at, b.index(part), b.index(g),
                         b.divFloor(b.sub(k, first), 2), b.index(0)});
        }
      }
    };
    b.forLoop("k", first, end, 2, [&](Value k) { storePair(k, true); });
    if (last != kernel.inputs)
      b.ifThen(b.less(b.index(last), b.add(first, kDepth)),
               [&] { storePair(b.index(last), false); });
    if (kernel.inputs % kDepth) {
      Value count = b.sub(b.min(b.add(first, kDepth), kernel.inputs), first);
      Value none = vector::BroadcastOp::create(
          b, words, arith::ConstantOp::create(b, b.getI32IntegerAttr(0)));
      b.forLoop("pair", b.divCeil(count, 2), b.index(half), 1, [&](Value pair) {
        for (int64_t part = 0; part != weightParts; ++part)
          for (int64_t g = 0; g != groups; ++g)
            vector::StoreOp::create(
                b, none, weights,
                ValueRange{at, b.index(part), b.index(g), pair, b.index(0)});
      });
    }
  });
}

void AMXProduct::forEachSum(const ProductBlock &block, ArrayRef<Value> rows,
                            const TileShare &,
                            function_ref<void(size_t, Value)> body) {
  Type bf16 = b.getBF16Type(), f32 = b.getF32Type();
  int64_t rowTiles = rows.size() / kTileRows, groups = block.groups.size();
  Value sums = b.named("sums", b.scratch({int64_t(rows.size()), groups * kLanes}));
  SmallVector<Value> zeros; // [row tiles][groups]
  for (int64_t i = 0; i != rowTiles * groups; ++i)
    zeros.push_back(zeroTile(b, kTileRows, f32));
  SmallVector<Value> tiles = b.forLoop(
      "sub", block.begin, block.end, kDepth, zeros,
      [&](Value first, ValueRange state) {
        SmallVector<Value> next(state), w(groups);
        Value at = b.divFloor(b.sub(first, block.begin), kDepth);
        Value sub = b.divFloor(first, kDepth);
        for (auto [p, pair] : llvm::enumerate(pairs)) {
          if (p == 0 || pairs[p - 1].weight != pair.weight)
            for (int64_t g = 0; g != groups; ++g)
              w[g] = loadTile(b, kDepth / 2, 2 * kLanes, bf16, weights,
                              {at, b.index(pair.weight), b.index(g), b.index(0),
                               b.index(0)},
                              kLanes);
          for (int64_t t = 0; t != rowTiles; ++t) {
            // Rows behind the last one are any numbers of the buffer.
            Value x = loadTile(b, kTileRows, kDepth, bf16, parts,
                               {sub, b.index(pair.input),
                                b.add(rows.front(), t * kTileRows), b.index(0)},
                               kDepth);
            for (int64_t g = 0; g != groups; ++g) {
              Value &sum = next[t * groups + g];
              sum = amx::TileMulFOp::create(b, sum.getType(), x, w[g], sum);
            }
          }
        }
        return next;
      });
  for (int64_t t = 0; t != rowTiles; ++t)
    for (int64_t g = 0; g != groups; ++g)
      storeTile(b, tiles[t * groups + g], sums,
                {b.index(t * kTileRows), b.index(g * kLanes)}, groups * kLanes);
  for (size_t r = 0; r != rows.size(); ++r)
    for (int64_t g = 0; g != groups; ++g)
      body(r * groups + g, b.loadLanes(sums, {b.index(r), b.index(g * kLanes)}));
}

// A task is a row.
Value kvc::emitSplitRows(KernelBuilder &b, const LinearKernel &kernel,
                         const Matrix &matrix) {
  Value input = kernel.inputOf(matrix);
  Value rows = b.rowsOf(input);
  int64_t subs = llvm::divideCeil(kernel.inputs, kDepth);
  int64_t count = inputPartsOf(kernel, matrix);
  Value parts = b.named(
      "parts", memref::AllocOp::create(
                   b,
                   MemRefType::get({subs, count, ShapedType::kDynamic, kDepth},
                                   b.getBF16Type()),
                   rows));
  bool isPairs = kernel.isPairs(matrix);
  std::string name = std::exchange(b.kernel, b.kernel + ".split");
  auto halves = VectorType::get({kLanes}, b.getIntegerType(16));
  auto narrow = VectorType::get({kLanes}, b.getBF16Type());
  b.parallel("n", rows, [&](Value n) {
    b.forLoop("sub", b.index(0), b.index(subs), 1, [&](Value sub) {
      if (isPairs) {
        for (int64_t half = 0; half != kDepth; half += kLanes)
          vector::StoreOp::create(
              b, loadPairs(b, input, n, b.add(b.mul(sub, kDepth), half)), parts,
              ValueRange{sub, b.index(0), n, b.index(half)});
        return;
      }
      forEachHalf(b, input, count, n, b.mul(sub, kDepth), [&](int64_t half,
                                                              ArrayRef<Value> numbers) {
        for (auto [part, number] : llvm::enumerate(numbers))
          vector::StoreOp::create(
              b,
              arith::BitcastOp::create(
                  b, narrow,
                  arith::TruncIOp::create(b, halves, upperHalves(b, number))),
              parts, ValueRange{sub, b.index(part), n, b.index(half)});
      });
    });
  });
  b.kernel = name;
  return parts;
}

ProductShapes kvc::tilesShapes(const LinearTarget &target,
                               const LinearKernel &kernel) {
  int64_t pairs = 1;
  for (const Matrix &matrix : kernel.weights)
    for (const Matrix *stored = &matrix; stored; stored = stored->otherwise.get())
      pairs = std::max<int64_t>(pairs, pairsOf(kernel, *stored).size());
  TileShape few = {shapeOf(target, pairs).rows, 2}, many = few;
  if (kernel.arePairs())
    few = pairsShapes().few, many = pairsShapes().many;
  return {few, target.hasTiles ? TileShape{2 * kTileRows, 2} : many};
}

std::unique_ptr<Product> kvc::makeTilesProduct(KernelBuilder &b,
                                               const LinearKernel &kernel,
                                               const LinearTarget &target,
                                               const Matrix &like, int64_t rows,
                                               int64_t groups) {
  if (!kernel.parts.empty() && groups && rows % kTileRows == 0)
    return std::make_unique<AMXProduct>(b, kernel, like);
  if (kernel.isPairs(like))
    return makePairsProduct(b, kernel, groups);
  return std::make_unique<TilesProduct>(b, kernel, target, like, groups);
}
