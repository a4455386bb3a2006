#include "kernels/bf16.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/float_bits.h"

namespace atl {

void encode_bf16(const float* x, std::size_t count, std::byte* encoded) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = std::bit_cast<std::uint32_t>(without_nan_payload(x[i]));
    // Just under half of the last bit kept, and that bit: a tie carries only into an odd one. The quiet NaN stays.
    bits += 0x7fffu + ((bits >> 16) & 1u);
    const auto upper = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(encoded + 2 * i, &upper, sizeof upper);
  }
}

void decode_bf16(const std::byte* encoded, std::size_t count, float* x) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t upper = 0;
    std::memcpy(&upper, encoded + 2 * i, sizeof upper);
    x[i] = without_nan_payload(std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16));
  }
}

}  // namespace atl
