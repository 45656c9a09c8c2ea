// f32 to 16-bit floats, to nearest, ties to even (IEEE 754), for the packer.
#ifndef KVC_COMPILER_OUTPUT_NARROWFLOATS_H
#define KVC_COMPILER_OUTPUT_NARROWFLOATS_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace kvc {

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
  // 65520 is half way between the largest half and the next power of two.
  if (magnitude >= 65520.0f)
    return sign | 0x7c00;
  // Below 2^-14 the step is 2^-24: a float sum with 2^-1 rounds at that place.
  if (magnitude < 0x1p-14f)
    return sign | uint16_t(bitsOf(magnitude + 0.5f) - bitsOf(0.5f));
  uint32_t rounded = (bits & 0x7fffffff) + 0xfff + ((bits >> 13) & 1);
  return sign | uint16_t((rounded - (112u << 23)) >> 13);
}

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_NARROWFLOATS_H
