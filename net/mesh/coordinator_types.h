// What goes into the RoundCoordinator and what comes out of it. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/base/id.h"
#include "net/mesh/lease_book.h"
#include "net/wire/mesh.h"

namespace atl {

// ---- in

struct IslandConnected {  // its certificate was checked and this is its first message; a second connection replaces the
                          // first
  RosterEntry entry;
  IslandHello hello;
};
struct IslandSaid {
  IslandId island;
  IslandMessage message;
};
struct IslandDisconnected {
  IslandId island;
};
struct IslandDialled {  // the hub tried to dial the island's inbound port
  IslandId island;
  Address address;  // at which it was tried; one that it has left meanwhile says nothing
  bool answered = false;
};
struct Tick {};

using CoordinatorEvent = std::variant<IslandConnected, IslandSaid, IslandDisconnected, IslandDialled, Tick>;

// ---- out: to be carried out in order

struct IslandLease {
  IslandId island;
  LeaseRange range;
};

struct SendTo {
  IslandId island;
  HubMessage message;
};
struct CloseConnection {  // after what was sent before it
  IslandId island;
};
struct DialIsland {  // then say IslandDialled; its inbound port, as its peers would
  IslandId island;
  Address address;
};
// Each Persist must be on the disk before the actions that follow it.
struct PersistLeases {
  OuterStep round;
  std::vector<IslandLease> leases;
};
struct PersistAttempt {  // a hub that restarts goes on counting from here
  OuterStep round;
  Attempt attempt;
};
struct PersistCommit {
  HubCommit commit;
  std::vector<LeaseRange> leases;  // used up; all others of the round are free again
  double seconds = 0;              // since the round began
  double mean_loss_nats = 0;       // weighted by tokens
};
struct PersistStateHash {
  OuterStep outer_step;
  std::string state_hash;
  std::optional<bool> unanimous;  // empty until every live member has reported
};

// News for people: the status, the demo, the log.
struct RoundBegan {
  OuterStep round;
  std::vector<IslandId> trainers;
};
struct RoundCommitted {
  HubCommit commit;
  double seconds = 0;
  double mean_loss_nats = 0;
};
struct StateHashesCompared {
  OuterStep outer_step;
  bool equal = false;
};
struct AttemptFailed {
  OuterStep round;
  Attempt attempt;
  std::string reason;
};
struct IslandJoined {
  IslandId island;
  std::string display_name;
};
struct IslandGone {
  IslandId island;
  std::string display_name;
  bool left = false;  // said so; else it is dead or was sent away
  std::string reason;
};
struct IslandPaused {
  IslandId island;
  std::string display_name;
};
struct IslandValidated {
  IslandId island;
  OuterStep outer_step;
  double loss_nats = 0;
};
struct RunFinished {
  OuterStep outer_step;
};
using CoordinatorNews = std::variant<RoundBegan, RoundCommitted, StateHashesCompared, AttemptFailed, IslandJoined,
                                     IslandGone, IslandPaused, IslandValidated, RunFinished>;
struct Publish {
  CoordinatorNews news;
};

using CoordinatorAction = std::variant<SendTo, CloseConnection, DialIsland, PersistLeases, PersistAttempt,
                                       PersistCommit, PersistStateHash, Publish>;

// ---- what a hub that restarts knows

struct CoordinatorMemory {
  OuterStep committed;
  std::uint64_t lease_cursor = 0;
  std::vector<IslandLease> open_leases;     // of round `committed`, if it had begun
  std::vector<LeaseRange> returned_leases;  // uncommitted ones of earlier rounds
  Attempt last_attempt;                     // of round `committed`
  std::optional<HubCommit> last_commit;
  std::optional<std::string> agreed_hash;  // of outer step `committed`
};

// Signs a commit record: base64url. Called once a commit.
using CommitSigner = std::function<std::string(const HubCommit&)>;

}  // namespace atl
