// Which islands asked this one about which chunks: they have them now, or soon do. It is a hint, and bounded: of each
// island the chunks that it asked for last. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "net/base/id.h"
#include "net/base/mutex.h"
#include "net/data/chunk_peers.h"

namespace atl {

class HolderBook {
 public:
  // Of ten thousand chunks that an island of fourteen keeps, each of the others is the home of seven hundred.
  static constexpr std::size_t kMostOfIsland = 1024;
  static constexpr std::size_t kMostIslands = 256;

  void note(const IslandId& island, ChunkId chunk);
  // It has not.
  void forget(const IslandId& island, ChunkId chunk);
  // kMaxHolders at most, without `asker`; another one is the first each time, so that not one island serves all.
  std::vector<IslandId> holders(ChunkId chunk, const IslandId& asker);

 private:
  struct Asked {
    std::set<ChunkId> chunks;
    std::deque<ChunkId> order;  // the one that was asked for first before the others
  };

  Mutex mutex_;
  std::map<IslandId, Asked> asked_ ATOLL_GUARDED_BY(mutex_);
  std::size_t turn_ ATOLL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl
