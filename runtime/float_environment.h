// The floating-point environment that generated code is written for.
#ifndef KVC_RUNTIME_FLOAT_ENVIRONMENT_H
#define KVC_RUNTIME_FLOAT_ENVIRONMENT_H

#include "kvc/abi.h"

#include <stdint.h>

namespace kvc {

// While it lives: rounding to nearest even, no traps, and denormals kept, or zero in
// the class tiles, whatever the application has set for its thread. Without this,
// "the same bits" would depend on who calls.
class FloatEnvironment {
#if defined(__x86_64__)
  uint32_t saved = __builtin_ia32_stmxcsr();
  static void set(uint32_t state) { __builtin_ia32_ldmxcsr(state); }
  static constexpr uint32_t standard = 0x1f80; // MXCSR at reset
  static constexpr uint32_t zeros = 0x9fc0;    // with FTZ and DAZ
#elif defined(__aarch64__)
  uint64_t saved = get();
  static uint64_t get() {
    uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void set(uint64_t state) { asm volatile("msr fpcr, %0" ::"r"(state)); }
  static constexpr uint64_t standard = 0;
  static constexpr uint64_t zeros = 1 << 24; // FZ
#else
#error "expected x86-64 or aarch64"
#endif

public:
  explicit FloatEnvironment(int64_t numerics = KVC_NUMERICS_FMA) {
    set(numerics == KVC_NUMERICS_TILES ? zeros : standard);
  }
  ~FloatEnvironment() { set(saved); }
  FloatEnvironment(const FloatEnvironment &) = delete;
  FloatEnvironment &operator=(const FloatEnvironment &) = delete;
};

} // namespace kvc

#endif
