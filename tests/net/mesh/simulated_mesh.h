// Islands without sockets, torch or clocks around a RoundCoordinator: messages are queues that a test delivers in the
// order that it likes. Checks what must always hold while it does so. One thread.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "net/mesh/round_coordinator.h"

namespace atl {

// Text that stands for a SHA-256: a function of what it is made of.
std::string fake_sha256(const std::string& of);

class SimulatedMesh {
 public:
  static constexpr std::size_t kBuckets = 4;

  // How an island lies; all that is false is honest.
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
    bool step = false;         // says that it holds a later state than there is
  };

  // What one island does; a caricature of the trainer's round loop.
  struct Island {
    IslandId id;
    bool running = false;
    bool linked = false;     // to the hub
    std::uint16_t port = 0;  // 0: its number
    std::optional<OuterStep> outer_step;
    std::string state_hash;
    std::optional<HubRoundBegin> round;
    bool inner_done = false;
    std::optional<HubAttempt> attempt;          // being averaged
    std::array<std::string, kBuckets> buckets;  // what it holds of the newest attempt; empty: nothing
    Attempt buckets_of;
    std::optional<std::pair<Attempt, std::string>> average;  // held
    std::optional<HubGoodbye> goodbye;
    std::optional<HubRecover> recover;
    // On its disk:
    std::vector<HeldState> durable;
    std::optional<std::pair<OuterStep, std::string>> kept_average;  // of that round, with its digest
    std::optional<HubCommit> newest_commit;
    Lies lies;
    std::vector<std::string> chunks;  // of the attempt that it averaged last, as it holds them
    Attempt chunks_of;
    std::vector<HubMessage> received;
    std::deque<HubMessage> inbox;      // of the hub, not yet delivered
    std::deque<IslandMessage> outbox;  // to the hub, not yet delivered
  };

  explicit SimulatedMesh(RunConfig run);

  Island& island(int number);  // made on first use
  std::map<int, Island>& islands() { return islands_; }
  RoundCoordinator& hub() { return *hub_; }

  void start(int number);                                // a new process, without state
  void link(int number);                                 // (re)connects
  void cut(int number);                                  // the connection breaks; what was under way is lost
  void kill(int number);                                 // kill -9
  void remove(int number);                               // by the run's operator
  void restart_hub();                                    // with what was persisted
  void roll_back(OuterStep to, bool automatic = false);  // its operator's decision
  void back_up();                                        // the hub's disk, as it is now
  void restore();                                        // and a hub on that, in a later epoch
  void say(int number, IslandMessage message);           // straight to the hub, now
  void hub_hears(const CoordinatorEvent& event) { carry_out(hub_->next(event, now_)); }
  void pass(Clock::duration time);  // then a tick
  void tick() { pass({}); }

  // One step of one island: takes a message, delivers one, or works. False when it has nothing to do.
  bool act(Island& island);
  // Everybody acts in turn until nobody has anything to do (heartbeats are said at every tick).
  void settle();
  void settle_once();  // everybody acts once
  void settle_randomly(std::mt19937& random, int steps);

  // What was seen to break a rule; empty while all is well.
  const std::string& violation() const { return violation_; }
  const std::vector<HubCommit>& commits() const { return commits_; }
  const std::vector<DialIsland>& dials() const { return dials_; }
  const std::vector<CoordinatorNews>& news() const { return news_; }
  std::vector<LeaseRange> committed_leases() const { return committed_leases_; }
  template <class News>
  int count() const {
    int found = 0;
    for (const CoordinatorNews& news : news_) found += std::holds_alternative<News>(news) ? 1 : 0;
    return found;
  }

  bool stepped_down = false;                     // the hub saw that another one serves
  int rollbacks_that_fail = 0;                   // of those that the hub asks for: its disk is busy
  bool keeps_states = false;                     // islands have disks
  bool trains_by_itself = true;                  // islands finish inner phases and averages when they act
  std::map<IslandId, std::string> wrong_digest;  // islands whose averages differ

 private:
  void carry_out(const RoundCoordinator::Actions& actions);
  void note_commit(const PersistCommit& persist);
  void note_rollback(const PersistRollback& back);
  void keep(Island& island);
  void check_commit_was_persisted(const HubCommit& commit);
  void take(Island& island, const HubMessage& message);
  bool work(Island& island);
  void begin_attempt(Island& island, const HubAttempt& attempt);
  void average_buckets(Island& island, std::size_t count);
  void finish_average(Island& island);
  std::vector<std::string> chunks_held_by(const Island& island, const HubAttempt& attempt);
  static bool holds(const Island& island, const HubCommit& commit);
  bool is_too_large(const Island& island, const HubAttempt& attempt);
  std::string said_hash(const Island& island) const;
  void answer_abort(Island& island, const HubAbort& abort);
  void adopt(Island& island, OuterStep step, std::string hash);
  Island* find(const IslandId& id);
  void violate(std::string what);

  const RunConfig run_;
  std::map<int, Island> islands_;
  Clock::time_point now_ = Clock::time_point(std::chrono::hours(1));
  CoordinatorMemory disk_;
  std::optional<OuterStep> wants_back_;
  using LeaseRows = std::map<std::uint64_t, std::pair<std::uint32_t, IslandLease>>;
  std::optional<std::tuple<CoordinatorMemory, LeaseRows, std::set<std::uint64_t>>> backup_;
  std::set<std::uint64_t> used_up_;  // first positions
  LeaseRows lease_rows_;
  std::uint64_t lease_floor_ = 0;
  std::map<std::uint32_t, std::string> state_hashes_;  // by outer step: what the commits make of the initial state
  std::vector<HubCommit> commits_;
  std::vector<LeaseRange> committed_leases_;
  std::vector<CoordinatorNews> news_;
  std::vector<DialIsland> dials_;
  std::string violation_;
  std::optional<RoundCoordinator> hub_;
};

}  // namespace atl
