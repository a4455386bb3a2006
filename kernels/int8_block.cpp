#include "kernels/int8_block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace atl {
namespace {

constexpr std::uint32_t kLargestFiniteBits = 0x7f7fffffu;
// Adding 1.5 * 2^23 leaves no fraction bits: the sum's low bits are the integer nearest to the value, ties to even.
// Unlike nearbyint this vectorises without SSE4.1; it holds for |value| < 2^22.
constexpr float kRoundToInteger = 12582912.0f;
constexpr std::int32_t kRoundToIntegerBits = 0x4b400000;

// The largest magnitude as bits: for non-negative floats the order of the bits is the order of the values, NaN above
// all, and an integer maximum may be taken in any order.
std::uint32_t absmax_bits(const float* x, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(x[i]) & 0x7fffffff);
  }
  return static_cast<std::uint32_t>(largest);
}

void quantize_block(const float* x, std::size_t count, std::byte* encoded) {
  const std::uint32_t largest = absmax_bits(x, count);
  float scale = std::bit_cast<float>(largest) / 127.0f;
  const bool poisoned = largest > kLargestFiniteBits;
  if (poisoned) scale = std::bit_cast<float>(kPoisonedScaleBits);
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

bool is_finite(float scale) { return (std::bit_cast<std::uint32_t>(scale) & 0x7fffffffu) <= kLargestFiniteBits; }

// Calls on_block(scale, q, offset, count) for each block.
template <class OnBlock>
void for_each_block(std::span<const std::byte> encoded, std::size_t numel, OnBlock on_block) {
  const std::byte* block = encoded.data();
  for (std::size_t offset = 0; offset < numel; offset += kBlockNumel) {
    const std::size_t count = std::min<std::size_t>(kBlockNumel, numel - offset);
    float scale = 0;
    std::memcpy(&scale, block, sizeof scale);
    on_block(scale, reinterpret_cast<const std::int8_t*>(block + sizeof scale), offset, count);
    block += sizeof scale + count;
  }
}

}  // namespace

void quantize_int8_block(std::span<const float> x, std::span<std::byte> encoded) {
  std::byte* block = encoded.data();
  for (std::size_t offset = 0; offset < x.size(); offset += kBlockNumel) {
    const std::size_t count = std::min<std::size_t>(kBlockNumel, x.size() - offset);
    quantize_block(x.data() + offset, count, block);
    block += sizeof(float) + count;
  }
}

void dequantize_int8_block(std::span<const std::byte> encoded, std::span<float> x) {
  for_each_block(encoded, x.size(), [&](float scale, const std::int8_t* q, std::size_t offset, std::size_t count) {
    float* const out = x.data() + offset;
    if (!is_finite(scale)) {
      std::fill_n(out, count, std::bit_cast<float>(kPoisonedScaleBits));
      return;
    }
    for (std::size_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(q[i]);
  });
}

void dequantize_add_int8_block(std::span<const std::byte> encoded, std::span<float> sum) {
  for_each_block(encoded, sum.size(), [&](float scale, const std::int8_t* q, std::size_t offset, std::size_t count) {
    float* const out = sum.data() + offset;
    if (!is_finite(scale)) {
      std::fill_n(out, count, std::bit_cast<float>(kPoisonedScaleBits));
      return;
    }
    for (std::size_t i = 0; i < count; ++i) out[i] = out[i] + scale * static_cast<float>(q[i]);
  });
}

}  // namespace atl
