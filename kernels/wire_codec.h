// Values to bytes and back in the run's wire format, whichever it is, with what the ring does in the same pass: weight,
// add, feed errors back. Each operation computes in fp32, every rounding on its own, in the order written, and gives
// the same bytes on every processor (AVX-512, AVX2 or plain C++, chosen at first use) and in every floating-point mode.
//
// Pure functions, any thread. encoded.size() == encoded_bytes(format, x.size()), no alignment asked, no overlap but
// where said. Spans that begin at a multiple of block_numel(format) may be done in any order and by several threads
// (part_begin), with the same result. Special values: the header of each format; NaN comes out as 0x7fc00000.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/wire_format.h"

namespace atl {

// What encoding lost, in the units of the input, kept to be sent with the next round's: 4 bytes a parameter. The caller
// stages `residual_out` until the round commits. The spans may be the same; residual_out is always finite.
struct ErrorFeedback {
  std::span<const float> residual_in;
  std::span<float> residual_out;
};

// encoded <- encode(x). fp32 travels bit for bit, NaN payloads included.
void encode_values(WireFormat format, std::span<const float> x, std::span<std::byte> encoded);
// x <- decode(encoded)
void decode_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> x);
// sum[i] <- sum[i] + decode(encoded)[i]
void decode_add_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> sum);

// encoded <- encode(share * x). At share 0: zeros, and x is never looked at.
void encode_weighted(WireFormat format, std::span<const float> x, float share, std::span<std::byte> encoded);
// encoded <- encode(decode(partial) + decode(encode(share * x))), the sum in fp32. What is added is what the own values
// are when they travel: the bytes of a sum do not depend on whether it went to its parts or they came to it. At share
// 0: partial as it is, and x is never looked at. `partial` and `encoded` may be the same bytes.
void add_weighted(WireFormat format, std::span<const std::byte> partial, std::span<const float> x, float share,
                  std::span<std::byte> encoded);

// encoded <- encode(decode(partial) + decode(contribution)), the sum in fp32: add_weighted's bytes, `contribution`
// being what encode_weighted made of the own values. A member with share 0 has none: zeros would round the partial once
// more. `partial` and `encoded` may be the same bytes; of `numel` values each.
void add_encoded(WireFormat format, std::int64_t numel, std::span<const std::byte> partial,
                 std::span<const std::byte> contribution, std::span<std::byte> encoded);

// With error feedback: own, which is encoded, is share * (x + residual_in) in place of share * x, and
//   residual_out <- (own - decode(encode(own))) / share
// which is what encoding the own values lost, whoever adds them up. What encoding a sum loses, at each hop, no member
// owes. At share 0 nothing can be paid back: as without feedback, and residual_out <- 0.
void encode_weighted(WireFormat format, std::span<const float> x, float share, ErrorFeedback feedback,
                     std::span<std::byte> encoded);
void add_weighted(WireFormat format, std::span<const std::byte> partial, std::span<const float> x, float share,
                  ErrorFeedback feedback, std::span<std::byte> encoded);
// encoded <- encode(sum), residual_out <- (sum - decode(encoded)) / share: the owner of a chunk whose contributions
// came to it directly (!sums_hop_by_hop), and were summed by decode_add_values on top of its own (scaled_sum_copy).
void encode_sum(WireFormat format, std::span<const float> sum, float share, std::span<float> residual_out,
                std::span<std::byte> encoded);

}  // namespace atl
