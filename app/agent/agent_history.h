// What the agent writes down of its island: the trainer's events, from whichever thread they come, into the history
// that HistoryFeed keeps. Never fails: without a disk the island trains on, and trouble() says what is not kept.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/agent/history/history_feed.h"
#include "net/base/mailbox.h"

namespace atl {

class AgentHistory {
 public:
  AgentHistory(std::filesystem::path file, HistoryLimits limits) : file_(std::move(file)), limits_(limits) {}

  void push(HeardEvent event) { (void)events_.push(std::move(event)); }  // any thread; of too many the last are lost

  // ---- the agent's loop
  void turn(Clock::time_point now);
  void flush();
  std::string trouble() const;  // for a person; empty: all is well

 private:
  static constexpr std::size_t kMaxEvents = 4096;

  const std::filesystem::path file_;
  const HistoryLimits limits_;
  Mailbox<HeardEvent> events_{kMaxEvents};
  std::unique_ptr<HistoryStore> store_;
  std::optional<HistoryFeed> feed_;
  Clock::time_point open_again_{};
  std::string why_closed_;
};

}  // namespace atl
