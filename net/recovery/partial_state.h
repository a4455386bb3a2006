// An outer state that comes together: each chunk is there, and of some outer step, or it is not. Owned by who fetches;
// one thread, but for the values of different chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/disk/snapshot.h"
#include "net/recovery/outer_state.h"

namespace atl {

class PartialState {
 public:
  explicit PartialState(std::uint64_t numel);

  std::uint64_t numel() const { return numel_; }
  std::uint64_t state_bytes() const { return 2 * sizeof(float) * numel_; }
  std::uint64_t chunks() const { return chunks_.size(); }
  std::uint64_t chunk_bytes(std::uint64_t index) const { return 2 * parameters(index).size_bytes(); }

  const std::optional<StoredChunk>& chunk(std::uint64_t index) const { return chunks_[index]; }
  std::span<const float> parameters(std::uint64_t index) const { return of_chunk(std::span(parameters_), index); }
  std::span<const float> momentum(std::uint64_t index) const { return of_chunk(std::span(momentum_), index); }
  std::span<float> parameters(std::uint64_t index) { return of_chunk(std::span(parameters_), index); }
  std::span<float> momentum(std::uint64_t index) { return of_chunk(std::span(momentum_), index); }

  // As they lie in a chunk's bytes: parameters, then momentum.
  void put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes);
  // Of values that stay as they are, or were changed in place.
  void mark(std::uint64_t index, const StoredChunk& chunk) { chunks_[index] = chunk; }
  void forget(std::uint64_t index) { chunks_[index].reset(); }
  // Of chunks that are not there: what this island holds, of `version`, read and hashed anew on all processors. What it
  // said of its chunks before may be older than what its memory has become.
  void copy_from(const OuterStateSource& own, OuterStep version);

  FetchedState release(OuterStep version);  // holds nothing then

 private:
  const std::uint64_t numel_;
  std::vector<float> parameters_, momentum_;
  std::vector<std::optional<StoredChunk>> chunks_;
};

}  // namespace atl
