// The storages of blocks of 32 elements, as the GGUF specification (ggml,
// docs/gguf.md) and the ggml types that it names have them. d and m are f16;
// bytes are little-endian:
//
//   q8_0  d, 32 x i8                    x[i] = d * q[i]
//   q4_0  d, 16 bytes of two nibbles    x[i] = d * (q[i] - 8)
//   q4_1  d, m, 16 bytes of nibbles     x[i] = d * q[i] + m
//
// In the 16 bytes the low nibbles are the elements 0 to 15 and the high nibbles
// the elements 16 to 31. Each product is exact in f32; the sum of q4_1 is rounded
// once, so that it is the same with and without a fused multiply-add.
#include "dialect/storage/HalfFloat.h"
#include "dialect/storage/Storage.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <cstring>

using namespace kvc;

static_assert(llvm::endianness::native == llvm::endianness::little,
              "weights are read in the byte order of the file");

namespace {

constexpr int64_t kBlock = 32;

// A block apart: element i is scale * (quants[i] - zero) + minimum.
struct Block {
  uint16_t scale, minimum; // f16
  int8_t quants[kBlock];
};

// The scale, and perhaps the minimum, that bring numbers into the quants' range.
struct Range {
  float scale, minimum;
};

class BlockStorage final : public Storage {
public:
  BlockStorage(llvm::StringLiteral name, Quants quants, double limit)
      : Storage(name, kBlock,
                2 + (quants.hasMinimum ? 2 : 0) + kBlock * quants.bits / 8,
                quants, limit, 32) {}

  void decode(const char *data, int64_t count, float *out) const override {
    decodeAs(data, count, out);
  }
  void decode(const char *data, int64_t count, double *out) const override {
    decodeAs(data, count, out);
  }
  void encode(const float *numbers, int64_t count, char *out) const override {
    encodeAs(numbers, count, out);
  }
  void encode(const double *numbers, int64_t count, char *out) const override {
    encodeAs(numbers, count, out);
  }
  void pack(llvm::ArrayRef<const char *> rows, int64_t columns,
            char *out) const override;

private:
  int64_t header() const { return quants->hasMinimum ? 4 : 2; }
  Block read(const char *data) const;
  void write(const Block &block, char *data) const;
  template <typename Number> Range rangeOf(const Number *numbers) const;

  template <typename Number>
  void decodeAs(const char *data, int64_t count, Number *out) const {
    for (; count > 0; count -= kBlock, data += bytes, out += kBlock) {
      Block block = read(data);
      float d = halfToFloat(block.scale), m = halfToFloat(block.minimum);
      for (int64_t i = 0; i != kBlock; ++i)
        out[i] = d * float(block.quants[i] - int(quants->zero)) + m;
    }
  }
  template <typename Number>
  void encodeAs(const Number *numbers, int64_t count, char *out) const;
};

Block BlockStorage::read(const char *data) const {
  Block block;
  block.scale = llvm::support::endian::read16le(data);
  block.minimum =
      quants->hasMinimum ? llvm::support::endian::read16le(data + 2) : 0;
  data += header();
  if (quants->bits == 8) {
    std::memcpy(block.quants, data, kBlock);
    return block;
  }
  for (int64_t i = 0; i != kBlock / 2; ++i) {
    block.quants[i] = data[i] & 15;
    block.quants[i + kBlock / 2] = uint8_t(data[i]) >> 4;
  }
  return block;
}

void BlockStorage::write(const Block &block, char *data) const {
  llvm::support::endian::write16le(data, block.scale);
  if (quants->hasMinimum)
    llvm::support::endian::write16le(data + 2, block.minimum);
  data += header();
  if (quants->bits == 8) {
    std::memcpy(data, block.quants, kBlock);
    return;
  }
  for (int64_t i = 0; i != kBlock / 2; ++i)
    data[i] = char(block.quants[i] | block.quants[i + kBlock / 2] << 4);
}

// With a minimum the quants go from it to the largest; in nibbles without one
// the number of the largest magnitude is -8 scales, and in bytes it is 127.
template <typename Number>
Range BlockStorage::rangeOf(const Number *numbers) const {
  auto [least, most] = std::minmax_element(numbers, numbers + kBlock);
  if (quants->hasMinimum)
    return {float((*most - *least) / 15), float(*least)};
  Number largest = -*least > *most ? *least : *most;
  if (quants->bits == 8)
    return {float(std::fabs(largest) / 127), 0};
  return {float(largest / -8), 0};
}

template <typename Number>
void BlockStorage::encodeAs(const Number *numbers, int64_t count,
                            char *out) const {
  int lowest = quants->bits == 8 ? -127 : 0;
  int highest = quants->bits == 8 ? 127 : 15;
  for (; count > 0; count -= kBlock, numbers += kBlock, out += bytes) {
    Block block = {};
    // A number that isn't finite makes the block none.
    if (!std::all_of(numbers, numbers + kBlock,
                     [](Number x) { return std::isfinite(x); })) {
      block.scale = floatToHalf(NAN);
      write(block, out);
      continue;
    }
    Range range = rangeOf(numbers);
    block.scale = floatToHalf(range.scale);
    block.minimum = floatToHalf(range.minimum);
    // The quants make good for the rounding of scale and minimum.
    double d = halfToFloat(block.scale), m = halfToFloat(block.minimum);
    for (int64_t i = 0; i != kBlock; ++i) {
      double quant = d == 0 ? 0 : std::nearbyint((double(numbers[i]) - m) / d);
      quant += double(quants->zero);
      block.quants[i] =
          int8_t(std::clamp(quant, double(lowest), double(highest)));
    }
    write(block, out);
  }
}

void BlockStorage::pack(llvm::ArrayRef<const char *> rows, int64_t columns,
                        char *out) const {
  std::memset(out, 0, panel * rowBytes(columns));
  int64_t scaleBytes = 2 * panel;
  for (int64_t first = 0; first != columns; first += kBlock) {
    for (auto [lane, row] : llvm::enumerate(rows)) {
      Block block = read(row + rowBytes(first));
      char *at = out + 2 * lane;
      llvm::support::endian::write16le(at, block.scale);
      at += scaleBytes;
      if (quants->hasMinimum) {
        llvm::support::endian::write16le(at, block.minimum);
        at += scaleBytes;
      }
      at += 2 * lane; // four bytes a row from here on
      for (int64_t i = 0; i != kBlock; ++i) {
        int64_t group = i / 4, byte = i % 4;
        if (quants->bits == 8)
          at[group * 4 * panel + byte] = char(block.quants[i] ^ 0x80);
        else
          at[group % 4 * 4 * panel + byte] |=
              char(block.quants[i] << (group < 4 ? 0 : 4));
      }
    }
    out += panel * bytes;
  }
}

const BlockStorage q8_0("q8_0", {8, 0, false}, 127.0 * kF16Limit);
const BlockStorage q4_0("q4_0", {4, 8, false}, 8.0 * kF16Limit);
const BlockStorage q4_1("q4_1", {4, 0, true}, kF16Limit);

} // namespace

const Storage &kvc::q8_0Storage = q8_0;
const Storage &kvc::q4_0Storage = q4_0;
const Storage &kvc::q4_1Storage = q4_1;
