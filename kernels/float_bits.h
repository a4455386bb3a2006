// Floats as bits: what the codecs decide special values by, so that no floating-point mode and no order of operands has
// a say in it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace atl {

inline constexpr std::uint32_t kQuietNaNBits = 0x7fc00000u;  // the one NaN that encoding and adding leave behind
inline constexpr std::uint32_t kMagnitudeMask = 0x7fffffffu;
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;

constexpr std::uint32_t magnitude_bits(float x) { return std::bit_cast<std::uint32_t>(x) & kMagnitudeMask; }
constexpr bool is_finite(float x) { return magnitude_bits(x) < kInfinityBits; }
constexpr float quiet_nan() { return std::bit_cast<float>(kQuietNaNBits); }
constexpr float without_nan_payload(float x) { return magnitude_bits(x) > kInfinityBits ? quiet_nan() : x; }

// The largest magnitude as bits: for non-negative floats the order of the bits is the order of the values, NaN above
// all, and an integer maximum may be taken in any order.
inline std::uint32_t absmax_bits(const float* x, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = magnitude_bits(x[i]) > largest ? magnitude_bits(x[i]) : largest;
  return largest;
}

}  // namespace atl
