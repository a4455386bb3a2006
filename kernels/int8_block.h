// Wire format int8-block: symmetric 8-bit quantisation, one bf16 scale for each block of kInt8BlockNumel values.
//
//   scale = absmax / 127.33, rounded to fp32, then up to bf16;   inverse = 1 / scale;
//   q[i] = round_to_nearest_even(x[i] * inverse), within [-127, 127];   x'[i] = scale * q[i]
//
// Quotients and product are each rounded to fp32; x'[i] is exact, since 8 bits times 7 are 15. Small blocks with a
// short scale: for normal data the error is 6 % below that of 256 values with an fp32 scale, in as many bytes. The
// scale is rounded up, so that no value rounds to more than 127. And 127.33, because absmax / scale then lies anywhere
// from 126.3 to 127.33, around 127 on the average: with 127 the largest values would mostly be rounded up, a bias
// towards larger means.
//
// Encoded block: the scale (2 bytes, little-endian), then one int8 a value; a last short block is encoded short. Hence
// |x'[i] - x[i]| <= scale / 2 (1 + 2^-15).
//
// Special values, the same in every implementation of the format:
// - scale below kMinInt8Scale (all zero, or absmax below 3e-36): the block is encoded as zeros, scale 0. So no denormal
//   travels, and the bytes are the same whether the processor flushes denormals or not.
// - NaN or infinity anywhere in a block: scale is the quiet NaN 0x7fc0 and every q is 0; the whole block decodes to the
//   NaN 0x7fc00000. Callers refuse such input beforehand (all_finite); here it is only kept from hiding.
// - The largest floats do not overflow.
// - Bytes from outside may hold any scale and q = -128; decoding them is defined: a scale that is not finite gives NaN.
//
// These are the reference: plain C++, one block a call, count in [1, kInt8BlockNumel], encoded: 2 + count bytes, no
// overlap, no alignment asked. Each value takes the same operations in the same order however the compiler vectorises.
#pragma once

#include <cstddef>

namespace atl {

inline constexpr float kInt8Steps = 127.33f;  // of the scale, before it is rounded up, in the largest magnitude
inline constexpr float kMinInt8Scale = 0x1p-125f;

void encode_int8_block(const float* x, std::size_t count, std::byte* encoded);
void decode_int8_block(const std::byte* encoded, std::size_t count, float* x);

}  // namespace atl
