// f16 and f32, to nearest, ties to even (IEEE 754).
#ifndef KVC_DIALECT_STORAGE_HALFFLOAT_H
#define KVC_DIALECT_STORAGE_HALFFLOAT_H

#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstdint>

namespace kvc {

// Half way between the largest f16 and the next power of two.
inline constexpr float kF16Limit = 65520.0f;

inline float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) // infinity, NaN
    return llvm::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) // normal: exponents are biased by 15 and by 127
    return llvm::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  float subnormal = float(magnitude) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

inline uint16_t floatToHalf(float x) {
  uint32_t bits = llvm::bit_cast<uint32_t>(x);
  uint16_t sign = uint16_t(bits >> 16) & 0x8000;
  float magnitude = std::fabs(x);
  if (std::isnan(x))
    return sign | 0x7e00;
  if (magnitude >= kF16Limit)
    return sign | 0x7c00;
  // Below 2^-14 the step is 2^-24: a float sum with 2^-1 rounds at that place.
  if (magnitude < 0x1p-14f)
    return sign | uint16_t(llvm::bit_cast<uint32_t>(magnitude + 0.5f) -
                           llvm::bit_cast<uint32_t>(0.5f));
  uint32_t rounded = (bits & 0x7fffffff) + 0xfff + ((bits >> 13) & 1);
  return sign | uint16_t((rounded - (112u << 23)) >> 13);
}

} // namespace kvc

#endif // KVC_DIALECT_STORAGE_HALFFLOAT_H
