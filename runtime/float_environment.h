// The floating-point environment that generated code is written for.
#ifndef KVC_RUNTIME_FLOAT_ENVIRONMENT_H
#define KVC_RUNTIME_FLOAT_ENVIRONMENT_H

#include <stdint.h>

namespace kvc {

// While it lives: rounding to nearest even, denormals kept, no traps, whatever
// the application has set for its thread. Without this, "the same bits" would
// depend on who calls.
class FloatEnvironment {
#if defined(__x86_64__)
  uint32_t saved = __builtin_ia32_stmxcsr();
  static void set(uint32_t state) { __builtin_ia32_ldmxcsr(state); }
  static constexpr uint32_t standard = 0x1f80; // MXCSR at reset
#elif defined(__aarch64__)
  uint64_t saved = get();
  static uint64_t get() {
    uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void set(uint64_t state) { asm volatile("msr fpcr, %0" ::"r"(state)); }
  static constexpr uint64_t standard = 0;
#else
#error "expected x86-64 or aarch64"
#endif

public:
  FloatEnvironment() { set(standard); }
  ~FloatEnvironment() { set(saved); }
  FloatEnvironment(const FloatEnvironment &) = delete;
  FloatEnvironment &operator=(const FloatEnvironment &) = delete;
};

} // namespace kvc

#endif
