// What people see of a run: builds HubState from the coordinator and its news, and puts news into JSON events. On the
// hub's thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "net/control/hub_state.h"
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
  // `state` holds what does not change, and the rounds and validations of before a restart.
  explicit HubView(HubState state) : state_(std::move(state)) {}

  void learn(const CoordinatorNews& news);
  HubState build(const RoundCoordinator& coordinator, Clock::time_point now) const;

 private:
  HubState state_;
  std::map<IslandId, HubState::Island> gone_;  // at most HubState::kMaxIslands
};

}  // namespace atl
