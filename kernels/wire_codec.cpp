#include "kernels/wire_codec.h"

#include <cstring>

#include "kernels/int8_block.h"

namespace atl {

void encode_values(WireFormat format, std::span<const float> x, std::span<std::byte> encoded) {
  if (format == WireFormat::kInt8Block) return quantize_int8_block(x, encoded);
  if (!x.empty()) std::memcpy(encoded.data(), x.data(), x.size_bytes());
}

void decode_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> x) {
  if (format == WireFormat::kInt8Block) return dequantize_int8_block(encoded, x);
  if (!x.empty()) std::memcpy(x.data(), encoded.data(), x.size_bytes());
}

void decode_add_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> sum) {
  if (format == WireFormat::kInt8Block) return dequantize_add_int8_block(encoded, sum);
  const std::byte* const bytes = encoded.data();
  float* const out = sum.data();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    float value;  // the bytes need not be aligned
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    out[i] = out[i] + value;
  }
}

}  // namespace atl
