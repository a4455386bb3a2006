// Wire format bf16: the upper 16 bits of an fp32, little-endian, rounded to nearest, ties to even.
//
//   |x' - x| <= 2^-9 2^e(x) (e(x): the exponent of x), relative error at most 2^-8 / 2
//
// Special values: zeros keep their sign, denormals and infinities travel; finite values from 0x1.ffp127 on round to
// infinity; every NaN is encoded, and decoded, as the quiet NaN 0x7fc0 (0x7fc00000). Integer operations only, so that
// flushing of denormals has no say.
//
// These are the reference: plain C++, any count; encoded: 2 * count bytes, no overlap, no alignment asked.
#pragma once

#include <cstddef>

namespace atl {

void encode_bf16(const float* x, std::size_t count, std::byte* encoded);
void decode_bf16(const std::byte* encoded, std::size_t count, float* x);

}  // namespace atl
