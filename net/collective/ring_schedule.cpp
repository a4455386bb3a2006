#include "net/collective/ring_schedule.h"

#include <algorithm>

namespace atl {
namespace {

std::int64_t blocks_of(std::int64_t numel) { return (numel + kBlockNumel - 1) / kBlockNumel; }

std::int64_t sub_chunk_numel(WireFormat wire) {
  return std::max<std::int64_t>(1, kSubChunkBytes / encoded_bytes(wire, kBlockNumel)) * kBlockNumel;
}

}  // namespace

std::uint32_t sub_chunk_count(WireFormat wire, std::int64_t numel) {
  const std::int64_t each = sub_chunk_numel(wire);
  return static_cast<std::uint32_t>((numel + each - 1) / each);
}

RingSubChunk sub_chunk_at(WireFormat wire, std::int64_t first, std::int64_t numel, std::uint32_t index) {
  const std::int64_t each = sub_chunk_numel(wire);
  RingSubChunk sub_chunk;
  sub_chunk.first_value = first + each * index;
  sub_chunk.numel = std::min(each, first + numel - sub_chunk.first_value);
  sub_chunk.first_byte = static_cast<std::uint64_t>(encoded_bytes(wire, sub_chunk.first_value));
  sub_chunk.bytes = static_cast<std::uint32_t>(encoded_bytes(wire, sub_chunk.numel));
  return sub_chunk;
}

EdgeSchedule::EdgeSchedule(WireFormat wire, std::int64_t numel, int world_size, Rank sender) : wire_(wire) {
  const std::int64_t blocks = blocks_of(numel);
  const auto chunk_begin = [&](std::int64_t chunk) {
    return std::min(numel, blocks * chunk / world_size * kBlockNumel);
  };
  const int steps = 2 * (world_size - 1);
  std::uint32_t sequence = 0;
  for (int s = 0; s < steps; ++s) {
    const int chunk = ((sender.value - s) % world_size + world_size) % world_size;
    const std::int64_t first = chunk_begin(chunk);
    const std::int64_t chunk_numel = chunk_begin(chunk + 1) - first;
    const RingPhase phase = s < world_size - 1 ? RingPhase::kReduceScatter : RingPhase::kAllGather;
    steps_.push_back({sequence, phase, first, chunk_numel});
    sequence += sub_chunk_count(wire, chunk_numel);
  }
  steps_.push_back({.first_sequence = sequence});
}

RingSubChunk EdgeSchedule::frame(std::uint32_t sequence) const {
  // The last step that begins at or before `sequence`: steps without a frame begin where the next one does.
  const auto after = std::ranges::upper_bound(steps_, sequence, {}, &Step::first_sequence);
  const Step& step = *std::prev(after);
  RingSubChunk sub_chunk = sub_chunk_at(wire_, step.first_value, step.numel, sequence - step.first_sequence);
  sub_chunk.phase = step.phase;
  return sub_chunk;
}

}  // namespace atl
