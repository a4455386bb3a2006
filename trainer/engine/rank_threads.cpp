#include "trainer/engine/rank_threads.h"

#include <fmt/format.h>

#include "net/base/mutex.h"
#include "trainer/fsdp/communicator.h"

namespace atl {

RankThreads::RankThreads(DeviceGroup& group) : group_(group) {
  for (int rank = 0; rank < group.world_size(); ++rank) {
    threads_.emplace_back([this, rank] { serve(LocalRank{rank}); });
  }
}

RankThreads::~RankThreads() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
}

Status RankThreads::run(const std::function<void(LocalRank)>& task) {
  if (lost_) return *lost_;
  MutexLock lock(mutex_);
  task_ = &task;
  running_ = group_.world_size();
  failure_.reset();
  ++generation_;
  started_.notify_all();
  // Collectives have a deadline, so each rank comes back.
  finished_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return running_ == 0; });
  if (!failure_) return ok_status();
  if (!group_.reset()) lost_ = *failure_;
  return *failure_;
}

void RankThreads::serve(LocalRank rank) {
  std::uint64_t seen = 0;
  for (;;) {
    MutexLock lock(mutex_);
    started_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return stopping_ || generation_ != seen; });
    if (stopping_) return;
    seen = generation_;
    const auto* task = task_;
    lock.unlock();
    try {
      (*task)(rank);
    } catch (const CollectiveAborted& aborted) {
      note_failure(rank, aborted.what(), true);
    } catch (const std::exception& error) {
      note_failure(rank, error.what(), false);
    }
    lock.lock();
    if (--running_ == 0) finished_.notify_all();
  }
}

// A rank that was only pulled down by another's failure has nothing to add to it.
void RankThreads::note_failure(LocalRank rank, const char* what, bool secondary) noexcept {
  try {
    group_.abort(what);
    const MutexLock lock(mutex_);
    const bool known = failure_ && failure_->code != ErrorCode::kTimeout;
    if (known || (secondary && failure_)) return;
    failure_ = Error{secondary ? ErrorCode::kTimeout : ErrorCode::kInternal,
                     fmt::format("local rank {}: {}", rank.value, what)};
  } catch (...) {  // out of memory while reporting: the abort above has already freed the others
  }
}

}  // namespace atl
