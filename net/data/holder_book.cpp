#include "net/data/holder_book.h"

#include <algorithm>

namespace atl {

void HolderBook::note(const IslandId& island, ChunkId chunk) {
  const MutexLock lock(mutex_);
  if (!asked_.contains(island) && asked_.size() >= kMostIslands) asked_.erase(asked_.begin());
  Asked& asked = asked_[island];
  if (!asked.chunks.insert(chunk).second) return;
  asked.order.push_back(chunk);
  if (asked.order.size() <= kMostOfIsland) return;
  asked.chunks.erase(asked.order.front());
  asked.order.pop_front();
}

void HolderBook::forget(const IslandId& island, ChunkId chunk) {
  const MutexLock lock(mutex_);
  const auto found = asked_.find(island);
  if (found == asked_.end() || found->second.chunks.erase(chunk) == 0) return;
  std::erase(found->second.order, chunk);
}

std::vector<IslandId> HolderBook::holders(ChunkId chunk, const IslandId& asker) {
  std::vector<IslandId> holders;
  const MutexLock lock(mutex_);
  for (const auto& [island, asked] : asked_) {
    if (island != asker && asked.chunks.contains(chunk)) holders.push_back(island);
  }
  if (holders.empty()) return holders;
  std::ranges::rotate(holders, holders.begin() + static_cast<std::ptrdiff_t>(turn_++ % holders.size()));
  if (holders.size() > kMaxHolders) holders.resize(kMaxHolders);
  return holders;
}

}  // namespace atl
