// The storages of blocks, as the GGUF specification (ggml, docs/gguf.md) and the
// ggml types that it names have them. d and m are f16, q are small integers, sc and
// mn integers of 32 or 16 elements; bytes are little-endian:
//
//   q8_0  d, 32 x i8                         x = d * q
//   q4_0  d, nibbles                         x = d * (q - 8)
//   q4_1  d, m, nibbles                      x = d * q + m
//   q5_0  d, u32 of fifth bits, nibbles      x = d * (q - 16)
//   q5_1  d, m, u32 of fifth bits, nibbles   x = d * q + m
//   q4_K  d, m, 8 x (sc, mn) of 6 bits, nibbles              x = d sc q - m mn
//   q5_K  the same, and fifth bits behind the 6 bits         x = d sc q - m mn
//   q6_K  nibbles, pairs of upper bits, 16 x i8 of sc, d     x = d sc (q - 32)
//
// Each product of a scale is exact in f32, as is q8_0's to q5_1's element before m
// is added; the rest is rounded to f32 once.
#include "dialect/storage/HalfFloat.h"
#include "dialect/storage/Storage.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <cstring>

using namespace kvc;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;
using llvm::support::endian::write16le;
using llvm::support::endian::write32le;

static_assert(llvm::endianness::native == llvm::endianness::little,
              "weights are read in the byte order of the file");

namespace {

constexpr int64_t kMostElements = 256;

// A block apart, whatever the format.
struct Block {
  uint16_t scale = 0, minimum = 0; // f16
  int8_t scales[16] = {};          // of sub-blocks
  uint8_t minima[16] = {};
  uint8_t quants[kMostElements];
};

class BlockStorage : public Storage {
public:
  BlockStorage(llvm::StringLiteral name, int64_t elements, int64_t bytes,
               Quants quants, double limit)
      : Storage(name, elements, bytes, quants, Rounding::Bytes, limit, 32) {}

  void decode(const char *data, int64_t count, float *out) const override {
    decodeAs(data, count, out);
  }
  void decode(const char *data, int64_t count, double *out) const override {
    decodeAs(data, count, out);
  }
  void encode(const float *, int64_t, char *) const override {
    llvm_unreachable("numbers are rounded to blocks of 32 alone");
  }
  void encode(const double *, int64_t, char *) const override {
    llvm_unreachable("numbers are rounded to blocks of 32 alone");
  }
  void pack(llvm::ArrayRef<const char *> rows, int64_t columns, int64_t panel,
            char *out) const override;

protected:
  virtual void read(const char *data, Block &block) const = 0;

private:
  template <typename Number>
  void decodeAs(const char *data, int64_t count, Number *out) const {
    Block block;
    for (; count > 0; count -= elements, data += bytes, out += elements) {
      read(data, block);
      float d = halfToFloat(block.scale), m = halfToFloat(block.minimum);
      for (int64_t i = 0; i != elements; ++i) {
        int64_t sub = i / quants->subBlock;
        float scale = quants->hasSubScales ? d * block.scales[sub] : d;
        float minimum = quants->hasSubScales ? -(m * block.minima[sub]) : m;
        // A product of two integers' worth of bits, then one sum.
        float product = scale * float(block.quants[i] - int(quants->zero));
        out[i] = quants->hasMinimum ? product + minimum : product;
      }
    }
  }
};

void BlockStorage::pack(llvm::ArrayRef<const char *> rows, int64_t columns,
                        int64_t panel, char *out) const {
  std::memset(out, 0, panel * packedRowBytes(columns));
  BlockLayout at = blockLayout(panel);
  Block block;
  for (int64_t first = 0; first != columns; first += elements, out += at.bytes) {
    for (auto [lane, row] : llvm::enumerate(rows)) {
      read(row + rowBytes(first), block);
      write16le(out + 2 * lane, block.scale);
      if (quants->hasMinimum)
        write16le(out + at.minimum + 2 * lane, block.minimum);
      for (int64_t sub = 0;
           quants->hasSubScales && sub != elements / quants->subBlock; ++sub) {
        out[at.scales + sub * panel + lane] = block.scales[sub];
        if (quants->hasMinimum)
          out[at.minima + sub * panel + lane] = char(block.minima[sub]);
      }
      for (int64_t i = 0; i != elements; ++i) {
        // Word `group` of 32 elements, and the byte in it.
        int64_t group = i % 32 / 4, byte = i % 4;
        char *quantsAt = out + at.quants + i / 32 * at.quantsStride;
        uint8_t q = block.quants[i];
        if (quants->bits == 8) {
          quantsAt[(group * panel + lane) * 4 + byte] = char(q);
          continue;
        }
        quantsAt[(group % 4 * panel + lane) * 4 + byte] |=
            char((q & 15) << (group / 4 * 4));
        char *upper = quantsAt + at.upper + 4 * lane + byte;
        if (quants->bits == 5)
          *upper |= char((q >> 4) << group);
        else if (quants->bits == 6)
          upper[group / 4 * 4 * panel] |= char((q >> 4) << (group % 4 * 2));
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Blocks of 32, to which numbers can be rounded, too
//===----------------------------------------------------------------------===//

class SmallBlockStorage final : public BlockStorage {
public:
  SmallBlockStorage(llvm::StringLiteral name, Quants quants, double limit)
      : BlockStorage(name, 32, 2 + (quants.hasMinimum ? 2 : 0) + 4 * quants.bits,
                     quants, limit) {}

  void encode(const float *numbers, int64_t count, char *out) const override {
    encodeAs(numbers, count, out);
  }
  void encode(const double *numbers, int64_t count, char *out) const override {
    encodeAs(numbers, count, out);
  }

protected:
  void read(const char *data, Block &block) const override;

private:
  void write(const Block &block, char *data) const;
  template <typename Number>
  void encodeAs(const Number *numbers, int64_t count, char *out) const;
};

void SmallBlockStorage::read(const char *data, Block &block) const {
  block.scale = read16le(data);
  data += 2;
  if (quants->hasMinimum) {
    block.minimum = read16le(data);
    data += 2;
  }
  if (quants->bits == 8) {
    // Signed bytes become such from 0 on.
    for (int64_t i = 0; i != 32; ++i)
      block.quants[i] = uint8_t(data[i]) ^ 0x80;
    return;
  }
  uint32_t fifth = 0;
  if (quants->bits == 5) {
    fifth = read32le(data);
    data += 4;
  }
  for (int64_t i = 0; i != 16; ++i) {
    block.quants[i] = (data[i] & 15) | (fifth >> i & 1) << 4;
    block.quants[i + 16] = uint8_t(data[i]) >> 4 | (fifth >> (i + 16) & 1) << 4;
  }
}

void SmallBlockStorage::write(const Block &block, char *data) const {
  write16le(data, block.scale);
  data += 2;
  if (quants->hasMinimum) {
    write16le(data, block.minimum);
    data += 2;
  }
  if (quants->bits == 8) {
    for (int64_t i = 0; i != 32; ++i)
      data[i] = char(block.quants[i] ^ 0x80);
    return;
  }
  uint32_t fifth = 0;
  for (int64_t i = 0; i != 32; ++i)
    fifth |= uint32_t(block.quants[i] >> 4) << i;
  if (quants->bits == 5) {
    write32le(data, fifth);
    data += 4;
  }
  for (int64_t i = 0; i != 16; ++i)
    data[i] = char((block.quants[i] & 15) | block.quants[i + 16] << 4);
}

// With a minimum the quants go from it to the largest; in bytes without one the
// number of the largest magnitude is 127 scales or -127, in fewer bits it is as many
// scales below 0 as the quants reach.
template <typename Number>
void SmallBlockStorage::encodeAs(const Number *numbers, int64_t count,
                                 char *out) const {
  int zero = int(quants->zero), most = (1 << quants->bits) - 1;
  int least = quants->bits == 8 ? 1 : 0;
  for (; count > 0; count -= 32, numbers += 32, out += bytes) {
    Block block = {};
    // A number that isn't finite makes the block none.
    if (!std::all_of(numbers, numbers + 32,
                     [](Number x) { return std::isfinite(x); })) {
      block.scale = floatToHalf(NAN);
      write(block, out);
      continue;
    }
    auto [low, high] = std::minmax_element(numbers, numbers + 32);
    Number largest = -*low > *high ? *low : *high;
    float scale = float(quants->hasMinimum ? (*high - *low) / most
                        : quants->bits == 8 ? std::fabs(largest) / 127
                                            : largest / -zero);
    block.scale = floatToHalf(scale);
    block.minimum = floatToHalf(quants->hasMinimum ? float(*low) : 0.0f);
    // The quants make good for the rounding of scale and minimum.
    double d = halfToFloat(block.scale), m = halfToFloat(block.minimum);
    for (int64_t i = 0; i != 32; ++i) {
      double quant = d == 0 ? 0 : std::nearbyint((double(numbers[i]) - m) / d);
      block.quants[i] =
          uint8_t(std::clamp(quant + zero, double(least), double(most)));
    }
    write(block, out);
  }
}

//===----------------------------------------------------------------------===//
// Blocks of 256
//===----------------------------------------------------------------------===//

// Eight pairs of a scale and a minimum, 6 bits each, in 12 bytes: four of each,
// and in their upper bits and four bytes more the other four.
void readPairs(const uint8_t *data, Block &block) {
  for (int64_t i = 0; i != 4; ++i) {
    block.scales[i] = data[i] & 63;
    block.minima[i] = data[i + 4] & 63;
    block.scales[i + 4] = int8_t((data[i + 8] & 15) | data[i] >> 6 << 4);
    block.minima[i + 4] = data[i + 8] >> 4 | data[i + 4] >> 6 << 4;
  }
}

// q4_K and q5_K: in each 32 bytes the low nibbles are 32 elements, the high ones
// the next 32; bit j of the 32 bytes of fifth bits is of the j-th 32 elements.
class PairBlockStorage final : public BlockStorage {
public:
  using BlockStorage::BlockStorage;

protected:
  void read(const char *data, Block &block) const override {
    block.scale = read16le(data);
    block.minimum = read16le(data + 2);
    auto *at = reinterpret_cast<const uint8_t *>(data) + 4;
    readPairs(at, block);
    at += 12;
    const uint8_t *fifth = quants->bits == 5 ? at : nullptr;
    at += fifth ? 32 : 0;
    for (int64_t i = 0; i != 256; ++i) {
      int64_t part = i / 32;
      uint8_t pair = at[part / 2 * 32 + i % 32];
      block.quants[i] = part % 2 ? pair >> 4 : pair & 15;
      if (fifth)
        block.quants[i] |= (fifth[i % 32] >> part & 1) << 4;
    }
  }
};

// q6_K: in each half of 128 elements the low nibbles of 64 bytes are the first 64
// elements, the high ones the others; pair j of bits of its 32 bytes is of the j-th
// 32 elements.
class SixBitStorage final : public BlockStorage {
public:
  using BlockStorage::BlockStorage;

protected:
  void read(const char *data, Block &block) const override {
    auto *low = reinterpret_cast<const uint8_t *>(data);
    const uint8_t *upper = low + 128;
    std::memcpy(block.scales, upper + 64, 16);
    block.scale = read16le(data + 208);
    block.minimum = 0;
    for (int64_t i = 0; i != 256; ++i) {
      int64_t half = i / 128, part = i % 128 / 32;
      uint8_t pair = low[half * 64 + i % 64];
      block.quants[i] = (part / 2 ? pair >> 4 : pair & 15) |
                        (upper[half * 32 + i % 32] >> (2 * part) & 3) << 4;
    }
  }
};

const SmallBlockStorage q8_0("q8_0", {8, 128, false}, 127.0 * kF16Limit);
const SmallBlockStorage q4_0("q4_0", {4, 8, false}, 8.0 * kF16Limit);
const SmallBlockStorage q4_1("q4_1", {4, 0, true}, kF16Limit);
const SmallBlockStorage q5_0("q5_0", {5, 16, false}, 16.0 * kF16Limit);
const SmallBlockStorage q5_1("q5_1", {5, 0, true}, kF16Limit);
// No number is rounded to these.
const PairBlockStorage q4_K("q4_k", 256, 144, {4, 0, true, 32, true}, HUGE_VAL);
const PairBlockStorage q5_K("q5_k", 256, 176, {5, 0, true, 32, true}, HUGE_VAL);
const SixBitStorage q6_K("q6_k", 256, 210, {6, 32, false, 16, true}, HUGE_VAL);

} // namespace

const Storage &kvc::q8_0Storage = q8_0;
const Storage &kvc::q4_0Storage = q4_0;
const Storage &kvc::q4_1Storage = q4_1;
const Storage &kvc::q5_0Storage = q5_0;
const Storage &kvc::q5_1Storage = q5_1;
const Storage &kvc::q4_kStorage = q4_K;
const Storage &kvc::q5_kStorage = q5_K;
const Storage &kvc::q6_kStorage = q6_K;
