// What travels on each edge of the ring, in which order: pure arithmetic that both ends of an edge work out alike.
//
// The payload is cut into N chunks at multiples of kBlockNumel. In step s (0 to 2N-3) rank r sends chunk (r - s) mod N
// to rank r + 1: in the first N-1 steps its partial sum (reduce-scatter; after them rank r owns the sum of chunk r +
// 1), then the finished chunk (all-gather). What rank r sends in step s + 1 is what it received in step s. A chunk
// travels in sub-chunks of some 256 KiB, one a frame, so that a rank forwards the first while it receives the next.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/id.h"
#include "net/wire/ring_frame.h"

namespace atl {

inline constexpr std::int64_t kSubChunkBytes = 256 << 10;  // encoded, about: whole blocks of values

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

// The frames of the edge from `sender` to the next rank.
class EdgeSchedule {
 public:
  EdgeSchedule(WireFormat wire, std::int64_t numel, int world_size, Rank sender);

  std::uint32_t frames() const { return steps_.back().first_sequence; }
  // The frames of step 0, which the sender makes of its own values. Frame i after them is what the sender has received
  // as frame i - own_frames() of the edge before.
  std::uint32_t own_frames() const { return steps_[1].first_sequence; }
  RingSubChunk frame(std::uint32_t sequence) const;  // sequence < frames()

 private:
  struct Step {
    std::uint32_t first_sequence = 0;
    RingPhase phase = RingPhase::kReduceScatter;
    std::int64_t first_value = 0;
    std::int64_t numel = 0;
  };
  WireFormat wire_;
  std::vector<Step> steps_;  // and a last one, which only ends the one before
};

}  // namespace atl
