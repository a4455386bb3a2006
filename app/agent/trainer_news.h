// What the trainer's line (trainer_link.h) brings, passed on to whom it concerns: its state to the board and to the
// loop, its events, with the agent's part beside each state, to the board, to whoever subscribed, to the history and,
// while a joining is followed, to the loop. Owned by the agent, whose loop calls it. What the line brings comes on the
// line's thread, and so do the calls of Hearers.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "app/agent/supervisor.h"
#include "app/agent/trainer_link.h"

namespace atl {

class AgentBoard;
class AgentHistory;
class ContributionBook;

class TrainerNews {
 public:
  struct Hearers {
    std::function<void(const TrainerAnswered& answer)> answered;
    std::function<void(ControlEvent event)> said;  // by a trainer on its way to its first step
    std::function<void(const ControlEvent& event)> publish;
    std::function<void(const ControlEvent& event)> on_event;  // may be empty
  };

  // What is referred to outlives it.
  TrainerNews(AgentBoard& board, AgentHistory& history, ContributionBook& contributions, Hearers hearers)
      : board_(board), history_(history), contributions_(contributions), hearers_(std::move(hearers)) {}

  // ---- the agent's loop
  void listen(std::filesystem::path socket);  // once, until it is destroyed
  void expect_another();                      // trainer: of it the history has heard nothing
  void take_over() { taken_over_ = true; }    // what it did before is history
  bool taken_over() const { return taken_over_; }
  void follow_joining(bool follow) { joining_ = follow; }
  void set_caps(const TransferCaps& caps);  // that each trainer is told from now on

 private:
  void hear_state(const IslandState& state);
  void hear_event(HeardEvent event);

  AgentBoard& board_;
  AgentHistory& history_;
  ContributionBook& contributions_;
  const Hearers hearers_;
  // Set by the loop, read by the line:
  std::atomic<bool> taken_over_{false};
  std::atomic<bool> joining_{false};
  std::atomic<bool> is_new_{true};   // to the history
  TransferCaps caps_;                // the loop's
  std::optional<TrainerLink> link_;  // last
};

}  // namespace atl
