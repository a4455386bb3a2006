// A trainer that an agent started ends when there is no agent any more. Owns its thread; heard() from any.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "net/base/deadline.h"
#include "net/base/mutex.h"

namespace atl {

// What the agent that started this process said (kAgentPatienceVariable); empty: nobody did.
std::optional<std::chrono::seconds> agent_patience();

class AgentWatch {
 public:
  // Without patience it watches nothing. `on_gone` is called once, on the watch's thread.
  AgentWatch(std::optional<std::chrono::seconds> patience, std::function<void()> on_gone);
  ~AgentWatch();

  void heard();

 private:
  void watch(const std::stop_token& stop);

  const std::optional<std::chrono::seconds> patience_;
  const std::function<void()> on_gone_;
  Mutex mutex_;
  StoppableCondVar changed_;
  Clock::time_point heard_at_ ATOLL_GUARDED_BY(mutex_) = Clock::now();
  std::jthread thread_;
};

}  // namespace atl
