#include "net/mesh/membership.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
namespace {

constexpr std::chrono::seconds kRosterPace{1};
constexpr std::size_t kTimes = 8;                    // remembered
constexpr std::chrono::hours kLongestPause{7 * 24};  // then its place is free

}  // namespace

// A round's grace at once, and what it takes to find that an island is gone.
Membership::Membership(CoordinatorTurn& turn)
    : turn_(turn), budget_(turn.run().straggler_grace + turn.run().dead_after) {}

MeshIsland* Membership::find(const IslandId& id) {
  const auto found = islands_.find(id);
  return found == islands_.end() ? nullptr : &found->second;
}

const MeshIsland* Membership::find(const IslandId& id) const {
  const auto found = islands_.find(id);
  return found == islands_.end() ? nullptr : &found->second;
}

bool Membership::is_here(const IslandId& id) const {
  const MeshIsland* island = find(id);
  return island != nullptr && island->connected;
}

std::size_t Membership::count_here() const {
  const auto is_here = [](const auto& entry) { return entry.second.connected; };
  return static_cast<std::size_t>(std::ranges::count_if(islands_, is_here));
}

bool Membership::is_anybody_recovering() const {
  return std::ranges::any_of(islands_, [](const auto& entry) {
    return entry.second.connected && entry.second.standing == MeshIsland::Standing::kRecovering;
  });
}

std::string Membership::names(const std::vector<IslandId>& islands) const {
  std::string text;
  for (const IslandId& id : islands) {
    const auto found = islands_.find(id);
    if (!text.empty()) text += ", ";
    text += found == islands_.end() ? id.value : fmt::format("{} ({})", id.value, found->second.entry.display_name);
  }
  return text.empty() ? "nobody" : text;
}

// ---- coming and going

Status Membership::may_enter(const IslandConnected& event) const {
  if (event.hello.version != kMeshVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("this island speaks version {} of the mesh ({}), the hub version {}: update the older one",
                             event.hello.version, event.hello.software, kMeshVersion)};
  }
  const std::uint32_t most = turn_.run().max_islands;
  if (!islands_.contains(event.entry.id) && islands_.size() >= most) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("the run is full: it takes {} islands; try again when one has left", most)};
  }
  return ok_status();
}

Membership::Entered Membership::enter(const IslandConnected& event) {
  const IslandId& id = event.entry.id;
  const bool is_new = !islands_.contains(id);
  MeshIsland& island = islands_[id];
  const bool moved = island.entry.address != event.entry.address;
  if (const auto before = gone_.find(id); before != gone_.end()) {
    island.conduct = before->second;
    gone_.erase(before);
  }
  island.entry = event.entry;
  island.connected = true;
  island.paused = false;
  island.last_heard = turn_.now();
  island.recovers_since = turn_.now();
  island.durable = event.hello.durable;
  island.claimed.reset();
  if (event.hello.outer_step) island.claimed = HeldState{*event.hello.outer_step, event.hello.state_hash};
  island.noticed.clear();
  island.told_safe.reset();
  island.told_neighbours.reset();
  island.can_upload = event.hello.can_upload;
  island.dials_ahead = event.hello.dials_ahead;
  island.work = event.hello.work;
  return {island, is_new, moved};
}

void Membership::leave(MeshIsland& island) {
  island.connected = false;
  island.disconnected_at = turn_.now();
}

void Membership::erase(const IslandId& id) {
  if (const MeshIsland* island = find(id)) gone_[id] = island->conduct;
  islands_.erase(id);
  roster_changed_ = true;
}

std::vector<IslandId> Membership::silent() const {
  std::vector<IslandId> islands;
  for (const auto& [id, island] : islands_) {
    if (island.connected && turn_.now() - island.last_heard > turn_.run().dead_after) islands.push_back(id);
  }
  return islands;
}

bool Membership::is_overdue(const MeshIsland& island) const {
  const RunConfig& run = turn_.run();
  const auto allowed = std::max<Clock::duration>(run.dead_after / 2, run.heartbeat * 3 / 2);
  return island.connected && turn_.now() - island.last_heard >= allowed;
}

std::vector<IslandId> Membership::lost() const {
  std::vector<IslandId> islands;
  for (const auto& [id, island] : islands_) {
    const auto away = turn_.now() - island.disconnected_at;
    const auto kept = island.paused ? Clock::duration(kLongestPause) : Clock::duration(turn_.run().dead_after);
    if (!island.connected && away > kept) islands.push_back(id);
  }
  return islands;
}

std::set<IslandId> Membership::debtors(const std::vector<IslandId>& trainers) const {
  std::vector<IslandId> owing;
  if (islands_.size() < 3) return {};  // of two nobody can tell which one holds the other up
  for (const IslandId& id : trainers) {
    if (budget_.owes(id)) owing.push_back(id);
  }
  std::ranges::stable_sort(owing, {}, [this](const IslandId& id) { return budget_.left(id); });
  const std::size_t stay = std::max<std::size_t>(turn_.run().quorum, (trainers.size() + 1) / 2);
  owing.resize(std::min(owing.size(), trainers.size() - std::min(stay, trainers.size())));
  return {owing.begin(), owing.end()};
}

double Membership::seconds_in_debt(const IslandId& island) const {
  return Seconds(budget_.until_paid(island, count_here())).count();
}

void Membership::note_inner_phase(Clock::duration time) { note(inner_phases_, time); }

void Membership::note_average(Clock::duration time) { note(averages_, time); }

void Membership::note(Times& times, Clock::duration time) {
  times.push_back(time);
  if (times.size() > kTimes) times.pop_front();
}

std::optional<Clock::duration> Membership::middle(const Times& of) {
  if (of.empty()) return std::nullopt;
  std::vector<Clock::duration> times(of.begin(), of.end());
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// ---- the roster

HubRoster Membership::roster() const {
  HubRoster roster;
  for (const auto& [id, island] : islands_) {
    if (!island.paused) roster.islands.push_back(island.entry);
  }
  return roster;
}

void Membership::send_roster() {
  roster_changed_ = false;
  roster_sent_ = turn_.now();
  const HubRoster newest = roster();
  for (const auto& [id, island] : islands_) {
    if (island.connected) turn_.send(id, newest);
  }
}

void Membership::send_roster_when_due() {
  if (roster_changed_ && turn_.now() - roster_sent_ >= kRosterPace) send_roster();
}

void Membership::send_roster_if_changed() {
  if (roster_changed_) send_roster();
}

void Membership::send_roster_if_changed(const IslandId& to) {
  if (roster_changed_) turn_.send(to, roster());
}

void Membership::send_roster_unless_due(const IslandId& to) {
  if (turn_.now() - roster_sent_ < kRosterPace) turn_.send(to, roster());
}

}  // namespace atl
