#include "app/agent/agent_history.h"

#include <spdlog/spdlog.h>

#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRetryOpen{60};

}  // namespace

void AgentHistory::turn(Clock::time_point now) {
  if (!store_ && now >= open_again_) {
    const Status made = make_directories(file_.parent_path(), FileMode::kPrivate);
    auto opened = made.ok() ? HistoryStore::open(file_, limits_) : Result<std::unique_ptr<HistoryStore>>(made.error());
    open_again_ = now + kRetryOpen;
    if (opened.ok()) {
      store_ = std::move(*opened);
      feed_.emplace(*store_);
      if (!store_->notice().empty()) spdlog::warn("history notice=\"{}\"", store_->notice());
    }
    why_closed_ = opened.ok() ? std::string() : opened.error().message;
  }
  while (auto event = events_.try_pop()) {
    if (feed_) feed_->take(*event, now);
  }
  if (feed_) feed_->tick(now);
}

void AgentHistory::flush() {
  turn(Clock::now());
  if (feed_) feed_->flush();
}

std::string AgentHistory::trouble() const {
  if (!feed_) return why_closed_;
  return feed_->trouble().empty() ? store_->notice() : feed_->trouble();
}

}  // namespace atl
