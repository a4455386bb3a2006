// Wire format int8-codebook, for comparison: 256 uniform buckets over mean +- 6 sigma, each value sent as the number of
// its bucket, decoded as the mean of the values in it (as the INTELLECT-1 report, arXiv:2412.01152, describes). One
// codebook for each block of kCodebookBlockNumel values.
//
//   low = mean - 6 sigma;   width = 12 sigma / 256;   code[i] = clamp(floor((x[i] - low) / width), 0, 255)
//   codebook[k] = mean{x[i] : code[i] = k}, 0 for a bucket that is empty;   x'[i] = codebook[code[i]]
//
// Mean, sigma (of the population) and buckets are computed in double, in the values' order; codebooks are rounded to
// fp32. Encoded block: the codebook (256 fp32, little-endian), then one byte a value; a last short block has a whole
// codebook. What lies beyond 6 sigma falls into the outermost buckets: heavy tails are lost.
//
// Special values: all equal: one code, which decodes to that value; a codebook entry below 2^-126 is 0; NaN or infinity
// anywhere in a block: the codebook is all 0x7fc00000, every code 0. Whatever bytes come from outside decode to an
// entry, NaN entries to 0x7fc00000.
//
// Plain C++, one block a call, count in [1, kCodebookBlockNumel], encoded: 1024 + count bytes, no overlap, no alignment
// asked.
#pragma once

#include <cstddef>

namespace atl {

void encode_int8_codebook(const float* x, std::size_t count, std::byte* encoded);
void decode_int8_codebook(const std::byte* encoded, std::size_t count, float* x);

}  // namespace atl
