// One member's arithmetic in an all-reduce: encodes its own weighted values, and adds them to partial sums that pass
// by. Pure but for the bytes that it is told to write: several threads call it at once on different sub-chunks.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "kernels/wire_codec.h"
#include "net/base/deadline.h"
#include "net/collective/ring_schedule.h"

namespace atl {

class PartialSums {
 public:
  // Partial and finished sums live encoded, at their final place in `canonical`. `share`: the own weight over the
  // total; at 0 the values are never looked at. Both spans outlive this.
  // `feedback`: what is owed and what is lost, by value; none when empty.
  PartialSums(WireFormat wire, std::span<const float> values, float share, ErrorFeedback feedback,
              std::span<std::byte> canonical);

  // canonical <- encode(share * values)
  void encode_own(const RingSubChunk& sub_chunk) const;
  // canonical <- encode(decode(canonical) + decode(encode(share * values))), the sum in fp32: what was sent to be added
  // (encode_contribution) makes the same bytes, by add_encoded in the same order
  void add_own(const RingSubChunk& sub_chunk) const;
  // contribution <- encode(share * values), for another member to sum
  void encode_contribution(const RingSubChunk& sub_chunk, std::span<std::byte> contribution) const;
  // canonical <- encode(0), with which a chunk's sum begins whose first rank has no share
  void begin_with_zeros(const RingSubChunk& sub_chunk) const;
  // canonical <- encode(decode(canonical) + decode(contribution)), as its contributor's add_own would have made it
  void add_contribution(const RingSubChunk& sub_chunk, std::span<const std::byte> contribution) const;
  // At share 0 nothing can be paid back: residual_out <- 0 in the buckets that travel. Where add_own and encode_own,
  // which do the same, are not called for all values.
  void owe_nothing_without_share(const RingPayload& payload) const;
  // canonical <- encode(share * values + the others' contributions, in their order), the sum in fp32, in `sum`
  void sum_contributions(const RingSubChunk& sub_chunk, std::span<const std::span<const std::byte>> contributions,
                         std::span<float> sum) const;

  // What the calls above took so far, all threads together, and when the last of them ended: with the last sum, for a
  // chunk's owner.
  Seconds time_spent() const { return std::chrono::nanoseconds(spent_nanoseconds_); }
  Clock::time_point last_ended() const { return Clock::time_point(Clock::duration(last_ended_)); }

 private:
  class Stopwatch;
  std::span<const float> own(const RingSubChunk& sub_chunk) const;
  ErrorFeedback feedback(const RingSubChunk& sub_chunk) const;
  std::span<std::byte> encoded(const RingSubChunk& sub_chunk) const;

  const WireFormat wire_;
  const std::span<const float> values_;
  const float share_;
  const ErrorFeedback feedback_;
  const std::span<std::byte> canonical_;
  mutable std::atomic<std::int64_t> spent_nanoseconds_{0};
  mutable std::atomic<Clock::rep> last_ended_{0};
};

}  // namespace atl
