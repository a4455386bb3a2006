// What people see of a run: builds HubState from the coordinator and its news, and puts news into JSON events. On the
// hub's thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "net/control/hub_state.h"
#include "net/hub/evaluation_curves.h"
#include "net/hub/run_past.h"
#include "net/mesh/round_coordinator.h"
#include "net/wire/check.h"

namespace atl {

struct NewsEvent {
  std::string_view name;  // "round.commit"
  nlohmann::json data;
};
NewsEvent to_event(const CoordinatorNews& news);

// For members that check their nodes. `state` is the one of now.
CheckAbout check_about(const RunConfig& run, const RoundCoordinator& coordinator, const HubState& state);

class HubView {
 public:
  // `state` holds what does not change, and the rounds, validations and evaluations of before a restart, of which
  // `curves` has all points.
  // `sources`: names of the run's sources of data.
  explicit HubView(HubState state, std::vector<std::string> sources = {}, EvaluationCurves curves = {})
      : state_(std::move(state)), sources_(std::move(sources)), curves_(std::move(curves)) {}

  void learn(const CoordinatorNews& news);
  // All rounds and validations that count now. learn() counts on from there.
  void set_past(RunPast past) { past_ = std::move(past); }
  ToldPast past() const { return past_.told(); }
  // In how many rounds each island's work was accepted, also before it went and came back. learn() counts on from
  // there.
  void set_accepted(std::map<IslandId, std::uint32_t> rounds) { accepted_ = std::move(rounds); }
  HubState build(const RoundCoordinator& coordinator, Clock::time_point now) const;

 private:
  std::uint32_t accepted_of(const IslandId& island) const;
  std::optional<HubState::Mixture> mixture_of(const RunMixture& mixture) const;

  HubState state_;
  std::vector<std::string> sources_;
  EvaluationCurves curves_;
  RunPast past_;
  std::map<IslandId, std::uint32_t> accepted_;
  std::map<IslandId, HubState::Island> gone_;  // at most HubState::kMaxIslands
};

}  // namespace atl
