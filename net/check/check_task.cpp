#include "net/check/check_task.h"

namespace atl {
CheckTask::~CheckTask() {
  stop_.raise("the program ends");
  if (thread_.joinable()) thread_.join();  // without the lock, which it takes at its end
}

Status CheckTask::run(Wanted wanted) {
  const MutexLock lock(mutex_);
  if (running_) return Error{ErrorCode::kPermissionDenied, "a check is under way; wait for its last event"};
  if (thread_.joinable()) thread_.join();  // it has done its work
  running_ = true;
  thread_ = std::jthread([this, wanted = std::move(wanted)] { work(wanted); });
  return ok_status();
}

void CheckTask::work(const Wanted& wanted) {
  const Result<CheckReport> report = check_(wanted, stop_, on_row_);
  {
    const MutexLock lock(mutex_);
    running_ = false;
  }
  on_end_(report);
}

}  // namespace atl
