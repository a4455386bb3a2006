// What travels on each edge of the ring, in which order: pure arithmetic that both ends of an edge work out alike.
//
// The payload is cut into buckets, each bucket into N chunks at whole blocks. In step s (0 to 2N-3) of a bucket rank r
// sends chunk (r - s) mod N to rank r + 1: in the first N-1 steps its partial sum (reduce-scatter; after them rank r
// owns the sum of chunk r + 1), then the finished chunk (all-gather). What rank r sends in step s + 1 is what it
// received in step s. In formats that are not summed hop by hop (int4) the first N-1 steps are missing: contributions
// go straight to each chunk's owner (direct_reduce.h). A chunk travels in sub-chunks of 8 to 128 KiB, one a frame, so
// that a rank forwards the first while it receives the next. Frames are numbered by bucket, step and sub-chunk; a rank
// that waits for the bytes of one bucket sends its own values of the next meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/id.h"
#include "net/wire/ring_frame.h"

namespace atl {

// Encoded, about: whole blocks of values. Both ends of an edge cut alike: other numbers are another kRingVersion.
inline constexpr std::int64_t kSubChunkBytes = 128 << 10;
inline constexpr std::int64_t kLeastSubChunkBytes = 8 << 10;
inline constexpr std::int64_t kSubChunks = 32;  // that a chunk is cut into at least, where they are not the least

// What one attempt averages, as all its members understand it. There is no size of buckets that would be right for
// every payload, so none is made without one.
struct RingPayload {
  RingPayload(WireFormat wire_format, std::int64_t values, std::int64_t values_a_bucket, std::vector<bool> final_ones)
      : wire(wire_format), numel(values), bucket_numel(values_a_bucket), final_buckets(std::move(final_ones)) {}

  WireFormat wire;
  std::int64_t numel;
  std::int64_t bucket_numel;        // positive; a multiple of every format's block
  std::vector<bool> final_buckets;  // by bucket: these are averaged already and do not travel; empty: none

  std::int64_t buckets() const { return (numel + bucket_numel - 1) / bucket_numel; }
  std::int64_t bucket_begin(std::int64_t bucket) const { return std::min(numel, bucket * bucket_numel); }
  std::int64_t bucket_bytes(std::int64_t bucket) const {
    return encoded_bytes(wire, bucket_begin(bucket + 1) - bucket_begin(bucket));
  }
  // First value of a bucket's chunk, of `world_size`; chunk == world_size: where the bucket ends.
  std::int64_t chunk_begin(std::int64_t bucket, std::int64_t chunk, int world_size) const {
    const std::int64_t begin = bucket_begin(bucket), end = bucket_begin(bucket + 1), block = block_numel(wire);
    const std::int64_t blocks = (end - begin + block - 1) / block;
    return std::min(end, begin + blocks * chunk / world_size * block);
  }
  bool is_final(std::int64_t bucket) const {
    return !final_buckets.empty() && final_buckets[static_cast<std::size_t>(bucket)];
  }
};

// A run of whole blocks (but at the payload's end).
struct RingSubChunk {
  RingPhase phase = RingPhase::kReduceScatter;
  std::int64_t first_value = 0;
  std::int64_t numel = 0;
  std::uint64_t first_byte = 0;  // within the canonical bytes
  std::uint32_t bytes = 0;

  bool operator==(const RingSubChunk&) const = default;
};

// Cuts values [first, first + numel) of the payload, `first` at a block: how many sub-chunks, and number `index` of
// them.
std::uint32_t sub_chunk_count(WireFormat wire, std::int64_t numel);
RingSubChunk sub_chunk_at(WireFormat wire, std::int64_t first, std::int64_t numel, std::uint32_t index);

// Of the chunks whose sums `rank` owns, in buckets that travel, in order.
std::vector<RingSubChunk> owned_sub_chunks(const RingPayload& payload, int world_size, Rank rank);

// The frames of the edge from `sender` to the next rank.
class EdgeSchedule {
 public:
  EdgeSchedule(const RingPayload& payload, int world_size, Rank sender);

  std::uint32_t frames() const { return steps_.back().first_sequence; }
  std::uint64_t bytes() const;  // of all frames' payloads
  // Steps of all buckets that travel; how many of them these bytes, come in the order of the schedule, make whole.
  std::uint32_t steps() const { return static_cast<std::uint32_t>(steps_.size() - 1); }
  std::uint32_t step_after(std::uint64_t bytes) const;
  RingPhase phase_of_step(std::uint32_t step) const;  // from steps() on: the all-gather, which ends them
  RingSubChunk frame(std::uint32_t sequence) const;   // sequence < frames()
  // The first frame from `sequence` on of a bucket's first step, whose values are the sender's own, or which it owns
  // the sum of; frames() when none is left. All others it has received before.
  std::uint32_t next_own(std::uint32_t sequence) const;
  // Whether own frames are the sender's own values, encoded when they are sent; otherwise sums that it waits for.
  bool encodes_own() const { return sums_hop_by_hop(wire_); }

  // Of a frame of this edge: the receiver sends these bytes, or their sum with its own, on as that frame of `outbound`,
  // its own edge. Empty in the last step: everybody has them then.
  std::optional<std::uint32_t> forwarded(std::uint32_t sequence, const EdgeSchedule& outbound) const;
  // The frame of `outbound` that the receiver sent from the same place of the canonical bytes before: until it has left
  // the place must not be written. Empty in the reduce-scatter, which finds every place unused.
  std::optional<std::uint32_t> replaces(std::uint32_t sequence, const EdgeSchedule& outbound) const;
  // After this frame, with the receiver's own values added where it is a partial sum, the bytes are canonical.
  bool makes_final(std::uint32_t sequence) const;

 private:
  struct Step {
    std::uint32_t first_sequence = 0;
    RingPhase phase = RingPhase::kReduceScatter;
    std::int64_t first_value = 0;
    std::int64_t numel = 0;
  };
  std::size_t step_of(std::uint32_t sequence) const;
  std::size_t steps_a_bucket() const { return (encodes_own() ? 2 : 1) * (static_cast<std::size_t>(world_size_) - 1); }

  WireFormat wire_;
  int world_size_;
  std::vector<Step>
      steps_;  // steps_a_bucket() for each bucket that travels, and a last one, which only ends the others
};

}  // namespace atl
