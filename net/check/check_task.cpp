#include "net/check/check_task.h"

namespace atl {
CheckTask::~CheckTask() {
  stop_.raise("the program ends");
  if (thread_.joinable()) thread_.join();  // without the lock, which it takes at its end
}

Status CheckTask::run(bool full) {
  const MutexLock lock(mutex_);
  if (running_) return Error{ErrorCode::kPermissionDenied, "a check is under way; wait for its last event"};
  if (thread_.joinable()) thread_.join();  // it has done its work
  running_ = true;
  thread_ = std::jthread([this, full] { work(full); });
  return ok_status();
}

void CheckTask::work(bool full) {
  const Result<CheckReport> report = check_({.full = full}, stop_, on_row_);
  {
    const MutexLock lock(mutex_);
    running_ = false;
  }
  on_end_(report);
}

}  // namespace atl
