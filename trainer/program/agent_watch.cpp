#include "trainer/program/agent_watch.h"

#include <spdlog/spdlog.h>

#include <cstdlib>

#include "net/base/mutex.h"
#include "net/control/trainer_contract.h"

namespace atl {

std::optional<std::chrono::seconds> agent_patience() {
  const char* text = std::getenv(kAgentPatienceVariable);
  const long seconds = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  if (seconds <= 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

AgentWatch::AgentWatch(std::optional<std::chrono::seconds> patience, std::function<void()> on_gone)
    : patience_(patience), on_gone_(std::move(on_gone)) {
  if (patience_) thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

AgentWatch::~AgentWatch() = default;

void AgentWatch::heard() {
  MutexLock lock(mutex_);
  heard_at_ = Clock::now();
}

void AgentWatch::watch(const std::stop_token& stop) {
  {
    MutexLock lock(mutex_);
    while (!stop.stop_requested() && Clock::now() < heard_at_ + *patience_) {
      changed_.wait(lock, stop, Deadline::at(heard_at_ + *patience_), [] { return false; });
    }
  }
  if (stop.stop_requested()) return;
  spdlog::warn("agent gone=true silent_seconds={}", patience_->count());
  on_gone_();
}

}  // namespace atl
