#include "net/transport/connection_limits.h"

#include <algorithm>
#include <limits>

namespace atl {
namespace {

// Descriptors for everything else: logs, databases, shards, the ring, the control socket, what this process dials.
constexpr std::size_t kOtherFiles = 512;
constexpr std::size_t kLeast = 4;  // of any kind, however few descriptors there are

}  // namespace

ConnectionSizes ConnectionSizes::within(std::size_t open_files) const {
  const std::size_t all = of_strangers + of_known + of_members;
  const std::size_t most = open_files - std::min(kOtherFiles, open_files / 2);
  if (all <= most) return *this;
  const auto part = [&](std::size_t size) { return std::max(kLeast, size * most / all); };
  return {part(of_address), part(of_network), part(of_strangers), part(of_known_address),
          part(of_known),   of_member,        part(of_members)};
}

// Silent ones first, the oldest of them: they cost whoever opens them least. But where few are silent the flood is of
// another kind, and who has just come is silent for a moment, too: then the oldest of all.
ConnectionId ConnectionLimits::Group::next_to_go(ConnectionId newcomer) const {
  constexpr auto kNone = std::numeric_limits<ConnectionId>::max();
  const auto oldest = [&](const std::set<ConnectionId>& of) {
    return of.empty() || *of.begin() == newcomer ? kNone : *of.begin();
  };
  if (silent.size() * 4 >= size() && oldest(silent) != kNone) return oldest(silent);
  return std::min(oldest(silent), oldest(spoke));
}

ConnectionLimits::Admitted ConnectionLimits::admit(const NetworkAddress& from) {
  Admitted admitted{++last_id_, is_known(from.machine()), {}};
  const Connection& connection =
      connections_.emplace(last_id_, Connection{from.machine(), from.network(), admitted.known}).first->second;
  for (Group* group : groups_of(connection)) group->silent.insert(last_id_);
  drop_over(machines_[connection.machine], connection.known ? sizes_.of_known_address : sizes_.of_address, last_id_,
            admitted.dropped);
  if (!connection.known) drop_over(networks_[connection.network], sizes_.of_network, last_id_, admitted.dropped);
  drop_over(connection.known ? known_ : strangers_, connection.known ? sizes_.of_known : sizes_.of_strangers, last_id_,
            admitted.dropped);
  return admitted;
}

bool ConnectionLimits::is_known(const NetworkPrefix& machine) const {
  return expected_.contains(machine) || sightings_.contains(machine);
}

std::vector<ConnectionLimits::Group*> ConnectionLimits::groups_of(const Connection& connection) {
  if (connection.known) return {&machines_[connection.machine], &known_};
  return {&machines_[connection.machine], &networks_[connection.network], &strangers_};
}

void ConnectionLimits::drop_over(Group& group, std::size_t limit, ConnectionId newcomer, Dropped& dropped) {
  while (group.size() > limit && group.size() > 1) {
    const ConnectionId id = group.next_to_go(newcomer);
    dropped.push_back(id);
    closed(id);  // the group stays: the newcomer is in it
  }
}

void ConnectionLimits::leave_groups(ConnectionId id, const Connection& connection) {
  for (Group* group : groups_of(connection)) {
    group->silent.erase(id);
    group->spoke.erase(id);
  }
  if (const auto group = machines_.find(connection.machine); group->second.size() == 0) machines_.erase(group);
  if (connection.known) return;
  if (const auto group = networks_.find(connection.network); group->second.size() == 0) networks_.erase(group);
}

void ConnectionLimits::spoke(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.has_spoken || !found->second.member.value.empty()) return;
  found->second.has_spoken = true;
  for (Group* group : groups_of(found->second)) {
    group->silent.erase(id);
    group->spoke.insert(id);
  }
}

ConnectionLimits::Dropped ConnectionLimits::verified(ConnectionId id, const IslandId& member, Clock::time_point now) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.member.value.empty()) return {};
  leave_groups(id, found->second);
  found->second.member = member;
  found->second.idle_since = now;
  remember(member, found->second.machine);
  std::set<ConnectionId>& own = members_[member];
  own.insert(id);
  ++verified_;
  ConnectionId dropped = 0;
  if (own.size() > sizes_.of_member) {
    dropped = longest_idle(&member, id).value_or(id);
  } else if (verified_ > sizes_.of_members) {
    dropped = to_make_room(id, member);
  }
  if (dropped == 0) return {};
  closed(dropped);
  return {dropped};
}

std::optional<ConnectionId> ConnectionLimits::longest_idle(const IslandId* of, ConnectionId except) const {
  std::optional<std::pair<Clock::time_point, ConnectionId>> longest;
  const auto look_at = [&](ConnectionId id, const Connection& connection) {
    if (id == except || !connection.idle_since) return;
    const std::pair candidate(*connection.idle_since, id);
    if (!longest || candidate < *longest) longest = candidate;
  };
  if (of != nullptr) {
    for (const ConnectionId id : members_.at(*of)) look_at(id, connections_.at(id));
  } else {
    for (const auto& [id, connection] : connections_) look_at(id, connection);
  }
  return longest ? std::optional(longest->second) : std::nullopt;
}

// All places of members are taken: an idle one, else the newest of the member that has most, unless the newcomer's has
// as many.
ConnectionId ConnectionLimits::to_make_room(ConnectionId newcomer, const IslandId& member) const {
  if (const auto idle = longest_idle(nullptr, newcomer)) return *idle;
  const auto has_less = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto most = std::ranges::max_element(members_, has_less);
  return most->second.size() > members_.at(member).size() ? *most->second.rbegin() : newcomer;
}

void ConnectionLimits::set_idle(ConnectionId id, Clock::time_point since) {
  if (const auto found = connections_.find(id); found != connections_.end()) found->second.idle_since = since;
}

void ConnectionLimits::set_busy(ConnectionId id) {
  if (const auto found = connections_.find(id); found != connections_.end()) found->second.idle_since.reset();
}

void ConnectionLimits::closed(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (const IslandId& member = found->second.member; member.value.empty()) {
    leave_groups(id, found->second);
  } else {
    const auto own = members_.find(member);
    own->second.erase(id);
    if (own->second.empty()) members_.erase(own);
    --verified_;
  }
  connections_.erase(found);
}

void ConnectionLimits::expect(const std::vector<NetworkAddress>& addresses) {
  expected_.clear();
  for (const NetworkAddress& address : addresses) expected_.insert(address.machine());
}

// The last few machines of each member, so that one who comes from ever new ones makes nobody forgotten but himself.
void ConnectionLimits::remember(const IslandId& member, const NetworkPrefix& machine) {
  Seen& seen = seen_[member];
  seen.turn = ++turn_;
  if (std::erase(seen.machines, machine) > 0) forget_sighting(machine);
  seen.machines.push_front(machine);
  ++sightings_[machine];
  if (seen.machines.size() > kRememberedOfMember) {
    forget_sighting(seen.machines.back());
    seen.machines.pop_back();
  }
  if (seen_.size() <= kRememberedMembers) return;
  const auto comes_before = [](const auto& a, const auto& b) { return a.second.turn < b.second.turn; };
  const auto oldest = std::ranges::min_element(seen_, comes_before);
  for (const NetworkPrefix& of : oldest->second.machines) forget_sighting(of);
  seen_.erase(oldest);
}

void ConnectionLimits::forget_sighting(const NetworkPrefix& machine) {
  const auto found = sightings_.find(machine);
  if (--found->second == 0) sightings_.erase(found);
}

}  // namespace atl
