// The threads of an island's local ranks: runs one function on all of them at once and waits until the last is done.
// Owned by the engine, driven by the engine's calling thread.
#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "net/base/mutex.h"
#include "net/base/result.h"
#include "trainer/fsdp/shared_memory_communicator.h"

namespace atl {

class RankThreads {
 public:
  // `threads_per_rank`: how many the tensor library may use inside one rank. The group outlives this.
  RankThreads(SharedMemoryGroup& group, int threads_per_rank);
  ~RankThreads();

  // `task` may throw: the other ranks' collectives are then aborted, and the first cause is returned.
  Status run(const std::function<void(LocalRank)>& task);

 private:
  void serve(LocalRank rank, int threads_per_rank);
  void note_failure(LocalRank rank, const char* what, bool secondary) noexcept;

  SharedMemoryGroup& group_;
  Mutex mutex_;
  CondVar started_;
  CondVar finished_;
  const std::function<void(LocalRank)>* task_ ATOLL_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t generation_ ATOLL_GUARDED_BY(mutex_) = 0;
  int running_ ATOLL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ATOLL_GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ ATOLL_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

}  // namespace atl
