// Products of rounded rows with matrices in blocks of small integers.
//
// 32 inputs of a row, or 16 where a storage has a factor for so many, and as many
// elements of a matrix give an exact integer, which one fused multiply-add takes into
// the sum of a block of inputs: its factor is the matrix's scale times the row's.
// What a storage adds to its elements comes after all of these, as the minimum times
// the row's scaled sum. So a sum is the same bits whatever instructions multiply the
// bytes.
#include "compiler/cpu/LinearTile.h"
#include "compiler/cpu/TileOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace kvc;

namespace {
constexpr int64_t kBlock = 32;         // inputs with one scale
constexpr int64_t kWords = kBlock / 4; // words of four inputs in a block

class IntegerProduct : public Product {
public:
  IntegerProduct(KernelBuilder &b, const LinearKernel &kernel,
                 const LinearTarget &target, const Matrix &like, int64_t groups)
      : b(b), kernel(kernel), target(target), isShared(groups),
        storage(*like.storage), quants(*storage.quants),
        layout(storage.blockLayout(storage.panel)),
        perBlock(storage.elements / kBlock), parts32(kBlock / quants.subBlock),
        lanes(target.vectorBits / 32), parts(kLanes / lanes),
        words(VectorType::get({lanes}, b.getI32Type())),
        shorts(VectorType::get({2 * lanes}, b.getI16Type())),
        bytes(VectorType::get({4 * lanes}, b.getI8Type())) {
    if (groups)
      unpacked = b.named(
          "unpacked",
          memref::AllocaOp::create(
              b,
              MemRefType::get({kProductBlock / kBlock, kWords, groups, 4 * kLanes},
                              b.getI8Type()),
              b.getI64IntegerAttr(64)));
  }

  void prepare(const ProductBlock &block) override;
  SmallVector<Value> sum(const ProductBlock &block, ArrayRef<Value> rows,
                         const TileShare &share) override;

private:
  // 16 outputs of a matrix, and where they stand in it.
  struct Group {
    Value view, panel, lane;
    size_t index;
  };
  SmallVector<Group> groupsOf(const ProductBlock &block);

  // Of the storage's block that has the 32 inputs `sub`, in a group's panel: `count`
  // bytes that stand at `offset`, `stride` bytes later for each 32 before ours, and
  // `perLane` bytes for each lane before the group's first.
  Value load(const Group &group, Value sub, int64_t offset, int64_t stride,
             int64_t perLane, int64_t count);
  // 16 halves, or bytes with or without a sign, as floats.
  Value loadHalves(const Group &group, Value sub, int64_t offset);
  Value loadBytes(const Group &group, Value sub, int64_t offset, int64_t stride,
                  bool isSigned);
  // What the quants of the 32 inputs, or of a half of them, are scaled with, and what
  // is added to each.
  Value loadScales(const Group &group, Value sub, int64_t half);
  Value loadMinima(const Group &group, Value sub);
  // The packed quants of word `word` of the lanes of a part, from `offset` on.
  Value loadQuants(const Group &group, Value sub, int64_t offset, int64_t word,
                   int64_t part);
  // In each byte so many bits, from bit `shift` on.
  Value bitsOf(Value packed, int64_t shift, int64_t count);
  // The quants of a word, as bytes without a sign, of the lanes of a part.
  Value unpack(const Group &group, Value sub, int64_t word, int64_t part,
               Value packed);
  // What comes behind the 32 inputs `sub`.
  Prefetch prefetch(ArrayRef<Group> groups, Value sub, bool isRow,
                    const TileShare &share);
  // Calls `body` with words of a block, `from` to before `to`, in any order: the quants
  // of the groups' lanes as bytes without a sign, register by register. From the packed
  // file, and from where a block that several tiles share stands.
  using WordBody = function_ref<void(int64_t word, ArrayRef<Value> quants)>;
  void forEachPackedWord(Value sub, ArrayRef<Group> groups, int64_t from,
                         int64_t to, WordBody body);
  void forEachWord(Value first, Value sub, ArrayRef<Group> groups, int64_t from,
                   int64_t to, WordBody body);
  SmallVector<Value> unpackedAt(Value block, int64_t word, int64_t i);

  // Starts, adds to and reads a sum of products of bytes: of one register's lanes.
  Value startSum(Value negatedSum);
  struct Factor {
    Value magnitude; // without a sign
    Value sign;      // what the row's bytes take theirs of; null: they have it
  };
  Factor factorOf(Value quants);
  Value multiplyAdd(const Factor &factor, Value row, Value sum);
  Value finishSum(Value sum, Value negatedSum);

  // A word of a rounded row's block, and one that is a number, for all lanes.
  Value rowWord(Value row, Value sub, int64_t at) {
    return memref::LoadOp::create(b, kernel.rounded,
                                  ValueRange{row, sub, b.index(at)});
  }
  Value rowNumber(Value row, Value sub, int64_t at) {
    return b.splat(
        arith::BitcastOp::create(b, b.arithmetic, rowWord(row, sub, at)));
  }
  // Adds a block's integers, or a half's, with their factors to `sums`, [matrices]
  // [rows][groups].
  void addScaled(ArrayRef<Group> groups, ArrayRef<Value> rows, Value sub,
                 int64_t half, function_ref<Value(size_t row, size_t group)> integer,
                 MutableArrayRef<Value> sums);
  size_t placeOf(size_t row, size_t group, size_t rows) {
    return (group / groupsOfMatrix * rows + row) * groupsOfMatrix +
           group % groupsOfMatrix;
  }
  // The sums without minima, of integers in registers and in tiles.
  SmallVector<Value> sumRegisters(ArrayRef<Group> groups, ArrayRef<Value> rows,
                                  Value first, Value last, const TileShare &share);
  SmallVector<Value> sumTiles(ArrayRef<Group> groups, ArrayRef<Value> rows,
                              Value first, Value last, const TileShare &share);

  // Whether the rows of a tile are multiplied at once (AMX), by quants with a sign.
  bool usesTiles() const {
    return target.hasTiles && isShared && kTileRows % target.integers.many.rows == 0;
  }
  // Whether quants are multiplied as they are packed, with their zero above 0, and
  // the row's sum makes good for it.
  bool keepsZero() const { return target.hasByteDot || quants.bits < 8; }
  Value zeroTimes(Value negatedSum);

  Value constant(VectorType type, int64_t value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               type, b.getIntegerAttr(type.getElementType(), value)));
  }
  // An x86 instruction by LLVM's name of it, which depends on the registers' width.
  Value instruction(StringRef narrow, StringRef wide, Type result,
                    ValueRange operands) {
    StringRef name = target.vectorBits == 512 ? wide : narrow;
    return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr(name),
                                         operands)
        ->getResult(0);
  }

  KernelBuilder &b;
  const LinearKernel &kernel;
  const LinearTarget &target;
  const bool isShared;
  const Storage &storage;
  const Quants quants;
  const BlockLayout layout;
  const int64_t perBlock; // 32 inputs in a block of the storage
  const int64_t parts32;  // parts of 32 inputs that have a factor
  const int64_t lanes, parts; // of a register; registers for 16 lanes
  const VectorType words, shorts, bytes;
  Value unpacked; // [blocks][words][groups][64], or null
  size_t groupsOfMatrix = 0; // in a block
};
} // namespace

//===----------------------------------------------------------------------===//
// Reading a block of a panel (Storage::pack)
//===----------------------------------------------------------------------===//

SmallVector<IntegerProduct::Group>
IntegerProduct::groupsOf(const ProductBlock &block) {
  int64_t perPanel = storage.panel / kLanes;
  SmallVector<Group> result;
  for (size_t matrix : block.matrices)
    for (auto [index, group] : llvm::enumerate(block.groups))
      result.push_back({kernel.weights[matrix].view, b.divFloor(group, perPanel),
                        b.mul(b.rem(group, perPanel), kLanes), index});
  return result;
}

Value IntegerProduct::load(const Group &group, Value sub, int64_t offset,
                           int64_t stride, int64_t perLane, int64_t count) {
  Value block = perBlock == 1 ? sub : b.divFloor(sub, perBlock);
  Value at = b.add(b.mul(block, layout.bytes), b.mul(group.lane, perLane));
  if (perBlock != 1 && stride)
    at = b.add(at, b.mul(b.rem(sub, perBlock), stride));
  return vector::LoadOp::create(b, VectorType::get({count}, b.getI8Type()),
                                group.view,
                                ValueRange{group.panel, b.add(at, offset)});
}

Value IntegerProduct::loadHalves(const Group &group, Value sub,
                                 int64_t offset) {
  Value halves = vector::BitCastOp::create(
      b, VectorType::get({kLanes}, b.getF16Type()),
      load(group, sub, offset, 0, 2, 2 * kLanes));
  return b.convert(halves, b.arithmetic);
}

Value IntegerProduct::loadBytes(const Group &group, Value sub, int64_t offset,
                                int64_t stride, bool isSigned) {
  auto wide = VectorType::get({kLanes}, b.getI32Type());
  Value loaded = load(group, sub, offset, stride, 1, kLanes);
  Value integers = isSigned ? Value(arith::ExtSIOp::create(b, wide, loaded))
                            : Value(arith::ExtUIOp::create(b, wide, loaded));
  return arith::SIToFPOp::create(b, b.lanes(), integers);
}

Value IntegerProduct::loadScales(const Group &group, Value sub, int64_t half) {
  Value scales = loadHalves(group, sub, 0);
  if (!quants.hasSubScales)
    return scales;
  return arith::MulFOp::create(
      b, scales,
      loadBytes(group, sub, layout.scales + half * storage.panel,
                parts32 * storage.panel, /*isSigned=*/true));
}

Value IntegerProduct::loadMinima(const Group &group, Value sub) {
  Value minima = loadHalves(group, sub, layout.minimum);
  if (!quants.hasSubScales)
    return minima;
  return arith::NegFOp::create(
      b, arith::MulFOp::create(b, minima,
                               loadBytes(group, sub, layout.minima, storage.panel,
                                         /*isSigned=*/false)));
}

Value IntegerProduct::loadQuants(const Group &group, Value sub, int64_t offset,
                                 int64_t word, int64_t part) {
  return load(group, sub, offset + 4 * (word * storage.panel + part * lanes),
              layout.quantsStride, 4, 4 * lanes);
}

Value IntegerProduct::bitsOf(Value packed, int64_t shift, int64_t count) {
  if (shift)
    packed = vector::BitCastOp::create(
        b, bytes,
        arith::ShRUIOp::create(b, vector::BitCastOp::create(b, shorts, packed),
                               constant(shorts, shift)));
  return arith::AndIOp::create(b, packed, constant(bytes, (1 << count) - 1));
}

Value IntegerProduct::unpack(const Group &group, Value sub, int64_t word,
                             int64_t part, Value packed) {
  Value quant = bitsOf(packed, word / 4 * 4, 4);
  int64_t more = quants.bits - 4;
  if (!more)
    return quant;
  // Upper bits of a byte of eight words, or of four.
  int64_t perByte = 8 / more;
  Value upper = bitsOf(loadQuants(group, sub, layout.quants + layout.upper,
                                  word / perByte, part),
                       word % perByte * more, more);
  Value shifted = arith::ShLIOp::create(
      b, vector::BitCastOp::create(b, shorts, upper), constant(shorts, 4));
  return arith::OrIOp::create(b, quant,
                              vector::BitCastOp::create(b, bytes, shifted));
}

void IntegerProduct::forEachPackedWord(Value sub, ArrayRef<Group> groups,
                                       int64_t from, int64_t to, WordBody body) {
  int64_t packedWords = quants.bits == 8 ? kWords : kWords / 2;
  for (int64_t word = from % packedWords;
       word != std::min(packedWords, from % packedWords + to - from); ++word) {
    SmallVector<Value> packed;
    for (const Group &group : groups)
      for (int64_t part = 0; part != parts; ++part)
        packed.push_back(loadQuants(group, sub, layout.quants, word, part));
    // Nibbles are of two words.
    for (int64_t whole = word; whole < kWords; whole += packedWords) {
      if (whole < from || whole >= to)
        continue;
      SmallVector<Value> quantsOfWord = packed;
      for (size_t i = 0; quants.bits != 8 && i != packed.size(); ++i)
        quantsOfWord[i] =
            unpack(groups[i / parts], sub, whole, i % parts, packed[i]);
      body(whole, quantsOfWord);
    }
  }
}

// Where in `unpacked` register `i` of a word is.
SmallVector<Value> IntegerProduct::unpackedAt(Value block, int64_t word,
                                              int64_t i) {
  return {block, b.index(word), b.index(i / parts),
          b.index(i % parts * 4 * lanes)};
}

void IntegerProduct::forEachWord(Value first, Value sub, ArrayRef<Group> groups,
                                 int64_t from, int64_t to, WordBody body) {
  if (!isShared)
    return forEachPackedWord(sub, groups, from, to, body);
  Value block = b.sub(sub, first);
  for (int64_t word = from; word != to; ++word) {
    SmallVector<Value> quants;
    for (size_t i = 0; i != groups.size() * parts; ++i)
      quants.push_back(vector::LoadOp::create(b, bytes, unpacked,
                                              unpackedAt(block, word, i)));
    body(word, quants);
  }
}

void IntegerProduct::prepare(const ProductBlock &block) {
  if (!isShared)
    return;
  SmallVector<Group> groups = groupsOf(block);
  Value first = b.divFloor(block.begin, kBlock);
  b.forLoop("sub", first, b.divFloor(block.end, kBlock), 1, [&](Value sub) {
    forEachPackedWord(sub, groups, 0, kWords, [&](int64_t word, ArrayRef<Value> quants) {
      for (auto [i, quant] : llvm::enumerate(quants)) {
        Value value = quant;
        if (usesTiles())
          value = arith::SubIOp::create(b, value,
                                        constant(bytes, int8_t(this->quants.zero)));
        vector::StoreOp::create(b, value, unpacked,
                                unpackedAt(b.sub(sub, first), word, i));
      }
    });
  });
}

Prefetch IntegerProduct::prefetch(ArrayRef<Group> groups, Value sub, bool isRow,
                                  const TileShare &share) {
  int64_t perPanel = storage.panel / kLanes;
  int64_t bytes = layout.bytes / perBlock; // about, of 32 inputs
  SmallVector<Stream> streams;
  for (const Group &group : groups)
    if (group.index % perPanel == 0)
      streams.push_back({group.view, group.panel});
  return Prefetch(b, streams, b.mul(sub, bytes), bytes,
                  kProductBlock / kBlock * bytes,
                  llvm::divideCeil(groups.back().index + 1, perPanel),
                  !isRow             ? Reader::Few
                  : quants.bits == 8 ? Reader::Row
                                     : Reader::NarrowRow,
                  share);
}

//===----------------------------------------------------------------------===//
// Products of bytes, exact in i32
//
// With a dot product of bytes: sum += quants * row, four by four. Without one,
// pairs of products are added in i16. Nibbles fit there eight times:
// 8 * 2 * 15 * 127 < 2^15. Of more bits a pair fits, of bytes one of magnitudes,
// 2 * 128 * 127, the row's bytes having taken the signs: these go to i32 one by one.
//===----------------------------------------------------------------------===//

// Minus the row's sum, times what was added to the quants so that none is below 0: a
// power of two, or 0.
Value IntegerProduct::zeroTimes(Value negatedSum) {
  if (!quants.zero)
    return constant(words, 0);
  int64_t shift = llvm::Log2_64(RoundedRow::kSumScale / quants.zero);
  return shift ? arith::ShRSIOp::create(b, negatedSum, constant(words, shift))
               : negatedSum;
}

Value IntegerProduct::startSum(Value negatedSum) {
  if (target.hasByteDot)
    return zeroTimes(negatedSum);
  return constant(quants.bits == 4 ? shorts : words, 0);
}

IntegerProduct::Factor IntegerProduct::factorOf(Value unsignedQuants) {
  if (keepsZero())
    return {unsignedQuants, Value()};
  Value quant =
      arith::XOrIOp::create(b, unsignedQuants, constant(bytes, -128));
  return {math::AbsIOp::create(b, quant), quant};
}

Value IntegerProduct::multiplyAdd(const Factor &factor, Value row, Value sum) {
  if (target.hasByteDot)
    return instruction("llvm.x86.avx512.vpdpbusd.256",
                       "llvm.x86.avx512.vpdpbusd.512", words,
                       {sum, factor.magnitude, row});
  if (factor.sign) {
    if (target.vectorBits == 256) {
      row = instruction("llvm.x86.avx2.psign.b", "", bytes, {row, factor.sign});
    } else {
      Value zero = constant(bytes, 0);
      Value isBelow = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                            factor.sign, zero);
      row = arith::SelectOp::create(
          b, isBelow, arith::SubIOp::create(b, zero, row), row);
    }
  }
  Value pairs = instruction("llvm.x86.avx2.pmadd.ub.sw",
                            "llvm.x86.avx512.pmaddubs.w.512", shorts,
                            {factor.magnitude, row});
  if (quants.bits == 4)
    return arith::AddIOp::create(b, sum, pairs);
  return arith::AddIOp::create(
      b, sum,
      instruction("llvm.x86.avx2.pmadd.wd", "llvm.x86.avx512.pmaddw.d.512",
                  words, {pairs, constant(shorts, 1)}));
}

Value IntegerProduct::finishSum(Value sum, Value negatedSum) {
  if (target.hasByteDot || quants.bits == 8)
    return sum;
  if (quants.bits == 4)
    sum = instruction("llvm.x86.avx2.pmadd.wd", "llvm.x86.avx512.pmaddw.d.512",
                      words, {sum, constant(shorts, 1)});
  return arith::AddIOp::create(b, sum, zeroTimes(negatedSum));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void IntegerProduct::addScaled(ArrayRef<Group> groups, ArrayRef<Value> rows,
                               Value sub, int64_t half,
                               function_ref<Value(size_t, size_t)> integer,
                               MutableArrayRef<Value> sums) {
  SmallVector<Value> scales = llvm::map_to_vector(
      groups, [&](const Group &group) { return loadScales(group, sub, half); });
  for (auto [r, row] : llvm::enumerate(rows)) {
    Value rowScale = rowNumber(row, sub, RoundedRow::Scale);
    for (size_t g = 0; g != groups.size(); ++g) {
      Value integers = integer(r, g);
      Value factor = arith::MulFOp::create(b, scales[g], rowScale);
      Value &sum = sums[placeOf(r, g, rows.size())];
      sum = b.fma(arith::SIToFPOp::create(b, b.lanes(), integers), factor, sum);
    }
  }
}

SmallVector<Value> IntegerProduct::sumRegisters(ArrayRef<Group> groups,
                                                ArrayRef<Value> rows, Value first,
                                                Value last,
                                                const TileShare &share) {
  auto splatWord = [&](Value word) -> Value {
    return vector::BroadcastOp::create(b, words, word);
  };
  SmallVector<Value> sums(groups.size() * rows.size(), b.splat(0.0));
  return b.forLoop("sub", first, last, 1, sums, [&](Value sub, ValueRange state) {
    Prefetch ahead = prefetch(groups, sub, rows.size() == 1, share);
    int64_t asked = 0;
    SmallVector<Value> next(state);
    size_t perRow = groups.size() * parts;
    for (int64_t half = 0; half != parts32; ++half) {
      SmallVector<Value> negatedSums;
      SmallVector<Value> integers; // [rows][groups * parts]
      for (Value row : rows) {
        Value sum = rowWord(row, sub, RoundedRow::NegatedSum);
        if (parts32 == 2) {
          Value low = rowWord(row, sub, RoundedRow::NegatedLowSum);
          sum = half ? b.sub(sum, low) : low;
        }
        negatedSums.push_back(splatWord(sum));
        integers.append(perRow, startSum(negatedSums.back()));
      }
      int64_t perHalf = kWords / parts32;
      forEachWord(first, sub, groups, half * perHalf, (half + 1) * perHalf,
                  [&](int64_t word, ArrayRef<Value> quants) {
        ahead.emit(asked++, target.spreadsRequests() ? kWords : 1);
        SmallVector<Factor> factors = llvm::map_to_vector(
            quants, [&](Value quant) { return factorOf(quant); });
        for (auto [r, row] : llvm::enumerate(rows)) {
          Value x = vector::BitCastOp::create(b, bytes,
                                              splatWord(rowWord(row, sub, word)));
          for (size_t part = 0; part != perRow; ++part) {
            Value &integer = integers[r * perRow + part];
            integer = multiplyAdd(factors[part], x, integer);
          }
        }
      });
      addScaled(groups, rows, sub, half, [&](size_t r, size_t g) {
        Value integer;
        for (int64_t part = 0; part != parts; ++part) {
          Value lanesOfPart =
              finishSum(integers[r * perRow + g * parts + part], negatedSums[r]);
          integer = part ? vector::ShuffleOp::create(
                               b, integer, lanesOfPart,
                               llvm::to_vector(llvm::seq<int64_t>(kLanes)))
                               .getResult()
                         : lanesOfPart;
        }
        return integer;
      }, next);
    }
    return next;
  });
}

// A tile has no way to a vector but by memory: while a block's integers are scaled,
// those of the next one are on their way there.
SmallVector<Value> IntegerProduct::sumTiles(ArrayRef<Group> groups,
                                            ArrayRef<Value> rows, Value first,
                                            Value last, const TileShare &share) {
  Type byte = b.getI8Type(), word = b.getI32Type();
  int64_t rowCount = rows.size(), count = groups.size();
  int64_t perHalf = kWords / parts32;
  Value integers = b.named(
      "integers",
      memref::AllocaOp::create(
          b, MemRefType::get({2, parts32 * count, rowCount, kLanes}, word),
          b.getI64IntegerAttr(64)));
  auto place = [&](Value sub, int64_t half, int64_t g, int64_t r) {
    return SmallVector<Value>{b.rem(b.sub(sub, first), 2),
                              b.index(half * count + g), b.index(r), b.index(0)};
  };
  // The rows follow each other from the first; those behind the last one are any
  // bytes of the buffer, whose sums nobody stores.
  int64_t rowStride = kernel.inputs / kBlock * RoundedRow::Words;
  auto multiply = [&](Value sub) {
    for (int64_t half = 0; half != parts32; ++half) {
      Value at = b.index(half * perHalf);
      Value x = loadTile(b, rowCount, 4 * perHalf, byte, kernel.rounded,
                         {rows.front(), sub, at}, rowStride);
      for (int64_t g = 0; g != count; ++g) {
        Value w = loadTile(b, perHalf, 4 * kLanes, byte, unpacked,
                           {b.sub(sub, first), at, b.index(g), b.index(0)},
                           count * 4 * kLanes);
        Value product = amx::TileMulIOp::create(
            b, amx::TileType::get({rowCount, kLanes}, word), x, w,
            zeroTile(b, rowCount, word));
        storeTile(b, product, integers, place(sub, half, g, 0), kLanes);
      }
    }
  };
  auto scale = [&](Value sub, MutableArrayRef<Value> sums) {
    for (int64_t half = 0; half != parts32; ++half)
      addScaled(groups, rows, sub, half, [&](size_t r, size_t g) -> Value {
        return vector::LoadOp::create(b, VectorType::get({kLanes}, word), integers,
                                      place(sub, half, g, r));
      }, sums);
  };
  multiply(first);
  Value end = b.sub(last, b.index(1));
  SmallVector<Value> sums(groups.size() * rows.size(), b.splat(0.0));
  sums = b.forLoop("sub", first, end, 1, sums, [&](Value sub, ValueRange state) {
    SmallVector<Value> next(state);
    prefetch(groups, sub, /*isRow=*/false, share).emit(0, 1);
    multiply(b.add(sub, 1));
    scale(sub, next);
    return next;
  });
  prefetch(groups, end, /*isRow=*/false, share).emit(0, 1);
  scale(end, sums);
  return sums;
}

SmallVector<Value> IntegerProduct::sum(const ProductBlock &block,
                                       ArrayRef<Value> rows,
                                       const TileShare &share) {
  SmallVector<Group> groups = groupsOf(block); // [matrices][groups]
  groupsOfMatrix = block.groups.size();
  Value first = b.divFloor(block.begin, kBlock);
  Value last = b.divFloor(block.end, kBlock);
  SmallVector<Value> sums =
      usesTiles() ? sumTiles(groups, rows, first, last, share)
                  : sumRegisters(groups, rows, first, last, share);
  if (!quants.hasMinimum)
    return sums;
  return b.forLoop("sub", first, last, 1, sums, [&](Value sub, ValueRange state) {
    SmallVector<Value> next(state);
    for (size_t g = 0; g != groups.size(); ++g) {
      Value minimum = loadMinima(groups[g], sub);
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value &sum = next[placeOf(r, g, rows.size())];
        sum = b.fma(minimum, rowNumber(row, sub, RoundedRow::ScaledSum), sum);
      }
    }
    return next;
  });
}

std::unique_ptr<Product> kvc::makeIntegerProduct(KernelBuilder &b,
                                                 const LinearKernel &kernel,
                                                 const LinearTarget &target,
                                                 const Matrix &like,
                                                 int64_t groups) {
  return std::make_unique<IntegerProduct>(b, kernel, target, like, groups);
}
