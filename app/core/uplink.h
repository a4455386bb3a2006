// How this island reaches the others, as its trainer tells: whether the hub answers, and what is being fetched. Owned
// by a Node; GUI thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/core/agent_link.h"
#include "app/core/node_state.h"

namespace atl {

struct HubLink {
  bool up = false;
  std::optional<double> since;             // seconds since 1970; empty: from before somebody looked
  std::string cause = {};                  // while it does not answer
  std::optional<double> tries_until = {};  // seconds since 1970, while it does not answer
};

struct Transfer {
  std::string what;  // "data", "state"
  bool failed = false;
  std::uint64_t done_bytes = 0, total_bytes = 0;
  std::optional<double> bytes_per_second, seconds_left;
  std::string text;  // why it failed
};

class Uplink {
 public:
  // Empty: not known, as while no trainer runs.
  const std::optional<HubLink>& hub() const { return hub_; }
  // Under way, or failed and not begun again; of each kind one at most.
  const std::vector<Transfer>& transfers() const { return transfers_; }

  // Kept events, too: the last one of them is how it is. `state`: what the event says, where it says one.
  void take(const ControlEvent& event, const NodeState* state);
  void reset();  // events were missed

 private:
  void takeHub(const ControlEvent& event);
  void takeTransfer(const nlohmann::json& data);
  void takeState(const NodeState& state, double time);

  std::optional<std::int64_t> trainer_;  // its process
  std::optional<HubLink> hub_;
  std::vector<Transfer> transfers_;
};

}  // namespace atl
