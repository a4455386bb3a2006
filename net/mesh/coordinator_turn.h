// What every part of the RoundCoordinator works with during one event: what the run agreed on, the time, and the list
// of actions that it adds to. One thread; owned by the RoundCoordinator.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "net/base/deadline.h"
#include "net/mesh/coordinator_types.h"

namespace atl {

class CoordinatorTurn {
 public:
  using Actions = std::vector<CoordinatorAction>;

  // `fragment_numels`: what is averaged of each fragment, by FragmentId; empty: not known.
  explicit CoordinatorTurn(RunConfig run, std::vector<std::int64_t> fragment_numels = {})
      : run_(std::move(run)), fragment_numels_(std::move(fragment_numels)) {}

  const RunConfig& run() const { return run_; }
  std::int64_t numel_of(FragmentId fragment) const {  // 0: not known
    return fragment.value < fragment_numels_.size() ? fragment_numels_[fragment.value] : 0;
  }
  Clock::time_point now() const { return now_; }
  // What usually takes no time is waited for no longer.
  Clock::duration patience() const { return 10 * std::max<Clock::duration>(run_.straggler_grace, run_.lost_after); }

  void begin(Clock::time_point now) { now_ = now; }
  void act(CoordinatorAction action) { actions_.push_back(std::move(action)); }
  void send(const IslandId& island, HubMessage message) { act(SendTo{island, std::move(message)}); }
  void publish(CoordinatorNews news) { act(Publish{std::move(news)}); }
  // As its organiser decided since.
  const std::optional<DecidedDecay>& decay() const { return decay_; }
  void set_decay(std::optional<DecidedDecay> decay) { decay_ = decay; }
  const RunMixture& mixture() const { return mixture_; }
  void set_mixture(RunMixture mixture) { mixture_ = std::move(mixture); }
  Actions take() { return std::exchange(actions_, {}); }  // what was added since

 private:
  const RunConfig run_;
  const std::vector<std::int64_t> fragment_numels_;
  Clock::time_point now_;
  std::optional<DecidedDecay> decay_;
  RunMixture mixture_;
  Actions actions_;
};

}  // namespace atl
