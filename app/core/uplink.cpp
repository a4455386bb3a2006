#include "app/core/uplink.h"

#include <algorithm>
#include <array>

#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::array<std::string_view, 2> kTransfers = {"data", "state"};
constexpr std::size_t kMaxTextBytes = 2048;

// Of a trainer that the hub has welcomed.
bool is_welcome(const std::string& state) {
  constexpr std::array<std::string_view, 5> kStates = {"recovering", "waiting", "training", "syncing", "finishing"};
  return std::ranges::find(kStates, state) != kStates.end();
}

}  // namespace

void Uplink::take(const ControlEvent& event, const NodeState* state) {
  if (state != nullptr) return takeState(*state, event.time);
  if (event.name == "hub.link") takeHub(event);
  if (event.name == "transfer") takeTransfer(event.data);
}

void Uplink::reset() {
  trainer_.reset();
  hub_.reset();
  transfers_.clear();
}

void Uplink::takeHub(const ControlEvent& event) {
  HubLink link;
  std::optional<std::string> cause;
  std::optional<double> tries_for;
  JsonFields fields(event.data, "the hub's link");
  fields.read("up", link.up).read("text", cause).read("tries_for_seconds", tries_for);
  if (!fields.status().ok()) return;
  link.since = event.time;
  if (!link.up) {
    link.cause = cause.value_or("").substr(0, kMaxTextBytes);
    if (tries_for) link.tries_until = event.time + *tries_for;
  }
  hub_ = std::move(link);
}

void Uplink::takeTransfer(const nlohmann::json& data) {
  Transfer transfer;
  std::string status;
  std::optional<std::string> text;
  JsonFields fields(data, "a transfer");
  fields.read("what", transfer.what).read("status", status).read("text", text);
  fields.read("done_bytes", transfer.done_bytes).read("total_bytes", transfer.total_bytes);
  fields.read("bytes_per_second", transfer.bytes_per_second).read("seconds_left", transfer.seconds_left);
  if (!fields.status().ok() || std::ranges::find(kTransfers, transfer.what) == kTransfers.end()) return;
  transfer.done_bytes = std::min(transfer.done_bytes, transfer.total_bytes);
  transfer.failed = status == "failed";
  transfer.text = text.value_or("").substr(0, kMaxTextBytes);
  std::erase_if(transfers_, [&](const Transfer& old) { return old.what == transfer.what; });
  if (status != "done") transfers_.push_back(std::move(transfer));
}

void Uplink::takeState(const NodeState& state, double time) {
  const IslandState& island = state.island;
  const std::optional<HubLink> before = hub_;
  if (trainer_ && *trainer_ != island.pid) reset();
  trainer_ = island.pid;
  if (island.pid != 0) {
    if (!hub_ && is_welcome(island.state) && island.error.empty()) hub_ = HubLink{.up = true, .since = {}};
    return;
  }
  if (island.state != "reconnecting" || !state.agent.last_exit) return;
  // The trainer has given it up; the agent tries again with another one.
  const bool lost_before = before && !before->up;
  HubLink link{.up = false, .since = lost_before ? before->since : std::optional(state.agent.last_exit->time)};
  link.cause = lost_before ? before->cause : state.agent.last_exit->text.substr(0, kMaxTextBytes);
  if (state.agent.restart_in_seconds) link.tries_until = time + *state.agent.restart_in_seconds;
  hub_ = std::move(link);
}

}  // namespace atl
