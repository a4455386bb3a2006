#include "app/agent/agent_job.h"

#include <fmt/format.h>

#include "net/base/mutex.h"

namespace atl {

Status AgentJob::start(const std::string& what, Work work) {
  if (runs_.exchange(true)) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("{}: this agent is at such work already; try again when it is done", what)};
  }
  if (thread_.joinable()) thread_.join();  // it is over
  const auto stop = std::make_shared<AbortSignal>();
  {
    MutexLock lock(mutex_);
    stop_ = stop;
  }
  thread_ = std::jthread([this, stop, work = std::move(work)] {
    work(*stop);
    runs_ = false;
  });
  return ok_status();
}

void AgentJob::stop(const std::string& why) {
  MutexLock lock(mutex_);
  if (stop_) stop_->raise(why);
}

}  // namespace atl
