// Reads the events of one peer, a trainer or an agent, in their order, and evens out what programs of before did not
// say: that a round is done (untold_rounds.h), and, of an agent, its own part of a state that its trainer told. The one
// place where older peers and recordings are made like those of now. One thread.
#pragma once

#include <vector>

#include "net/control/events.h"
#include "net/control/untold_rounds.h"

namespace atl {

class EventReader {
 public:
  // Mostly one; with a round that was not told, that comes first. kProtocol: it cannot be read.
  Result<std::vector<HeardEvent>> read(std::string_view name, const nlohmann::json& data, double time,
                                       std::uint64_t seq = 0, bool kept = false);
  // Of state.get.
  void learn(const NodeState& state);
  void forget();  // events were missed, or the peer is another one

 private:
  void complete(NodeState& state) const;

  UntoldRounds rounds_;
  std::optional<NodeState> last_;  // that an agent told whole
};

}  // namespace atl
