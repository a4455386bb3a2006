// What the demo has seen of its run so far: the hub's state, remembered beyond what the hub itself keeps. Plain values,
// fed by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/control/hub_state.h"
#include "net/control/island_state.h"

namespace atl {

// What does not change during a run.
struct DemoRunFacts {
  std::uint64_t parameters = 0;  // of the model; 0 until an island has said
  std::uint64_t text_bytes = 0;
  std::uint32_t islands = 0;  // at the start
  std::uint32_t inner_steps = 0;
  std::uint64_t tokens_per_step = 0;  // of one island
  double limit_seconds = 0;           // 0: none
  std::uint32_t limit_rounds = 0;     // 0: none
};

class DemoHistory {
 public:
  void observe(const HubState& state, double now_seconds);
  // What an island itself says of its work, which the hub hears a heartbeat later.
  void correct(const IslandState& island);
  // From now on everything below is of this outer step: what the islands do after it does not count.
  void end_at(std::uint32_t outer_step) { end_ = outer_step; }
  // A line about what happened, for people.
  void note(std::string event) { events_.push_back(std::move(event)); }

  const HubState& state() const { return state_; }
  // Rounds committed, no more than where the history ends.
  std::uint32_t outer_step() const { return end_ ? std::min(*end_, state_.outer_step) : state_.outer_step; }
  const std::map<std::uint32_t, HubState::Round>& rounds() const { return rounds_; }
  // Also those that are gone, with what was last known of them; by name.
  const std::vector<HubState::Island>& islands() const { return islands_; }
  const std::vector<HubState::Validation>& validations() const { return validations_; }
  const std::vector<std::string>& events() const { return events_; }

  bool training() const { return training_since_.has_value(); }
  double training_seconds(double now_seconds) const { return training_since_ ? now_seconds - *training_since_ : 0; }
  double seconds_to_last_commit() const { return training_since_ ? last_commit_ - *training_since_ : 0; }
  // When anything last moved: an inner step, a phase, a commit.
  double last_progress_seconds() const { return last_progress_; }

  std::uint64_t committed_tokens() const;
  double tokens_per_second() const;  // committed tokens over the time until the last commit
  std::uint64_t bytes_sent() const;
  // What data-parallel training of the same inner steps with fp32 gradients would have sent: 2(N-1)/N * 4 bytes a
  // parameter, step and island.
  double data_parallel_bytes(const DemoRunFacts& facts) const;
  double compute_utilisation() const;  // of all islands: time in inner steps over all time
  // True when parameters and momentum were equal after every round; empty while one is not known.
  std::optional<bool> outer_hashes_equal() const;

 private:
  bool figures_count(const HubState& state) const;
  void remember_island(const HubState::Island& island);

  HubState state_;
  std::map<std::uint32_t, HubState::Round> rounds_;
  std::vector<HubState::Island> islands_;
  std::vector<HubState::Validation> validations_;
  std::vector<std::string> events_;
  std::optional<std::uint32_t> end_;
  std::optional<double> training_since_;
  double last_commit_ = 0;
  double last_progress_ = 0;
};

}  // namespace atl
