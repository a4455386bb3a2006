#include "net/check/check_task.h"

#include <nlohmann/json.hpp>

#include "net/base/mutex.h"

namespace atl {
CheckTask::~CheckTask() {
  stop_.raise("the program ends");
  if (thread_.joinable()) thread_.join();  // without the lock, which it takes at its end
}

Result<nlohmann::json> CheckTask::run(const nlohmann::json& params) {
  const bool given = params.is_object() && params.contains("full");
  if (!params.is_object() || (given && !params["full"].is_boolean())) {
    return Error{ErrorCode::kInvalidArgument, "check.run takes {\"full\": true or false}"};
  }
  const MutexLock lock(mutex_);
  if (running_) return Error{ErrorCode::kPermissionDenied, "a check is under way; wait for its last event"};
  if (thread_.joinable()) thread_.join();  // it has done its work
  running_ = true;
  thread_ = std::jthread([this, full = given && params["full"].get<bool>()] { work(full); });
  return nlohmann::json{{"started", true}};
}

void CheckTask::work(bool full) {
  const Result<CheckReport> report = check_(full, stop_, on_row_);
  {
    const MutexLock lock(mutex_);
    running_ = false;
  }
  on_end_(report);
}

}  // namespace atl
