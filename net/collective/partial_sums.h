// One member's arithmetic in an all-reduce: encodes its own weighted values, and adds them to partial sums that pass
// by. Pure but for the bytes that it is told to write: several threads call it at once on different sub-chunks.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/wire_format.h"
#include "net/collective/ring_schedule.h"

namespace atl {

class PartialSums {
 public:
  // Partial and finished sums live encoded, at their final place in `canonical`. `share`: the own weight over the
  // total; at 0 the values are never looked at. Both spans outlive this.
  PartialSums(WireFormat wire, std::span<const float> values, float share, std::span<std::byte> canonical);

  // canonical <- encode(share * values)
  void encode_own(const RingSubChunk& sub_chunk) const;
  // canonical <- encode(decode(canonical) + share * values), the sum in fp32
  void add_own(const RingSubChunk& sub_chunk) const;

 private:
  std::span<const float> own(const RingSubChunk& sub_chunk) const;
  std::span<std::byte> encoded(const RingSubChunk& sub_chunk) const;

  const WireFormat wire_;
  const std::span<const float> values_;
  const float share_;
  const std::span<std::byte> canonical_;
};

}  // namespace atl
