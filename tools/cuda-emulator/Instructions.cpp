// What each instruction computes, number by number: IEEE 754 with rounding to nearest
// even, which is the C++ of a machine with SSE2, compiled without contraction.
#include "Warp.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

using namespace emulator;

namespace {

template <typename T> T read(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <typename T> uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

template <auto function, typename R, typename... A, size_t... N>
void apply(R (*)(A...), Warp &warp, const Instruction &i, uint32_t mask,
           std::index_sequence<N...>) {
  uint64_t *to = warp.at(i.written[0]);
  const uint64_t *from[] = {warp.at(i.read[N])...};
  if (mask == ~0u) {
    for (int lane = 0; lane != lanesOfWarp; ++lane)
      to[lane] = bitsOf<R>(function(read<A>(from[N][lane])...));
    return;
  }
  for (int lane = 0; lane != lanesOfWarp; ++lane)
    if (has(mask, lane))
      to[lane] = bitsOf<R>(function(read<A>(from[N][lane])...));
}

template <typename R, typename... A> constexpr size_t arity(R (*)(A...)) {
  return sizeof...(A);
}

template <auto function>
void each(Warp &warp, const Instruction &i, uint32_t mask) {
  apply<function>(function, warp, i, mask,
                  std::make_index_sequence<arity(function)>());
}

// Integers wrap around, with or without a sign.
template <typename T, bool = std::is_integral_v<T>> struct Wrapping {
  using type = T;
};
template <typename T> struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};
template <typename T> using Wrap = typename Wrapping<T>::type;
template <typename T> T sum(T a, T b) { return T(Wrap<T>(a) + Wrap<T>(b)); }
template <typename T> T difference(T a, T b) { return T(Wrap<T>(a) - Wrap<T>(b)); }
template <typename T> T product(T a, T b) { return T(Wrap<T>(a) * Wrap<T>(b)); }
template <typename T> T quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) // by 0 it is unspecified
    return b == 0                                     ? T(-1)
           : std::is_signed_v<T> && b == T(-1) ? T(Wrap<T>(0) - Wrap<T>(a))
                                               : T(a / b);
  else
    return a / b;
}
template <typename T> T fused(T a, T b, T c) { return std::fma(a, b, c); }
template <typename T> T root(T a) { return std::sqrt(a); }
template <typename T> T reciprocal(T a) { return T(1) / a; }
template <typename T> T least(T a, T b) { return b < a ? b : a; }
template <typename T> T most(T a, T b) { return a < b ? b : a; }
template <typename T> T both(T a, T b) { return a & b; }
template <typename T> T either(T a, T b) { return a | b; }
template <typename T> T differing(T a, T b) { return a ^ b; }
template <typename T> T moved(T a) { return a; }
template <typename T> T chosen(T a, T b, uint8_t p) { return p ? a : b; }
template <typename T> T sumOfProduct(T a, T b, T c) { return sum(product(a, b), c); }
template <typename T> bool isEqual(T a, T b) { return a == b; }
template <typename T> bool isOther(T a, T b) { return a != b; }
template <typename T> bool isLess(T a, T b) { return a < b; }
template <typename T> bool isAtMost(T a, T b) { return a <= b; }
template <typename T> bool isMore(T a, T b) { return a > b; }
template <typename T> bool isAtLeast(T a, T b) { return a >= b; }
template <typename T> bool isUnordered(T a, T b) { return !(a == a && b == b); }
template <typename To, typename From> To converted(From a) { return To(a); }
template <typename Wide, typename T> Wide wideProduct(T a, T b) {
  return Wide(a) * Wide(b);
}
template <typename Wide, typename T> T upperProduct(T a, T b) {
  return T((Wide(a) * Wide(b)) >> (8 * sizeof(T)));
}
// A shift by the width and more gives 0, or the sign.
template <typename T> T shiftedLeft(T a, uint32_t n) {
  return n < 8 * sizeof(T) ? a << n : 0;
}
template <typename T> T shiftedRight(T a, uint32_t n) {
  if (n < 8 * sizeof(T))
    return a >> n;
  return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
}
// Of signs as bits: NaN, too.
float negated(float a) { return read<float>(bitsOf(a) ^ 0x80000000u); }
double negated(double a) { return read<double>(bitsOf(a) ^ uint64_t(1) << 63); }
float negatedF32(float a) { return negated(a); }
double negatedF64(double a) { return negated(a); }
float magnitudeF32(float a) { return read<float>(bitsOf(a) & 0x7fffffffu); }
double magnitudeF64(double a) { return read<double>(bitsOf(a) & ~(uint64_t(1) << 63)); }
template <typename T> T opposite(T a) { return difference(T(0), a); }
template <typename T> T inverted(T a) { return ~a; }
uint8_t invertedPredicate(uint8_t a) { return !a; }

template <typename T> T field(T a, uint32_t at, uint32_t count) {
  constexpr uint32_t width = 8 * sizeof(T);
  at &= 255, count &= 255;
  T shifted = at < width ? a >> at : 0;
  return count < width ? shifted & ((T(1) << count) - 1) : shifted;
}
// Four bytes without a sign by four with one.
int32_t dotOfBytes(uint32_t a, uint32_t b, int32_t before) {
  int32_t dot = 0;
  for (int shift = 0; shift != 32; shift += 8)
    dot += int32_t(a >> shift & 255) * int8_t(b >> shift);
  return sum(dot, before);
}
float rounded(float a) { return std::nearbyint(a); }
// What isn't a number is 0, and what is too large the last one.
int32_t truncated(float a) {
  if (std::isnan(a))
    return 0;
  return a >= 0x1p31f ? INT32_MAX : a < -0x1p31f ? INT32_MIN : int32_t(a);
}

float fromHalf(uint16_t bits) { return float(read<_Float16>(bits)); }
// Every NaN is one there.
uint16_t toHalf(float a) {
  return std::isnan(a) ? uint16_t(0x7fff) : uint16_t(bitsOf(_Float16(a)));
}

using Table = std::unordered_map<std::string_view, Handler>;

const Table &table() {
  static const Table handlers = {
#define INTEGERS(suffix, type)                                                         \
  {"add." suffix, each<sum<type>>}, {"sub." suffix, each<difference<type>>},           \
      {"min." suffix, each<least<type>>}, {"max." suffix, each<most<type>>},           \
      {"mul.lo." suffix, each<product<type>>},                                         \
      {"mad.lo." suffix, each<sumOfProduct<type>>},                                    \
      {"shr." suffix, each<shiftedRight<type>>}, {"div." suffix, each<quotient<type>>},\
      {"setp.eq." suffix, each<isEqual<type>>}, {"setp.ne." suffix, each<isOther<type>>},\
      {"setp.lt." suffix, each<isLess<type>>}, {"setp.le." suffix, each<isAtMost<type>>},\
      {"setp.gt." suffix, each<isMore<type>>}, {"setp.ge." suffix, each<isAtLeast<type>>}
      INTEGERS("s32", int32_t), INTEGERS("u32", uint32_t), INTEGERS("s64", int64_t),
      INTEGERS("u64", uint64_t),
#undef INTEGERS
#define BITS(suffix, type)                                                             \
  {"and." suffix, each<both<type>>}, {"or." suffix, each<either<type>>},               \
      {"xor." suffix, each<differing<type>>}, {"not." suffix, each<inverted<type>>},   \
      {"shl." suffix, each<shiftedLeft<type>>}, {"mov." suffix, each<moved<type>>},    \
      {"selp." suffix, each<chosen<type>>}, {"setp.eq." suffix, each<isEqual<type>>},  \
      {"setp.ne." suffix, each<isOther<type>>}
      BITS("b16", uint16_t), BITS("b32", uint32_t), BITS("b64", uint64_t),
#undef BITS
#define FLOATS(suffix, type)                                                           \
  {"add.rn." suffix, each<sum<type>>}, {"sub.rn." suffix, each<difference<type>>},     \
      {"mul.rn." suffix, each<product<type>>}, {"div.rn." suffix, each<quotient<type>>},\
      {"fma.rn." suffix, each<fused<type>>}, {"sqrt.rn." suffix, each<root<type>>},    \
      {"rcp.rn." suffix, each<reciprocal<type>>}, {"selp." suffix, each<chosen<type>>},\
      {"mov." suffix, each<moved<type>>},                                              \
      {"setp.eq." suffix, each<isEqual<type>>}, {"setp.lt." suffix, each<isLess<type>>},\
      {"setp.le." suffix, each<isAtMost<type>>}, {"setp.gt." suffix, each<isMore<type>>},\
      {"setp.ge." suffix, each<isAtLeast<type>>},                                      \
      {"setp.nan." suffix, each<isUnordered<type>>}
      FLOATS("f32", float), FLOATS("f64", double),
#undef FLOATS
      {"neg.f32", each<negatedF32>},
      {"neg.f64", each<negatedF64>},
      {"abs.f32", each<magnitudeF32>},
      {"abs.f64", each<magnitudeF64>},
      {"neg.s32", each<opposite<int32_t>>},
      {"neg.s64", each<opposite<int64_t>>},
      {"mov.u32", each<moved<uint32_t>>},
      {"mov.u64", each<moved<uint64_t>>},
      {"mov.pred", each<moved<uint8_t>>},
      {"and.pred", each<both<uint8_t>>},
      {"or.pred", each<either<uint8_t>>},
      {"xor.pred", each<differing<uint8_t>>},
      {"not.pred", each<invertedPredicate>},
      {"cvta.to.global.u64", each<moved<uint64_t>>},
      {"mul.wide.s32", each<wideProduct<int64_t, int32_t>>},
      {"mul.wide.u32", each<wideProduct<uint64_t, uint32_t>>},
      {"mul.hi.u32", each<upperProduct<uint64_t, uint32_t>>},
      {"mul.hi.s32", each<upperProduct<int64_t, int32_t>>},
      {"mul.hi.u64", each<upperProduct<unsigned __int128, uint64_t>>},
      {"mul.hi.s64", each<upperProduct<__int128, int64_t>>},
      {"bfe.u32", each<field<uint32_t>>},
      {"bfe.u64", each<field<uint64_t>>},
      {"dp4a.u32.s32", each<dotOfBytes>},
      {"shr.u16", each<shiftedRight<uint16_t>>},
      {"shr.s16", each<shiftedRight<int16_t>>},
      {"cvt.rni.f32.f32", each<rounded>},
      {"cvt.rzi.s32.f32", each<truncated>},
      {"cvt.u64.u32", each<converted<uint64_t, uint32_t>>},
      {"cvt.u32.u64", each<converted<uint32_t, uint64_t>>},
      {"cvt.s64.s32", each<converted<int64_t, int32_t>>},
      {"cvt.u32.u16", each<converted<uint32_t, uint16_t>>},
      {"cvt.u16.u32", each<converted<uint16_t, uint32_t>>},
      {"cvt.rn.f64.s64", each<converted<double, int64_t>>},
      {"cvt.rn.f32.s32", each<converted<float, int32_t>>},
      {"cvt.rn.f32.u32", each<converted<float, uint32_t>>},
      {"cvt.rn.f32.s16", each<converted<float, int16_t>>},
      {"cvt.rn.f32.u16", each<converted<float, uint16_t>>},
      {"cvt.f64.f32", each<converted<double, float>>},
      {"cvt.rn.f32.f64", each<converted<float, double>>},
      {"cvt.f32.f16", each<fromHalf>},
      {"cvt.rn.f16.f32", each<toHalf>},
  };
  return handlers;
}

template <typename Half>
void split(Warp &warp, const Instruction &i, uint32_t mask) {
  uint64_t *low = warp.at(i.written[0]), *high = warp.at(i.written[1]);
  const uint64_t *from = warp.at(i.read[0]);
  for (int lane = 0; lane != lanesOfWarp; ++lane)
    if (has(mask, lane)) {
      uint64_t whole = from[lane];
      low[lane] = Half(whole);
      high[lane] = Half(whole >> (8 * sizeof(Half)));
    }
}
template <typename Half>
void join(Warp &warp, const Instruction &i, uint32_t mask) {
  uint64_t *to = warp.at(i.written[0]);
  const uint64_t *low = warp.at(i.read[0]), *high = warp.at(i.read[1]);
  for (int lane = 0; lane != lanesOfWarp; ++lane)
    if (has(mask, lane))
      to[lane] = uint64_t(Half(low[lane])) |
                 uint64_t(Half(high[lane])) << (8 * sizeof(Half));
}

} // namespace

Handler emulator::splitter(std::string_view name) {
  return name == "mov.b64" ? split<uint32_t> : split<uint16_t>;
}
Handler emulator::joiner(std::string_view name) {
  return name == "mov.b64" ? join<uint32_t> : join<uint16_t>;
}

Handler emulator::findHandler(std::string_view name) {
  auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}
