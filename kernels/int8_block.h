// Wire format int8-block: symmetric 8-bit quantisation, one fp32 scale for each block of kBlockNumel values.
//
//   scale = absmax(block) / 127;   q[i] = round_to_nearest_even(x[i] / scale), within [-127, 127];   x'[i] = scale *
//   q[i]
//
// Encoded block: the scale (4 bytes, little-endian), then one int8 a value; a last short block is encoded short. Hence
// |x'[i] - x[i]| <= scale / 2 (and a rounding of fp32), and a value is never larger than its block's largest.
//
// Special values, the same in every implementation of the format:
// - scale below kMinInt8Scale (all zero, or absmax below 3e-36): the block is encoded as zeros, scale 0. So no denormal
//   travels, and the bytes are the same whether the processor flushes denormals or not.
// - NaN or infinity anywhere in a block: scale is the quiet NaN 0x7fc00000 and every q is 0; the whole block decodes to
//   that NaN. Callers refuse such input beforehand (all_finite); here it is only kept from hiding.
// - Bytes from outside may hold any scale and q = -128; decoding them is defined: a scale that is not finite gives NaN.
//
// These are the reference: plain C++, one block a call, count in [1, kBlockNumel], encoded: 4 + count bytes, no
// overlap, no alignment asked. Each value takes the same operations in the same order however the compiler vectorises.
#pragma once

#include <cstddef>

namespace atl {

inline constexpr float kMinInt8Scale = 0x1p-125f;

void encode_int8_block(const float* x, std::size_t count, std::byte* encoded);
void decode_int8_block(const std::byte* encoded, std::size_t count, float* x);

}  // namespace atl
