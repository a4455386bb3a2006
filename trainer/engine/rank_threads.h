// The threads of an island's local ranks: runs one function on all of them at once and waits until the last is done.
// Owned by the engine, driven by the engine's calling thread.
#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "net/base/mutex.h"
#include "net/base/result.h"
#include "trainer/device/device_group.h"

namespace atl {

class RankThreads {
 public:
  // The group outlives this.
  explicit RankThreads(DeviceGroup& group);
  ~RankThreads();

  // `task` may throw: the other ranks' collectives are then aborted, and the first cause is returned; of those, and of
  // all that is asked later, where the group cannot go on after that.
  Status run(const std::function<void(LocalRank)>& task);

 private:
  void serve(LocalRank rank);
  void note_failure(LocalRank rank, const char* what, bool secondary) noexcept;

  DeviceGroup& group_;
  Mutex mutex_;
  CondVar started_;
  CondVar finished_;
  const std::function<void(LocalRank)>* task_ ATOLL_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t generation_ ATOLL_GUARDED_BY(mutex_) = 0;
  int running_ ATOLL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ATOLL_GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ ATOLL_GUARDED_BY(mutex_);
  std::optional<Error> lost_;  // for good; of the thread that calls run()
  std::vector<std::jthread> threads_;
};

}  // namespace atl
