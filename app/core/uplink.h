// How this island reaches the others, as its trainer tells: whether the hub answers, and what is being fetched. Owned
// by a Node; GUI thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/control/events.h"

namespace atl {

struct HubReach {
  bool up = false;
  std::optional<double> since;             // seconds since 1970; empty: from before somebody looked
  std::string cause = {};                  // while it does not answer
  std::optional<double> tries_until = {};  // seconds since 1970, while it does not answer
};

class Uplink {
 public:
  // Empty: not known, as while no trainer runs.
  const std::optional<HubReach>& hub() const { return hub_; }
  // Under way, or failed and not begun again; of each kind one at most.
  const std::vector<event::Transfer>& transfers() const { return transfers_; }

  // Kept events, too: the last one of them is how it is.
  void take(const HeardEvent& event);
  void reset();  // events were missed

 private:
  void takeHub(const event::HubLink& told, double time);
  void takeTransfer(const event::Transfer& told);
  void takeState(const NodeState& state, double time);

  std::optional<std::int64_t> trainer_;  // its process
  std::optional<HubReach> hub_;
  std::vector<event::Transfer> transfers_;
};

}  // namespace atl
