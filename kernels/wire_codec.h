// Encoding and decoding of fp32 values in the run's wire format, whichever it is: what the ring calls on each
// sub-chunk. Pure functions, any thread. encoded.size() == encoded_bytes(format, values.size()); no alignment asked of
// the bytes, no overlap. Special values: fp32 travels bit for bit, int8-block as int8_block.h says.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/wire_format.h"

namespace atl {

void encode_values(WireFormat format, std::span<const float> x, std::span<std::byte> encoded);
void decode_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> x);
// sum[i] <- sum[i] + decoded[i], in fp32
void decode_add_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> sum);

}  // namespace atl
