#include "net/data/sequence_map.h"

#include <algorithm>

#include "net/data/permutation.h"

namespace atl {

SequenceMap::SequenceMap(std::uint64_t seed, std::uint32_t source, const SourceShape& shape)
    : key_(mix_bits(mix_bits(seed) + source)) {
  const std::uint64_t length = shape.sequence_length, chunk = shape.chunk_tokens;
  if (shape.tokens == 0 || length == 0 || chunk < length) return;
  whole_chunks_ = (shape.tokens - 1) / chunk;
  a_chunk_ = chunk / length;
  // No token follows the last one, which is a label alone.
  const std::uint64_t last_tokens = shape.tokens - whole_chunks_ * chunk;
  sequences_ = whole_chunks_ * a_chunk_ + (last_tokens - 1) / length;
}

SequencePlace SequenceMap::in_file_order(std::uint64_t index) const {
  return {index / a_chunk_, static_cast<std::uint32_t>(index % a_chunk_)};
}

SequencePlace SequenceMap::at(std::uint64_t index) const {
  const std::uint64_t epoch = index / sequences_, in_epoch = index % sequences_;
  const std::uint64_t epoch_key = mix_bits(key_ ^ epoch);
  const std::uint64_t window = in_epoch / (kWindowChunks * a_chunk_), first = window * kWindowChunks * a_chunk_;
  const std::uint64_t size = std::min(kWindowChunks * a_chunk_, sequences_ - first);
  const std::uint64_t slot = first + permute(mix_bits(epoch_key + 1 + window), in_epoch - first, size);
  SequencePlace place = in_file_order(slot);
  if (place.chunk < whole_chunks_) place.chunk = permute(epoch_key, place.chunk, whole_chunks_);
  return place;
}

}  // namespace atl
