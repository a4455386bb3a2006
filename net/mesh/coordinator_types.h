// What goes into the RoundCoordinator and what comes out of it. Plain values.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "net/base/id.h"
#include "net/mesh/evaluation_book.h"
#include "net/mesh/lease_book.h"
#include "net/mesh/validation_watch.h"
#include "net/wire/mesh.h"

namespace atl {

// ---- in

struct IslandConnected {  // its certificate was checked and this is its first message; a second connection replaces the
                          // first
  RosterEntry entry;
  IslandHello hello;
  // What it showed with a good signature of this run's hub: a commit, and the highest epoch of all that it showed.
  std::optional<HubCommit> proven_commit = {};
  std::uint64_t proven_epoch = 0;
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
struct IslandRemoved {  // by the run's operator: what it said no longer counts
  IslandId island;
  std::string reason;
};
struct RollBack {  // decided by the operator, or WantRollback answered
  OuterStep to;
  std::string state_hash;               // of that outer state
  std::uint64_t epoch = 0;              // a new one, higher than all before
  std::vector<LeaseRange> leases = {};  // of the rounds that are undone: to be trained again
  std::string reason;
  bool automatic = false;
};
struct RollBackFailed {  // WantRollback could not be answered now
  OuterStep to;
};
struct Tick {};

struct DecideDecay {  // of a round that has not begun; empty: what was decided, and has not begun, is taken back
  std::optional<DecidedDecay> decay;
};
struct DecideMixture {  // likewise
  std::optional<DecidedMixture> mixture;
};
using CoordinatorEvent = std::variant<IslandConnected, IslandSaid, IslandDisconnected, IslandDialled, IslandRemoved,
                                      RollBack, RollBackFailed, DecideDecay, DecideMixture, Tick>;

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

struct PersistRollback {  // rounds from `to` on are undone; their records are kept aside
  OuterStep to;
  std::uint64_t epoch = 0;
  std::string reason;
  bool automatic = false;
};
struct PersistFastForward {  // a commit that an island showed, newer than what the disk knows
  HubCommit commit;
};
struct PersistSpoiled {  // until a rollback: the run does not go on upon it
  ValidatedState state;
};
struct PersistUploaded {  // a state that is whole in the run's object store
  HeldState state;
};
struct PersistDecay {
  std::optional<DecidedDecay> decay;
};
struct PersistMixture {
  RunMixture mixture;
};
struct WantRollback {  // then say RollBack, if that state's hash is known; by the run's policy
  OuterStep to;
  std::string reason;
};
// Another hub of this run serves, or served, in a later epoch: this one must say nothing any more.
struct StepDown {
  std::uint64_t epoch = 0;
};

// Why a run that has islands cannot go on by itself. What people are told, and what they can do, is in the text.
struct Standstill {
  enum class Kind {
    kLost,          // nobody that is here holds the committed state
    kUndecided,     // too few of those who computed it have said which state that is
    kSplitState,    // they say different things, and none is said by more than half
    kSplitAverage,  // attempts fail for a lie, and nobody can tell whose
    kSpoiled,       // its validation loss is far above what it was
    kQuorum,        // fewer islands train than RunConfig::quorum
    kStragglers,    // half of the trainers or fewer are ready, and the others take far longer
    kNoData,        // nobody gets the data of its part of the round
  };
  Kind kind = Kind::kLost;
  std::string text;
  std::optional<OuterStep> back_to = {};  // the newest state to which the run can go back
  bool operator==(const Standstill&) const = default;
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
  bool directly = false;  // averaged not round a ring: everybody sent to everybody
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
struct StateEvaluated {  // what is known of a task after this island's word
  IslandId island;
  EvaluatedState found;
};
struct RunFinished {
  OuterStep outer_step;
};
struct RolledBack {
  OuterStep from, to;
  std::string reason;
  bool automatic = false;
};
struct FastForwarded {
  OuterStep from, to;
  IslandId shown_by;
};
struct StandstillChanged {
  std::optional<Standstill> standstill;  // empty: the run goes on
};
struct WorkLeftOut {  // of a round that the others average without it, or data that it could not get
  IslandId island;
  OuterStep round;
  std::string reason;
};
struct ValidationDoubted {  // all islands are asked before it is believed
  IslandId island;
  OuterStep outer_step;
  double loss_nats = 0;
};
struct StateUploaded {  // to the run's object store
  IslandId island;
  OuterStep outer_step;
  std::string error;  // empty: it is there
};
using CoordinatorNews = std::variant<RoundBegan, RoundCommitted, StateHashesCompared, AttemptFailed, IslandJoined,
                                     IslandGone, IslandPaused, IslandValidated, RunFinished, RolledBack, FastForwarded,
                                     StandstillChanged, WorkLeftOut, ValidationDoubted, StateUploaded, StateEvaluated>;
struct Publish {
  CoordinatorNews news;
};

using CoordinatorAction =
    std::variant<SendTo, CloseConnection, DialIsland, PersistLeases, PersistAttempt, PersistCommit, PersistStateHash,
                 PersistRollback, PersistFastForward, PersistSpoiled, PersistUploaded, PersistDecay, PersistMixture,
                 WantRollback, StepDown, Publish>;

// ---- what a hub that restarts knows

struct BegunRound {
  OuterStep round;
  std::vector<IslandLease> leases;  // uncommitted
  Attempt last_attempt = {};
};

// An island's disk may hold the averages of so many rounds and nothing newer (net/disk/round_log.h).
inline constexpr std::size_t kCommitsRemembered = 64;

struct CoordinatorMemory {
  OuterStep committed;
  std::uint64_t lease_cursor = 0;
  std::vector<BegunRound> begun;            // rounds from `committed` on, in their order
  std::vector<LeaseRange> returned_leases;  // uncommitted ones of earlier rounds
  std::optional<HubCommit> last_commit;
  std::deque<HubCommit> commits_before = {};  // of late, oldest first
  std::optional<std::string> agreed_hash;     // of outer step `committed`
  std::uint64_t epoch = 0;                    // in which this hub serves
  std::uint64_t record_epoch = 0;             // of its newest record, a commit or a rollback
  bool restored = false;                      // from a backup, and no round was committed since: islands may know more
  std::map<OuterStep, std::string> state_hashes = {};  // agreed ones of late, and that of step 0
  std::vector<ValidatedState> validations = {};        // of late, oldest first; none of a spoiled state
  std::optional<ValidatedState> spoiled = {};
  std::optional<DecidedDecay> decay = {};
  RunMixture mixture = {};
  std::vector<HeldState> uploaded = {};  // that are in the run's object store, oldest first
  std::set<IslandId> removed = {};       // by the operator: what they said counts no more
};

// Signs a commit record: base64url. Called once a commit.
using CommitSigner = std::function<std::string(const HubCommit&)>;

}  // namespace atl
