// A trainer that an agent started ends when there is no agent any more. Owns its thread; heard() from any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "net/base/deadline.h"

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
  void watch(std::stop_token stop);

  const std::optional<std::chrono::seconds> patience_;
  const std::function<void()> on_gone_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Clock::time_point heard_at_ = Clock::now();  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace atl
