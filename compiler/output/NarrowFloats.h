// Numbers to the packed types, to nearest, ties to even (IEEE 754).
#ifndef KVC_COMPILER_OUTPUT_NARROWFLOATS_H
#define KVC_COMPILER_OUTPUT_NARROWFLOATS_H

#include "compiler/frontend/ElementType.h"
#include "llvm/ADT/ArrayRef.h"
#include <cmath>
#include <cstdint>
#include <cstring>

namespace kvc {

// Half way between the largest number and the next power of two: the smallest
// magnitude that is rounded to infinity.
inline constexpr float kF16Overflow = 65520.0f;
inline constexpr float kBF16Overflow = 0x1.ffp127f;

// Whether each of `numbers`, rounded to `type`, is finite.
template <typename Number>
bool fit(ElementType type, llvm::ArrayRef<Number> numbers) {
  // One branch for all of them, so that they are compared side by side.
  auto areBelow = [&](auto limit) {
    bool areAll = true;
    for (Number number : numbers)
      areAll &= std::fabs(decltype(limit)(number)) < limit;
    return areAll;
  };
  switch (type) {
  case ElementType::F64:
    return areBelow(HUGE_VAL);
  case ElementType::F32:
    return areBelow(HUGE_VALF);
  case ElementType::F16:
    return areBelow(kF16Overflow);
  case ElementType::BF16:
    return areBelow(kBF16Overflow);
  case ElementType::Q8_0:
  case ElementType::Q4_0:
  case ElementType::Q4_1:
    break;
  }
  llvm_unreachable("numbers are not packed in blocks");
}

inline uint32_t bitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// bfloat16: the upper half of an f32.
inline uint16_t toBF16(float x) {
  uint32_t bits = bitsOf(x);
  if (std::isnan(x))
    return uint16_t(bits >> 16) | 0x40;
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// IEEE half precision: 5 bits of exponent, 10 of mantissa.
inline uint16_t toF16(float x) {
  uint32_t bits = bitsOf(x);
  uint16_t sign = uint16_t(bits >> 16) & 0x8000;
  float magnitude = std::fabs(x);
  if (std::isnan(x))
    return sign | 0x7e00;
  if (magnitude >= kF16Overflow)
    return sign | 0x7c00;
  // Below 2^-14 the step is 2^-24: a float sum with 2^-1 rounds at that place.
  if (magnitude < 0x1p-14f)
    return sign | uint16_t(bitsOf(magnitude + 0.5f) - bitsOf(0.5f));
  uint32_t rounded = (bits & 0x7fffffff) + 0xfff + ((bits >> 13) & 1);
  return sign | uint16_t((rounded - (112u << 23)) >> 13);
}

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_NARROWFLOATS_H
