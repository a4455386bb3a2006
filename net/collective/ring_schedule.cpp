#include "net/collective/ring_schedule.h"

#include <algorithm>

namespace atl {
namespace {

// A small chunk is cut finer: all connections of an edge have something to send then, and the next rank soon has.
std::int64_t sub_chunk_numel(WireFormat wire, std::int64_t chunk_numel) {
  const std::int64_t block = block_numel(wire);
  const std::int64_t bytes =
      std::clamp(encoded_bytes(wire, chunk_numel) / kSubChunks, kLeastSubChunkBytes, kSubChunkBytes);
  return std::max<std::int64_t>(1, bytes / encoded_bytes(wire, block)) * block;
}

}  // namespace

std::uint32_t sub_chunk_count(WireFormat wire, std::int64_t numel) {
  const std::int64_t each = sub_chunk_numel(wire, numel);
  return static_cast<std::uint32_t>((numel + each - 1) / each);
}

RingSubChunk sub_chunk_at(WireFormat wire, std::int64_t first, std::int64_t numel, std::uint32_t index) {
  const std::int64_t each = sub_chunk_numel(wire, numel);
  RingSubChunk sub_chunk;
  sub_chunk.first_value = first + each * index;
  sub_chunk.numel = std::min(each, first + numel - sub_chunk.first_value);
  sub_chunk.first_byte = static_cast<std::uint64_t>(encoded_bytes(wire, sub_chunk.first_value));
  sub_chunk.bytes = static_cast<std::uint32_t>(encoded_bytes(wire, sub_chunk.numel));
  return sub_chunk;
}

std::vector<RingSubChunk> owned_sub_chunks(const RingPayload& payload, int world_size, Rank rank) {
  const std::int64_t chunk = (rank.value + 1) % world_size;
  std::vector<RingSubChunk> owned;
  for (std::int64_t bucket = 0; bucket < payload.buckets(); ++bucket) {
    if (payload.is_final(bucket)) continue;
    const std::int64_t first = payload.chunk_begin(bucket, chunk, world_size);
    const std::int64_t numel = payload.chunk_begin(bucket, chunk + 1, world_size) - first;
    for (std::uint32_t i = 0; i < sub_chunk_count(payload.wire, numel); ++i) {
      owned.push_back(sub_chunk_at(payload.wire, first, numel, i));
    }
  }
  return owned;
}

EdgeSchedule::EdgeSchedule(const RingPayload& payload, int world_size, Rank sender)
    : wire_(payload.wire), world_size_(world_size) {
  std::uint32_t sequence = 0;
  for (std::int64_t bucket = 0; bucket < payload.buckets(); ++bucket) {
    if (payload.is_final(bucket)) continue;
    const auto chunk_begin = [&](std::int64_t chunk) { return payload.chunk_begin(bucket, chunk, world_size); };
    for (int s = encodes_own() ? 0 : world_size - 1; s < 2 * (world_size - 1); ++s) {
      const int chunk = ((sender.value - s) % world_size + world_size) % world_size;
      const std::int64_t first = chunk_begin(chunk);
      const std::int64_t chunk_numel = chunk_begin(chunk + 1) - first;
      const RingPhase phase = s < world_size - 1 ? RingPhase::kReduceScatter : RingPhase::kAllGather;
      steps_.push_back({sequence, phase, first, chunk_numel});
      sequence += sub_chunk_count(wire_, chunk_numel);
    }
  }
  steps_.push_back({.first_sequence = sequence});
}

// The last step that begins at or before `sequence`: steps without a frame begin where the next one does.
std::size_t EdgeSchedule::step_of(std::uint32_t sequence) const {
  const auto after = std::ranges::upper_bound(steps_, sequence, {}, &Step::first_sequence);
  return static_cast<std::size_t>(after - steps_.begin()) - 1;
}

RingSubChunk EdgeSchedule::frame(std::uint32_t sequence) const {
  const Step& step = steps_[step_of(sequence)];
  RingSubChunk sub_chunk = sub_chunk_at(wire_, step.first_value, step.numel, sequence - step.first_sequence);
  sub_chunk.phase = step.phase;
  return sub_chunk;
}

std::uint64_t EdgeSchedule::bytes() const {
  std::uint64_t sum = 0;
  for (const Step& step : steps_) sum += static_cast<std::uint64_t>(encoded_bytes(wire_, step.numel));
  return sum;
}

std::uint32_t EdgeSchedule::step_after(std::uint64_t bytes) const {
  std::uint32_t step = 0;
  for (std::uint64_t end = 0; step < steps(); ++step) {
    end += static_cast<std::uint64_t>(encoded_bytes(wire_, steps_[step].numel));
    if (end > bytes) break;
  }
  return step;
}

RingPhase EdgeSchedule::phase_of_step(std::uint32_t step) const {
  return step < steps() ? steps_[step].phase : RingPhase::kAllGather;
}

std::uint32_t EdgeSchedule::next_own(std::uint32_t sequence) const {
  while (sequence < frames()) {
    const std::size_t step = step_of(sequence);
    if (step % steps_a_bucket() == 0) return sequence;
    // The next bucket's first step; when that has no frame, this looks again from the frame after it.
    sequence = steps_[(step / steps_a_bucket() + 1) * steps_a_bucket()].first_sequence;
  }
  return frames();
}

std::optional<std::uint32_t> EdgeSchedule::forwarded(std::uint32_t sequence, const EdgeSchedule& outbound) const {
  const std::size_t step = step_of(sequence);
  if (step % steps_a_bucket() == steps_a_bucket() - 1) return std::nullopt;
  return outbound.steps_[step + 1].first_sequence + (sequence - steps_[step].first_sequence);
}

std::optional<std::uint32_t> EdgeSchedule::replaces(std::uint32_t sequence, const EdgeSchedule& outbound) const {
  const std::size_t step = step_of(sequence);
  if (steps_[step].phase == RingPhase::kReduceScatter || !encodes_own()) return std::nullopt;
  // This edge's step s and the own edge's step s + 1 - N carry the same chunk.
  const std::size_t before = step + 1 - static_cast<std::size_t>(world_size_);
  return outbound.steps_[before].first_sequence + (sequence - steps_[step].first_sequence);
}

bool EdgeSchedule::makes_final(std::uint32_t sequence) const {
  if (!encodes_own()) return true;
  return step_of(sequence) % steps_a_bucket() + 2 >= static_cast<std::size_t>(world_size_);
}

}  // namespace atl
