// What `atoll join` and `atoll train` show while their trainer comes and runs: what an agent and its trainer tell by
// events, as lines for a person. take() on any thread, show() on the console's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "net/base/deadline.h"
#include "net/base/mailbox.h"
#include "net/control/events.h"

namespace atl {

class JoinProgress {
 public:
  explicit JoinProgress(Console& console) : console_(console) {}

  // Of more than 1024 that were not shown the last are lost.
  void take(const ControlEvent& event) { (void)events_.push(event); }
  // Prints what came since: a line a round, how far one is that takes long, a hub that does not answer once and not at
  // every try, a download every few seconds, and that nothing happens because a round waits for others.
  void show(Clock::time_point now = Clock::now());

 private:
  void show(const ControlEvent& event);
  void show_step();
  void show_round(const IslandState& state);
  void show_validation(const event::Validated& validated);
  void show_scores(const event::Evaluated& evaluated);
  void show_hub(const event::HubLink& link);
  void show_trouble(const IslandState& state);
  void show_end(const NodeState& state);
  void look_whether_it_waits(const IslandState& state);
  void show_pauses(const NodeState& state);
  void show_wish(const NodeState& state);
  void show_stage(const event::JoinProgress& progress);
  void show_transfer(const event::Transfer& transfer);
  void print(const std::string& line);

  static constexpr std::size_t kMaxEvents = 1024;

  Console& console_;
  Mailbox<ControlEvent> events_{kMaxEvents};
  std::map<Download, Clock::time_point> transfers_;  // under way, by what they are of: shown last
  std::string hub_text_;                             // why it does not answer; empty: it does
  std::string trouble_;                              // shown last
  std::vector<OwnersRule> pauses_;                   // that were shown as pausing
  bool is_paused_ = false;                           // by the owner, and that was shown
  std::optional<Clock::time_point> waits_since_;     // for a round to begin; empty: it does not, or that was said
  std::string waits_for_;                            // while it waits; empty: it does not
  IslandState island_;                               // as it was told last
  Clock::time_point now_{}, said_at_{};              // of the last look, of the last line
  bool has_said_a_step_ = false;
  double ended_at_ = 0;                    // when the trainer ended whose end was shown last: since 1970
  JoinStage stage_ = JoinStage::kUnknown;  // shown last
};

}  // namespace atl
