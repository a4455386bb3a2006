#include "kernels/int8_block.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/float_bits.h"

namespace atl {
namespace {

// Adding 1.5 * 2^23 leaves no fraction bits: the sum's low bits are the integer nearest to the value, ties to even.
// Unlike nearbyint this vectorises without SSE4.1; it holds for |value| < 2^22.
constexpr float kRoundToInteger = 12582912.0f;
constexpr std::int32_t kRoundToIntegerBits = 0x4b400000;

std::uint16_t upper_half(std::uint32_t bits) { return static_cast<std::uint16_t>(bits >> 16); }

}  // namespace

void encode_int8_block(const float* x, std::size_t count, std::byte* encoded) {
  const std::uint32_t largest = absmax_bits(x, count);
  const bool poisoned = largest >= kInfinityBits;
  const float quotient = std::bit_cast<float>(largest) / kInt8Steps;
  const std::uint32_t rounded_up = (std::bit_cast<std::uint32_t>(quotient) + 0xffffu) & 0xffff0000u;
  const auto scale = std::bit_cast<float>(rounded_up);
  const bool zero = scale < kMinInt8Scale;
  const std::uint16_t travels = upper_half(poisoned ? kQuietNaNBits : zero ? 0u : rounded_up);
  std::memcpy(encoded, &travels, sizeof travels);
  auto* const q = reinterpret_cast<std::int8_t*>(encoded + sizeof travels);
  if (poisoned || zero) {
    std::memset(q, 0, count);
    return;
  }
  const float inverse = 1.0f / scale;
  for (std::size_t i = 0; i < count; ++i) {
    // |x * inverse| <= 127.33 (1 + 2^-22): rounded to an integer it needs no clamp to stay within 127.
    const float rounded = x[i] * inverse + kRoundToInteger;
    q[i] = static_cast<std::int8_t>(std::bit_cast<std::int32_t>(rounded) - kRoundToIntegerBits);
  }
}

void decode_int8_block(const std::byte* encoded, std::size_t count, float* x) {
  std::uint16_t upper = 0;
  std::memcpy(&upper, encoded, sizeof upper);
  const auto scale = std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
  if (!is_finite(scale)) {
    std::fill_n(x, count, quiet_nan());
    return;
  }
  const auto* const q = reinterpret_cast<const std::int8_t*>(encoded + sizeof upper);
  for (std::size_t i = 0; i < count; ++i) x[i] = scale * static_cast<float>(q[i]);
}

}  // namespace atl
