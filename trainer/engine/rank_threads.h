// The threads of an island's local ranks: runs one function on all of them at once and waits until the last is done.
// Owned by the engine, driven by the engine's calling thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

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
  std::mutex mutex_;
  std::condition_variable started_;
  std::condition_variable finished_;
  // guarded by mutex_
  const std::function<void(LocalRank)>* task_ = nullptr;
  std::uint64_t generation_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  std::optional<Error> failure_;
  std::vector<std::jthread> threads_;
};

}  // namespace atl
