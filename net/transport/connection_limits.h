// Who may stay connected to a port that strangers reach, too: pure bookkeeping, no sockets, no clock. The listener
// tells what happens to each connection, and closes those that it is told to drop. One thread.
//
// A connection that has shown no certificate of a member yet counts against its address, its network, and one of two
// pools: that of addresses from which members came or are known to be, and that of all others. Where one is full, the
// newcomer is let in and an older one goes: a flood pushes itself out, and whoever shakes hands at once is through
// before it is its turn. From then on a connection counts against its member alone, whatever else comes from there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/base/network_address.h"

namespace atl {

using ConnectionId = std::uint64_t;  // in the order in which they came

struct ConnectionSizes {
  // Not verified yet. An island opens 16 connections an edge at once, and as many for its contributions.
  std::size_t of_address = 64;
  // A rented network must not fill the pool by itself; nor is a university's network, joining at once, cut short.
  std::size_t of_network = 128;
  std::size_t of_strangers = 512;
  // A member's address may stand for several of them, behind one router; and for whoever floods from there.
  std::size_t of_known_address = 128;
  std::size_t of_known = 512;
  // Verified. Of one member: the link to the hub, downloads, a check, and the same once more after a break that this
  // end has not noticed.
  std::size_t of_member = 16;
  std::size_t of_members = 1024;

  // As many in all as this number of descriptors allows, in the same proportion, when it is too few for these.
  ConnectionSizes within(std::size_t open_files) const;
};

class ConnectionLimits {
 public:
  using Dropped = std::vector<ConnectionId>;  // forgotten already: to be closed
  struct Admitted {
    ConnectionId id = 0;
    bool known = false;  // it comes from where a member is, or was
    Dropped dropped;
  };

  explicit ConnectionLimits(const ConnectionSizes& sizes) : sizes_(sizes) {}

  Admitted admit(const NetworkAddress& from);
  // It said something.
  void spoke(ConnectionId id);
  // It showed the certificate of a member. Dropped may be this very connection: its member has too many that are busy.
  Dropped verified(ConnectionId id, const IslandId& member, Clock::time_point now);
  // Of a verified one: whether it waits for its peer's next wish, and may be dropped for another.
  void set_idle(ConnectionId id, Clock::time_point since);
  void set_busy(ConnectionId id);
  // It ended by itself. No matter when it was dropped.
  void closed(ConnectionId id);

  // Where members are said to be now; replaces what was said before.
  void expect(const std::vector<NetworkAddress>& addresses);
  bool holds(ConnectionId id) const { return connections_.contains(id); }
  std::size_t size() const { return connections_.size(); }
  std::size_t remembered() const { return seen_.size(); }

  static constexpr std::size_t kRememberedMembers = 1024, kRememberedOfMember = 4;

 private:
  // Of one address, network or pool.
  struct Group {
    std::set<ConnectionId> silent, spoke;
    std::size_t size() const { return silent.size() + spoke.size(); }
    ConnectionId next_to_go(ConnectionId newcomer) const;
  };
  struct Connection {
    NetworkPrefix machine, network;
    bool known = false;
    bool has_spoken = false;
    IslandId member = {};  // empty: not verified
    std::optional<Clock::time_point> idle_since = {};
  };
  struct Seen {
    std::deque<NetworkPrefix> machines;  // the last first
    std::uint64_t turn = 0;
  };

  bool is_known(const NetworkPrefix& machine) const;
  std::vector<Group*> groups_of(const Connection& connection);
  void drop_over(Group& group, std::size_t limit, ConnectionId newcomer, Dropped& dropped);
  void leave_groups(ConnectionId id, const Connection& connection);
  void remember(const IslandId& member, const NetworkPrefix& machine);
  void forget_sighting(const NetworkPrefix& machine);
  std::optional<ConnectionId> longest_idle(const IslandId* of, ConnectionId except) const;
  ConnectionId to_make_room(ConnectionId newcomer, const IslandId& member) const;

  const ConnectionSizes sizes_;
  ConnectionId last_id_ = 0;
  std::map<ConnectionId, Connection> connections_;
  std::map<NetworkPrefix, Group> machines_, networks_;
  Group strangers_, known_;
  std::map<IslandId, std::set<ConnectionId>> members_;
  std::size_t verified_ = 0;
  std::set<NetworkPrefix> expected_;
  std::map<IslandId, Seen> seen_;
  std::map<NetworkPrefix, std::size_t> sightings_;  // how many of `seen_` name it
  std::uint64_t turn_ = 0;
};

}  // namespace atl
