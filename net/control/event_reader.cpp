#include "net/control/event_reader.h"

#include <nlohmann/json.hpp>

namespace atl {

Result<std::vector<HeardEvent>> EventReader::read(std::string_view name, const nlohmann::json& data, double time,
                                                  std::uint64_t seq, bool kept) {
  ATOLL_ASSIGN_OR_RETURN(ControlEvent event, decode_event(name, data));
  if (NodeState* state = state_in(event)) {
    if (!state->has_agent) complete(*state);
    if (!kept) learn(*state);
  }
  std::vector<HeardEvent> heard;
  if (auto untold = rounds_.take(event)) heard.push_back({std::move(*untold), 0, time, kept});
  heard.push_back({std::move(event), seq, time, kept});
  return heard;
}

void EventReader::learn(const NodeState& state) {
  if (state.has_agent) last_ = state;
}

void EventReader::forget() {
  rounds_ = {};
  last_.reset();
}

// The agent's part is as it was; the trainer does not know that it is to end.
void EventReader::complete(NodeState& state) const {
  if (!last_) return;
  state.has_agent = true;
  state.agent = last_->agent;
  state.disk_free_bytes = last_->disk_free_bytes;
  if (state.agent.followed == Wish::kFinish && state.island.pid > 0) state.island.state = IslandPhase::kFinishing;
}

}  // namespace atl
