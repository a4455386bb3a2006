// Lets the mesh thread stop the all-reduce in which a sync lane is blocked: aborts and newer attempts act at once,
// also when they overtake the start of the attempt that they end. Rounds may be trained again after a rollback, and
// their attempts count from 1 again: what was aborted, and what still waits in the lane's queue, is told apart by the
// welcomes between. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "net/base/abort_signal.h"
#include "net/base/id.h"
#include "net/base/mutex.h"

namespace atl {

class AttemptGate {
 public:
  // Lane's thread: the signal that ends this attempt; raised already when its abort came first.
  std::shared_ptr<AbortSignal> begin(OuterStep round, Attempt attempt);
  // Mesh thread, at each welcome of the hub: all attempts of before it are over, and none of those after it.
  void welcome();
  // Lane's thread: it has come to the next welcome in its queue.
  void pass_welcome();
  // Mesh thread: this attempt and all before it are over.
  void abort_through(OuterStep round, Attempt attempt, const std::string& reason);
  // Any thread: this and every later attempt ends at once.
  void close(const std::string& reason);

 private:
  using Position = std::pair<OuterStep, Attempt>;
  Mutex mutex_;
  Position current_ ATOLL_GUARDED_BY(mutex_);
  std::shared_ptr<AbortSignal> signal_ ATOLL_GUARDED_BY(mutex_);
  Position aborted_ ATOLL_GUARDED_BY(mutex_);  // through this one; attempts count from 1
  std::string abort_reason_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t welcomes_ ATOLL_GUARDED_BY(mutex_) = 0, passed_ ATOLL_GUARDED_BY(mutex_) = 0;
  bool closed_ ATOLL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl
