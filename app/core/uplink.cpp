#include "app/core/uplink.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::size_t kMaxTextBytes = 2048;

// Of a trainer that the hub has welcomed.
bool is_welcome(IslandPhase phase) {
  return phase == IslandPhase::kRecovering || phase == IslandPhase::kWaiting || phase == IslandPhase::kTraining ||
         phase == IslandPhase::kSyncing || phase == IslandPhase::kFinishing;
}

}  // namespace

void Uplink::take(const HeardEvent& event) {
  if (const NodeState* state = state_in(event.what)) return takeState(*state, event.time);
  if (const auto* link = std::get_if<event::HubLink>(&event.what)) takeHub(*link, event.time);
  if (const auto* transfer = std::get_if<event::Transfer>(&event.what)) takeTransfer(*transfer);
}

void Uplink::reset() {
  trainer_.reset();
  hub_.reset();
  transfers_.clear();
}

void Uplink::takeHub(const event::HubLink& told, double time) {
  HubReach link{.up = told.up, .since = time};
  if (!link.up) {
    link.cause = told.text.substr(0, kMaxTextBytes);
    if (told.tries_for_seconds) link.tries_until = time + *told.tries_for_seconds;
  }
  hub_ = std::move(link);
}

void Uplink::takeTransfer(const event::Transfer& told) {
  if (told.what == Download::kUnknown) return;
  event::Transfer transfer = told;
  transfer.done_bytes = std::min(told.done_bytes, told.total_bytes);
  transfer.text = told.text.substr(0, kMaxTextBytes);
  std::erase_if(transfers_, [&](const event::Transfer& old) { return old.what == told.what; });
  if (told.status != DownloadStatus::kDone) transfers_.push_back(std::move(transfer));
}

void Uplink::takeState(const NodeState& state, double time) {
  const IslandState& island = state.island;
  const std::optional<HubReach> before = hub_;
  if (trainer_ && *trainer_ != island.pid) reset();
  trainer_ = island.pid;
  if (island.pid != 0) {
    if (!hub_ && is_welcome(island.state) && island.error.empty()) hub_ = HubReach{.up = true, .since = {}};
    return;
  }
  if (island.state != IslandPhase::kReconnecting || !state.agent.last_exit) return;
  // The trainer has given it up; the agent tries again with another one.
  const bool lost_before = before && !before->up;
  HubReach link{.up = false, .since = lost_before ? before->since : std::optional(state.agent.last_exit->time)};
  link.cause = lost_before ? before->cause : state.agent.last_exit->text.substr(0, kMaxTextBytes);
  if (state.agent.restart_in_seconds) link.tries_until = time + *state.agent.restart_in_seconds;
  hub_ = std::move(link);
}

}  // namespace atl
