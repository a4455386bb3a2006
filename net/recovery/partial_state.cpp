#include "net/recovery/partial_state.h"

#include <algorithm>
#include <utility>

#include "net/base/parallel.h"

namespace atl {

PartialState::PartialState(std::uint64_t numel)
    : numel_(numel), parameters_(numel), momentum_(numel), chunks_(state_chunks(numel)) {}

void PartialState::put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) {
  const auto head = std::as_writable_bytes(parameters(index));
  std::ranges::copy(bytes.first(head.size()), head.begin());
  std::ranges::copy(bytes.subspan(head.size()), std::as_writable_bytes(momentum(index)).begin());
  chunks_[index] = chunk;
}

void PartialState::copy_from(const OuterStateSource& own, OuterStep version) {
  parallel_for(chunks_.size(), [&](std::size_t index) {
    if (chunks_[index]) return;
    const Result<Bytes> bytes = own.copy_chunk(version, index);
    if (bytes.ok() && bytes->size() == chunk_bytes(index)) put(index, {version, sha256(*bytes)}, *bytes);
  });
}

FetchedState PartialState::release(OuterStep version) {
  chunks_.clear();
  return {version, std::exchange(parameters_, {}), std::exchange(momentum_, {})};
}

}  // namespace atl
