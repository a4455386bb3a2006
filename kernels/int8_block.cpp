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

}  // namespace

void encode_int8_block(const float* x, std::size_t count, std::byte* encoded) {
  const std::uint32_t largest = absmax_bits(x, count);
  const bool poisoned = largest >= kInfinityBits;
  float scale = poisoned ? quiet_nan() : std::bit_cast<float>(largest) / 127.0f;
  if (scale < kMinInt8Scale) scale = 0.0f;
  std::memcpy(encoded, &scale, sizeof scale);
  auto* const q = reinterpret_cast<std::int8_t*>(encoded + sizeof scale);
  if (poisoned || scale == 0.0f) {
    std::memset(q, 0, count);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    // |x / scale| <= 127 (1 + 2^-23): rounded to an integer it needs no clamp to stay within 127.
    const float rounded = x[i] / scale + kRoundToInteger;
    q[i] = static_cast<std::int8_t>(std::bit_cast<std::int32_t>(rounded) - kRoundToIntegerBits);
  }
}

void decode_int8_block(const std::byte* encoded, std::size_t count, float* x) {
  float scale = 0;
  std::memcpy(&scale, encoded, sizeof scale);
  if (!is_finite(scale)) {
    std::fill_n(x, count, quiet_nan());
    return;
  }
  const auto* const q = reinterpret_cast<const std::int8_t*>(encoded + sizeof scale);
  for (std::size_t i = 0; i < count; ++i) x[i] = scale * static_cast<float>(q[i]);
}

}  // namespace atl
