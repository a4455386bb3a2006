// Values of the types that a model is computed in, and memory for them that tells when somebody wrote beside it: for
// the tests of kernels/model.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/model/model_kernels.h"

namespace atl {

inline float value_of(float x) { return x; }
inline float value_of(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint32_t bits_of(Bf16 x) { return x.bits; }

inline Bf16 rounded(float x) {
  Bf16 result;
  encode_bf16(&x, 1, reinterpret_cast<std::byte*>(&result.bits));
  return result;
}
template <class T>
T as(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return rounded(x);
  }
}

// Is `got` the T nearest to something within `error` of `expected`?
template <class T>
bool near(T got, double expected, double error) {
  const double most = std::abs(expected) + error;
  const int digits = std::is_same_v<T, float> ? 24 : 8;
  const double half_ulp = most == 0 ? 0 : std::ldexp(1.0, std::max(std::ilogb(most), -126) - digits);
  return std::abs(static_cast<double>(value_of(got)) - expected) <= error + half_ulp;  // false for NaN
}

// `count` elements with others around them that nobody may write to.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count, float value = 0) : elements_(count + 2 * kGuard, as<T>(kGuardValue)) {
    std::fill_n(data(), count, as<T>(value));
  }
  // Of the normal distribution, rounded to T.
  static Buffer random(std::size_t count, unsigned seed, float deviation = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, deviation);
    Buffer buffer(count);
    for (std::size_t i = 0; i < count; ++i) buffer[i] = as<T>(normal(random));
    return buffer;
  }
  T* data() { return elements_.data() + kGuard; }
  std::size_t size() const { return elements_.size() - 2 * kGuard; }
  T& operator[](std::size_t i) { return elements_[kGuard + i]; }
  double at(std::size_t i) const { return static_cast<double>(value_of(elements_[kGuard + i])); }
  bool intact() const {
    const auto is_guard = [](T x) { return bits_of(x) == bits_of(as<T>(kGuardValue)); };
    return std::all_of(elements_.begin(), elements_.begin() + kGuard, is_guard) &&
           std::all_of(elements_.end() - kGuard, elements_.end(), is_guard);
  }
  bool same_bits(const Buffer& other) const {
    return std::equal(elements_.begin(), elements_.end(), other.elements_.begin(), other.elements_.end(),
                      [](T a, T b) { return bits_of(a) == bits_of(b); });
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 32;
  static constexpr float kGuardValue = 77;
  std::vector<T> elements_;
};

// Those that this processor has.
inline std::vector<InstructionSet> sets() {
  std::vector<InstructionSet> present;
  std::ranges::copy_if(kInstructionSets, std::back_inserter(present), processor_has);
  return present;
}

// check(T{}, kernels of T) for both T and every instruction set; nested: with every width.
template <class Check>
void with_every_implementation(Check check) {
  for (const InstructionSet set : sets()) {
    check(float{}, model_kernels<float>(set));
    check(Bf16{}, model_kernels<Bf16>(set));
  }
}
// Below, at and above the vectors' lengths and the sums' blocks.
inline constexpr std::size_t kWidths[] = {1, 3, 7, 8, 15, 16, 31, 64, 65, 129, 1000, 4111};
template <class Check>
void with_every_width(Check check) {
  for (const std::size_t width : kWidths) {
    with_every_implementation([&](auto type, const auto& kernels) { check(type, kernels, width); });
  }
}

}  // namespace atl
