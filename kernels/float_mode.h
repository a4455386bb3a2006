// While it lives, this thread computes as IEEE 754 does by default: denormals kept, rounding to nearest even. Encoded
// bytes then depend neither on what a library set for its own speed nor on the thread that encodes.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace atl {

class DefaultFloatMode {
 public:
#if defined(__x86_64__)
  DefaultFloatMode() : before_(_mm_getcsr()) {
    if (before_ != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatMode() {
    if (before_ != kDefault) _mm_setcsr(before_);
  }
#elif defined(__aarch64__)
  DefaultFloatMode() : before_(control()) {
    if (before_ != kDefault) set_control(kDefault);
  }
  ~DefaultFloatMode() {
    if (before_ != kDefault) set_control(before_);
  }
#else
  DefaultFloatMode() = default;
#endif
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kDefault = 0x1f80;  // every exception masked
  const unsigned before_;
#elif defined(__aarch64__)
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t control() {
    std::uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_control(std::uint64_t value) { asm volatile("msr fpcr, %0" ::"r"(value)); }
  const std::uint64_t before_;
#endif
};

}  // namespace atl
