// What collectives the local ranks have issued, one after the other. NCCL takes it on trust that every rank issues the
// same ones: two that do not would wait for each other for good, or mix up their bytes. Owned by the NcclGroup. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/base/mutex.h"
#include "trainer/fsdp/collective_call.h"

namespace atl {

class CollectiveSequence {
 public:
  explicit CollectiveSequence(int world_size);

  // Before the rank issues `call`. What is wrong, when another rank has issued something else in its place.
  std::optional<std::string> note(LocalRank rank, const CollectiveCall& call);

  // How far each rank is, and the last call of the one that is farthest.
  struct Progress {
    std::vector<std::uint64_t> issued;
    std::uint64_t most = 0;
    CollectiveCall last;
  };
  Progress progress() const;

 private:
  // Ranks run apart by what a host enqueues ahead of its GPU, a step or two. Should one run farther, the hash, which is
  // of all calls so far, tells it at the next call that can be compared.
  static constexpr std::size_t kKept = 4096;
  struct Entry {
    std::uint64_t hash = 0;
    CollectiveCall call;
  };
  struct Rank {
    std::uint64_t issued = 0;
    std::uint64_t hash = 0;
    std::vector<Entry> entries;  // call n, from 1, at n % kKept
  };

  mutable Mutex mutex_;
  std::vector<Rank> ranks_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
