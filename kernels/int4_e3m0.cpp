#include "kernels/int4_e3m0.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/float_bits.h"

namespace atl {
namespace {

constexpr std::array kLevels{0.0f,  0x1p-6f,  0x1p-5f,  0x1p-4f,  0x1p-3f,  0x1p-2f,  0x1p-1f,  1.0f,
                             -0.0f, -0x1p-6f, -0x1p-5f, -0x1p-4f, -0x1p-3f, -0x1p-2f, -0x1p-1f, -1.0f};

// ratio: x / scale, in [-1, 1] but for a rounding
std::uint32_t code_of(float ratio) {
  const std::uint32_t magnitude = magnitude_bits(ratio);
  if (magnitude < magnitude_bits(0x1p-7f)) return 0;
  // From a mantissa of 1.5 on, half a unit of the exponent carries into it. 2^-6 has exponent 121, and m = 1.
  const std::uint32_t exponent = (magnitude + 0x00400000u) >> 23;
  const std::uint32_t m = std::max(exponent, 121u) - 120u;
  return m | (std::bit_cast<std::uint32_t>(ratio) >> 31 << 3);
}

}  // namespace

void encode_int4_e3m0(const float* x, std::size_t count, std::byte* encoded) {
  const std::uint32_t largest = absmax_bits(x, count);
  const bool poisoned = largest >= kInfinityBits;
  float scale = poisoned ? quiet_nan() : std::bit_cast<float>(largest);
  if (scale < kMinInt4Scale) scale = 0.0f;
  std::memcpy(encoded, &scale, sizeof scale);
  std::byte* const pairs = encoded + sizeof scale;
  std::memset(pairs, 0, (count + 1) / 2);
  if (poisoned || scale == 0.0f) return;
  const float inverse = 1.0f / scale;
  for (std::size_t i = 0; i < count; ++i) {
    pairs[i / 2] |= static_cast<std::byte>(code_of(x[i] * inverse) << (i % 2 * 4));
  }
}

void decode_int4_e3m0(const std::byte* encoded, std::size_t count, float* x) {
  float scale = 0;
  std::memcpy(&scale, encoded, sizeof scale);
  if (!is_finite(scale)) {
    std::fill_n(x, count, quiet_nan());
    return;
  }
  const std::byte* const pairs = encoded + sizeof scale;
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = scale * kLevels[std::to_integer<std::uint32_t>(pairs[i / 2] >> (i % 2 * 4)) & 15u];
  }
}

}  // namespace atl
