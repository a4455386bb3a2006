// Wire format int4-e3m0: a sign, a 3-bit exponent, no mantissa, one fp32 scale for each block of kBlockNumel values
// (Streaming DiLoCo, arXiv:2501.18512, sends its outer gradients so).
//
//   scale = absmax(block);   ratio[i] = x[i] * (1 / scale), both rounded to fp32
//   levels: 0 and +- 2^(m - 7), m = 1 .. 7;   x'[i] = scale * level nearest to ratio[i]
//
// A tie goes to the level of larger magnitude: thresholds are 2^-7 (between 0 and 2^-6) and 1.5 * 2^k. A code is 4
// bits: sign, then m (0: zero). Encoded block: the scale (4 bytes, little-endian), then two codes a byte, the first
// value's in the low nibble; an odd last one leaves the high nibble 0. A last short block is encoded short. Hence
// |x'[i] - x[i]| <= max(|x[i]| / 3, scale / 128) (and roundings of fp32), and the largest magnitude survives exactly.
//
// Special values, the same in every implementation of the format:
// - absmax below kMinInt4Scale (1.5e-36): zeros, scale 0. Above it no level is denormal.
// - NaN or infinity anywhere in a block: scale is the quiet NaN 0x7fc00000 and every code 0; the block decodes to NaN.
// - Encoders never write code 8, a negative zero; it decodes to one. A scale that is not finite decodes to NaN.
//
// These are the reference: plain C++, one block a call, count in [1, kBlockNumel], encoded: 4 + (count + 1) / 2 bytes,
// no overlap, no alignment asked.
#pragma once

#include <cstddef>

namespace atl {

inline constexpr float kMinInt4Scale = 0x1p-119f;

void encode_int4_e3m0(const float* x, std::size_t count, std::byte* encoded);
void decode_int4_e3m0(const std::byte* encoded, std::size_t count, float* x);

}  // namespace atl
