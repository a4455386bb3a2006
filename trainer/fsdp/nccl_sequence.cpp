#include "trainer/fsdp/nccl_sequence.h"

#include <fmt/format.h>

namespace atl {
namespace {

// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = (hash ^ value) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t extended(std::uint64_t hash, const CollectiveCall& call) {
  const auto kind = static_cast<std::uint64_t>(call.kind);
  return mix(mix(hash, kind << 8 | static_cast<std::uint64_t>(call.dtype)), call.elements);
}

}  // namespace

CollectiveSequence::CollectiveSequence(int world_size) : ranks_(static_cast<std::size_t>(world_size)) {
  for (Rank& rank : ranks_) rank.entries.resize(kKept);
}

std::optional<std::string> CollectiveSequence::note(LocalRank rank, const CollectiveCall& call) {
  const MutexLock lock(mutex_);
  Rank& mine = ranks_[static_cast<std::size_t>(rank.value)];
  const std::uint64_t number = ++mine.issued;
  mine.hash = extended(mine.hash, call);
  mine.entries[number % kKept] = {mine.hash, call};
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& peer = ranks_[i];
    if (peer.issued < number || peer.issued - number >= kKept) continue;
    const Entry& theirs = peer.entries[number % kKept];
    if (theirs.hash == mine.hash) continue;
    if (theirs.call == call) {
      return fmt::format("local ranks {} and {} disagree on a collective before their {}th, {}", rank.value, i, number,
                         to_string(call));
    }
    return fmt::format("local ranks {} and {} disagree on collective {}: {} on rank {}, {} on rank {}", rank.value, i,
                       number, to_string(call), rank.value, to_string(theirs.call), i);
  }
  return std::nullopt;
}

CollectiveSequence::Progress CollectiveSequence::progress() const {
  const MutexLock lock(mutex_);
  Progress progress;
  for (const Rank& rank : ranks_) {
    progress.issued.push_back(rank.issued);
    if (rank.issued <= progress.most) continue;
    progress.most = rank.issued;
    progress.last = rank.entries[rank.issued % kKept].call;
  }
  return progress;
}

}  // namespace atl
