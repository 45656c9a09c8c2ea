// The block formats are those of the GGUF specification (ggml,
// docs/gguf.md) and of the ggml types that it names. A block is 32 elements of
// one row; d and m are f16; bytes are little-endian:
//
//   Q8_0  d, 32 x i8                    x[i] = d * q[i]
//   Q4_0  d, 16 bytes of two nibbles    x[i] = d * (q[i] - 8)
//   Q4_1  d, m, 16 bytes of nibbles     x[i] = d * q[i] + m
//
// In the 16 bytes the low nibbles are the elements 0 to 15 and the high
// nibbles the elements 16 to 31. Each product is exact in f32; the sum of Q4_1
// is rounded once, so that it is the same with and without a fused
// multiply-add.
#include "compiler/frontend/ElementType.h"
#include "llvm/ADT/bit.h"
#include <cstring>

namespace kvc {

static_assert(llvm::endianness::native == llvm::endianness::little,
              "tensors are read in the byte order of the file");

static constexpr int64_t blockElements = 32;

std::optional<ElementType> elementTypeNamed(llvm::StringRef name) {
  for (ElementType type :
       {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16,
        ElementType::Q8_0, ElementType::Q4_0, ElementType::Q4_1})
    if (infoOf(type).name == name)
      return type;
  return std::nullopt;
}

template <typename T> static T load(const char *data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

static float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) // infinity, NaN
    return llvm::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) // normal: exponents are biased by 15 and by 127
    return llvm::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  float subnormal = float(magnitude) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

static float bfloatToFloat(uint16_t value) {
  return llvm::bit_cast<float>(uint32_t(value) << 16);
}

template <typename Number>
static void readQ8_0(const char *data, int64_t count, Number *out) {
  for (; count > 0; count -= blockElements, data += 34, out += blockElements) {
    float d = halfToFloat(load<uint16_t>(data));
    const auto *q = reinterpret_cast<const int8_t *>(data + 2);
    for (int i = 0; i < blockElements; ++i)
      out[i] = d * float(q[i]);
  }
}

template <typename Number>
static void readQ4_0(const char *data, int64_t count, Number *out) {
  for (; count > 0; count -= blockElements, data += 18, out += blockElements) {
    float d = halfToFloat(load<uint16_t>(data));
    const auto *q = reinterpret_cast<const uint8_t *>(data + 2);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * float((q[i] & 15) - 8);
      out[i + 16] = d * float((q[i] >> 4) - 8);
    }
  }
}

template <typename Number>
static void readQ4_1(const char *data, int64_t count, Number *out) {
  for (; count > 0; count -= blockElements, data += 20, out += blockElements) {
    float d = halfToFloat(load<uint16_t>(data));
    float m = halfToFloat(load<uint16_t>(data + 2));
    const auto *q = reinterpret_cast<const uint8_t *>(data + 4);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * float(q[i] & 15) + m;
      out[i + 16] = d * float(q[i] >> 4) + m;
    }
  }
}

template <typename Number>
void dequantize(ElementType type, const char *data, int64_t count,
                Number *out) {
  switch (type) {
  case ElementType::F64:
    for (int64_t i = 0; i < count; ++i)
      out[i] = Number(load<double>(data + 8 * i));
    return;
  case ElementType::F32:
    for (int64_t i = 0; i < count; ++i)
      out[i] = load<float>(data + 4 * i);
    return;
  case ElementType::F16:
    for (int64_t i = 0; i < count; ++i)
      out[i] = halfToFloat(load<uint16_t>(data + 2 * i));
    return;
  case ElementType::BF16:
    for (int64_t i = 0; i < count; ++i)
      out[i] = bfloatToFloat(load<uint16_t>(data + 2 * i));
    return;
  case ElementType::Q8_0:
    return readQ8_0(data, count, out);
  case ElementType::Q4_0:
    return readQ4_0(data, count, out);
  case ElementType::Q4_1:
    return readQ4_1(data, count, out);
  }
}
template void dequantize(ElementType, const char *, int64_t, float *);
template void dequantize(ElementType, const char *, int64_t, double *);

} // namespace kvc
