// One island without sockets, torch or clocks: messages of the hub go in, its own come out, and what it trains and
// averages are texts. It may lie. A caricature of the trainer's rounds, one lane a fragment. One thread.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/mesh.h"

namespace atl {

// Text that stands for a SHA-256: a function of what it is made of.
std::string fake_sha256(const std::string& of);

struct SimulatedWorld;

struct SimulatedIsland {
  static constexpr std::size_t kBuckets = 4;

  // How it lies; all that is false is honest.
  struct Lies {
    bool state_hash = false;   // of the outer state
    bool digest = false;       // of the average that it holds
    bool bytes = false;        // alters finished chunks that it passes on
    bool norm = false;         // gives a hundred times what others give, and says so
    bool hidden_norm = false;  // and does not say so
    bool complaint = false;    // says that averages are too large
    bool tokens = false;       // trained more than it was leased
    bool links = false;        // accuses others of dead edges
    bool validation = false;   // whether asked or not
    bool no_data = false;      // says that it cannot get the data of its leases
    bool step = false;         // says that it holds a later state than there is
  };

  // The round of one fragment.
  struct Lane {
    std::optional<HubRoundBegin> round;
    bool inner_done = false;
    std::optional<HubAttempt> attempt;          // being averaged
    std::array<std::string, kBuckets> buckets;  // what it holds of the newest attempt; empty: nothing
    Attempt buckets_of;
    std::optional<std::pair<Attempt, std::string>> average;         // held
    std::optional<std::pair<OuterStep, std::string>> kept_average;  // on its disk: of that round, with its digest
    std::vector<std::string> chunks;  // of the attempt that it averaged last, as it holds them
    Attempt chunks_of;
  };

  IslandId id;
  bool running = false;
  bool linked = false;  // to the hub
  bool can_upload = false;
  bool dials_ahead = false;
  IslandHeartbeat heartbeat;          // as it says it at every tick
  std::optional<HeldWork> held_work;  // that it says to have on its disk
  std::uint16_t port = 0;             // 0: its number
  std::optional<OuterStep> outer_step;
  std::string state_hash;
  std::array<Lane, kMaxFragments> lanes;
  std::optional<HubGoodbye> goodbye;
  std::optional<HubRecover> recover;
  // A round whose outer step it took: what it was taken on, what it made, by which average.
  struct Logged {
    std::string from, made, digest;
  };
  // On its disk, with each lane's kept average: whole states, the newest last, and rounds.
  std::vector<HeldState> durable;
  std::map<OuterStep, Logged> logged;
  std::optional<HubCommit> newest_commit;
  Lies lies;
  std::vector<HubMessage> received;
  std::set<OuterStep> said_ready;    // of these rounds, with whichever data
  std::deque<HubMessage> inbox;      // of the hub, not yet delivered
  std::deque<IslandMessage> outbox;  // to the hub, not yet delivered
  unsigned turns = 0;                // of work: now the newest round comes first, now the oldest

  Lane& lane(FragmentId fragment = {}) { return lanes.at(fragment.value); }
  const Lane& lane(FragmentId fragment = {}) const { return lanes.at(fragment.value); }
  SimulatedIsland after_death(bool disk_stays) const;
  std::string said_hash() const;
  // In memory, or on its disk from before its process died.
  bool holds(const HubCommit& commit) const;
  // Where its disk leads from its newest whole state, by the rounds that it logged.
  std::optional<HeldState> newest_on_disk() const;
  std::vector<HeldState> all_on_disk() const;  // whole states, and those that rounds lead to

  void take(SimulatedWorld& world, const HubMessage& message);
  bool work(SimulatedWorld& world);  // false: it has nothing to do

 private:
  void take(SimulatedWorld& world, const HubRoundBegin& begin);
  void take(SimulatedWorld& world, const HubAttempt& attempt);
  void take(SimulatedWorld& world, const HubCommit& commit);
  void take(const HubAbort& abort);
  void take(const HubShowChunks& show);
  void drop_rounds();
  void adopt(SimulatedWorld& world, OuterStep step, std::string hash);
  void keep(const SimulatedWorld& world, bool whole);
  bool recover_now(SimulatedWorld& world);
  bool train(SimulatedWorld& world, Lane& lane);
  bool average(SimulatedWorld& world, Lane& lane);
  void finish_average(SimulatedWorld& world, Lane& lane);
  std::vector<std::string> chunks_held(SimulatedWorld& world, const HubAttempt& attempt) const;
  bool finds_too_large(SimulatedWorld& world, const HubAttempt& attempt) const;
};

// What the islands share.
struct SimulatedWorld {
  static constexpr std::size_t kBuckets = SimulatedIsland::kBuckets;

  explicit SimulatedWorld(RunConfig its_run) : run(std::move(its_run)) {}

  SimulatedIsland* find(const IslandId& id);
  void violate(std::string what);

  const RunConfig run;
  std::map<int, SimulatedIsland> all;
  std::map<std::uint32_t, std::string> honest_hashes;  // by outer step: what the commits make of the initial state
  std::string broken_rule;                             // the first that was seen to be; empty while all is well

  std::vector<HeldState> stored;                 // in the run's object store
  bool keeps_states = false;                     // islands have disks
  std::uint32_t snapshot_every = 1;              // and write a whole state every so many rounds
  bool replays_by_itself = true;                 // an island that starts; else it waits for the hub's commits
  bool trains_by_itself = true;                  // islands finish inner phases and averages when they act
  std::map<IslandId, std::string> wrong_digest;  // islands whose averages differ
  // Adds what an island says of its work in an attempt; empty: it says nothing of it.
  std::function<void(const IslandId&, const HubAttempt&, IslandHave&)> sketch;
};

}  // namespace atl
