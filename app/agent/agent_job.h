// The agent's long work: one job at a time, on a thread of its own. Owned by the agent; start() from one thread, stop()
// from any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/base/result.h"

namespace atl {

class AgentJob {
 public:
  using Work = std::function<void(const AbortSignal& stop)>;

  ~AgentJob() { stop("the agent ends"); }

  // kPermissionDenied while another one runs; `what` names it then.
  Status start(const std::string& what, Work work);
  void stop(const std::string& why);  // raises the signal of the one that runs

 private:
  std::atomic<bool> runs_{false};
  Mutex mutex_;
  std::shared_ptr<AbortSignal> stop_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

}  // namespace atl
