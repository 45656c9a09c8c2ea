// The storages of floats: each element by itself.
#include "dialect/storage/HalfFloat.h"
#include "dialect/storage/Storage.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace kvc;

namespace {

// An element's bits, and how numbers are rounded to them.
struct F64 {
  using Bits = double;
  static double toNumber(double bits) { return bits; }
  static double fromNumber(double x) { return x; }
};
struct F32 {
  using Bits = float;
  static float toNumber(float bits) { return bits; }
  static float fromNumber(float x) { return x; }
};
struct F16 {
  using Bits = uint16_t;
  static float toNumber(uint16_t bits) { return halfToFloat(bits); }
  static uint16_t fromNumber(float x) { return floatToHalf(x); }
};
// bfloat16: the upper half of an f32.
struct BF16 {
  using Bits = uint16_t;
  static float toNumber(uint16_t bits) {
    return llvm::bit_cast<float>(uint32_t(bits) << 16);
  }
  static uint16_t fromNumber(float x) {
    auto bits = llvm::bit_cast<uint32_t>(x);
    if (std::isnan(x))
      return uint16_t(bits >> 16) | 0x40;
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

template <typename Element> class FloatStorage final : public Storage {
  using Bits = typename Element::Bits;

public:
  FloatStorage(llvm::StringLiteral name, double limit,
               Rounding rounding = Rounding::None)
      : Storage(name, 1, sizeof(Bits), std::nullopt, rounding, limit, 16) {}

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

  void pack(llvm::ArrayRef<const char *> rows, int64_t columns, int64_t panel,
            char *out) const override {
    std::memset(out, 0, panel * rowBytes(columns));
    for (auto [lane, row] : llvm::enumerate(rows))
      for (int64_t i = 0; i != columns; ++i)
        std::memcpy(out + (i * panel + lane) * sizeof(Bits),
                    row + i * sizeof(Bits), sizeof(Bits));
  }

private:
  template <typename Number>
  void decodeAs(const char *data, int64_t count, Number *out) const {
    for (int64_t i = 0; i != count; ++i) {
      Bits bits;
      std::memcpy(&bits, data + i * sizeof bits, sizeof bits);
      out[i] = Number(Element::toNumber(bits));
    }
  }
  template <typename Number>
  void encodeAs(const Number *numbers, int64_t count, char *out) const {
    for (int64_t i = 0; i != count; ++i) {
      Bits bits = Element::fromNumber(numbers[i]);
      std::memcpy(out + i * sizeof bits, &bits, sizeof bits);
    }
  }
};

const FloatStorage<F64> f64("f64", HUGE_VAL);
// Half way between the largest number and the next power of two.
const FloatStorage<F32> f32("f32", 0x1.ffffffp127);
const FloatStorage<F16> f16("f16", kF16Limit);
const FloatStorage<BF16> bf16("bf16", 0x1.ffp127, Rounding::BF16);

} // namespace

const Storage &kvc::f64Storage = f64;
const Storage &kvc::f32Storage = f32;
const Storage &kvc::f16Storage = f16;
const Storage &kvc::bf16Storage = bf16;
