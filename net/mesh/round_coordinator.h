// The hub's heart: which islands are members, which round is open, when it is averaged, committed, given up. A pure
// state machine: events and the time go in, actions come out; sockets, clocks and the disk are its owner's (net/hub).
// One thread.
//
// An island is recovering until it holds the committed outer state, then it trains. Round k is begun for all that train
// then, each with a lease of sequences. Who recovers while it is open only receives its result. When all trainers are
// ready, or the stragglers' grace is over, an attempt averages over those that are; when one fails, the next begins
// over the survivors. All live members of an attempt hold the same digest: the round is committed, and every member
// takes the outer step. No attempt begins before a majority has said which state the round before made (HashAgreement).
//
// What cannot be decided, or was lost, is a named standstill: never a guess, and never silence.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/mesh/attempt.h"
#include "net/mesh/coordinator_types.h"
#include "net/mesh/digest_inquiry.h"
#include "net/mesh/hash_agreement.h"
#include "net/mesh/lease_book.h"
#include "net/mesh/lie_search.h"
#include "net/mesh/link_matrix.h"
#include "net/mesh/mesh_island.h"
#include "net/mesh/norm_watch.h"
#include "net/mesh/validation_watch.h"

namespace atl {

class RoundCoordinator {
 public:
  using Actions = std::vector<CoordinatorAction>;
  enum class Phase { kWaiting, kTraining, kSyncing, kStandstill, kFinished };

  RoundCoordinator(RunConfig run, CoordinatorMemory memory, CommitSigner sign);

  // Tick: at least every 250 ms. `now` never goes back.
  Actions next(const CoordinatorEvent& event, Clock::time_point now);

  OuterStep committed() const { return committed_; }
  bool round_open() const { return round_open_; }
  Phase phase() const;
  const std::map<IslandId, MeshIsland>& islands() const { return islands_; }
  bool dialable(const IslandId& island) const { return links_.dialable(island); }
  const std::optional<Standstill>& standstill() const { return standstill_; }
  // The newest committed state that an island which is here keeps on its disk.
  std::optional<OuterStep> safe_step() const;

 private:
  using Islands = std::map<IslandId, MeshIsland>;
  static constexpr int kMostStrikes = 3;
  static constexpr int kMostLostAttempts = 3;  // of one island in one round; then it sits it out
  static constexpr std::chrono::seconds kRosterPace{1};
  static constexpr int kMostStallDoublings = 6;

  // round_coordinator.cpp: who is here
  void on(const IslandConnected& event);
  void on(const IslandSaid& event);
  void on(const IslandDisconnected& event);
  void on(const IslandDialled& event);
  void on(const IslandRemoved& event);
  void on(const RollBack& event);
  void on(const RollBackFailed& event);
  void on(const Tick&) {}
  Status may_enter(const IslandConnected& event) const;
  void place_returning(MeshIsland& island, const IslandHello& hello);
  void place_holder(MeshIsland& island, const std::string& hash);
  void said(MeshIsland& island, const IslandHello&);
  void said(MeshIsland& island, const IslandHeartbeat& message);
  void said(MeshIsland& island, const IslandReady& message);
  void said(MeshIsland& island, const IslandHave& message);
  void said(MeshIsland& island, const IslandAttemptFailed& message);
  void said(MeshIsland& island, const IslandApplied& message);
  void said(MeshIsland& island, const IslandRecovered& message);
  void said(MeshIsland& island, const IslandValidation& message);
  void said(MeshIsland& island, const IslandLeaving& message);
  void said(MeshIsland& island, const IslandLinkReport& message);
  void said(MeshIsland& island, const IslandChunks& message);
  void said(MeshIsland& island, const IslandDurable& message);
  void disconnect(MeshIsland& island);
  void pause(MeshIsland& island);
  void remove(const IslandId& id, bool left, const std::string& reason);
  void send_away(const IslandId& id, ErrorCode code, const std::string& message);
  void bury_the_silent();
  void forget_expected(const IslandId& id);
  HubRoster roster() const;
  void send_roster();
  void dial(MeshIsland& island);

  // coordinator_recovery.cpp: who holds the committed outer state
  void start_recovering(MeshIsland& island);
  void settle_recovering(MeshIsland& island);
  void send_recover(MeshIsland& island);
  void compare_hashes();
  bool keeps(const MeshIsland& island, OuterStep step, const std::string& hash) const;

  // coordinator_standstill.cpp: what was lost or cannot be decided, and the way back
  void settle_standstill();
  std::optional<Standstill> find_standstill() const;
  std::optional<Standstill> standstill_of_state() const;
  std::optional<Standstill> standstill_of_stragglers() const;
  std::string sitting_out() const;
  std::optional<OuterStep> newest_of_disks(OuterStep at_most, bool connected_only) const;
  std::optional<OuterStep> newest_kept(OuterStep at_most) const;
  std::string names(const std::vector<IslandId>& islands) const;
  void ask_for_rollback(const Standstill& standstill);
  void notify_islands();
  void fast_forward(const IslandConnected& event);
  void abandon_round();
  void place_all();

  // coordinator_round.cpp: the open round
  void settle();
  void begin_round();
  bool may_begin_round() const;
  void give_part(MeshIsland& island);
  void promote_receivers();
  void take_back();
  bool may_still_train() const;
  void start_grace();
  std::size_t count_trainers() const;
  bool lost_too_often(const IslandId& island) const;
  void begin_training(MeshIsland& island, bool validate);
  void drop_part(MeshIsland& island);
  void commit();
  void note_accepted(const OpenAttempt& done);
  void close_round(const OpenAttempt& done);
  void reset_round();
  std::set<IslandId> choose_validators(const std::vector<MeshIsland*>& trainers) const;
  void act_on_validation(const IslandId& by, ValidationWatch::Outcome outcome);
  void settle_end();
  void finish();
  bool is_last_round_done() const;

  // coordinator_attempt.cpp: averaging it
  std::vector<AttemptMember> ready_members() const;
  std::size_t live_trainers() const;
  bool is_somebody_awaited() const;
  void leave_out_the_large();
  void leave_out(MeshIsland& island, const std::string& reason);
  double norm_limit(const std::vector<AttemptMember>& members) const;
  void open_attempt();
  void begin_attempt(std::vector<AttemptMember> order);
  WireFormat wire_for(const std::vector<AttemptMember>& members) const;
  void dial_again(const std::vector<MeshIsland*>& trainers);
  void probe_links(const std::vector<MeshIsland*>& trainers);
  void settle_attempt();
  void leave_attempt(const IslandId& island);
  void leave_laggards_behind();
  void fail_attempt(const std::string& reason, Clock::duration delay);
  Clock::duration retry_delay() const;

  // coordinator_blame.cpp: why it failed, and who is left out
  void judge_failure();
  void inquire();
  void settle_inquiry();
  void search_for_liar(const std::vector<IslandId>& likely, const std::string& reason);
  bool had_edge_with(const IslandId& a, const IslandId& b) const;
  MeshIsland* common_end(const IslandId& a, const IslandId& b);
  bool avoid_edge(const IslandId& a, const IslandId& b);
  void blame(MeshIsland& reporter, const std::optional<IslandId>& peer, const std::string& reason);
  void send(const IslandId& island, HubMessage message);
  void publish(CoordinatorNews news);
  MeshIsland* find(const IslandId& id);

  const RunConfig run_;
  const CommitSigner sign_;
  Clock::time_point now_;
  Actions actions_;

  Islands islands_;
  bool roster_changed_ = false;  // since it was sent to all
  Clock::time_point roster_sent_;
  OuterStep committed_;
  std::optional<HubCommit> last_commit_;
  std::set<IslandId> last_holders_;  // who may hold the average of last_commit_
  std::uint64_t epoch_;
  std::uint64_t record_epoch_;
  bool restored_;
  std::map<OuterStep, std::string> state_hashes_;
  HashAgreement agreement_;  // on outer step `committed_`
  bool hash_persisted_ = false;
  bool compared_ = false;  // its result was published
  LeaseBook leases_;

  bool round_open_ = false;
  Clock::time_point round_began_;
  // After a restart of the hub: who worked on the open round, with its lease (empty: the round was about to begin).
  std::map<IslandId, LeaseRange> expected_back_;
  std::optional<Clock::time_point> expected_back_until_;
  Clock::time_point all_back_until_{};            // after a way back: till then the round waits for all that are here
  std::optional<Clock::time_point> first_ready_;  // of the open round's trainers
  std::optional<Clock::time_point> grace_ends_;   // since most trainers were ready
  std::optional<OpenAttempt> attempt_;
  std::optional<Clock::time_point> average_due_;  // of attempt_, since its first member held the average
  Attempt last_attempt_;                          // of the open round
  std::optional<KeptBuckets> kept_;               // of the last attempt, which failed
  Clock::time_point kept_due_;                    // the next attempt waits no longer for those that have not reported
  std::optional<FailureReports> failure_;         // of the same attempt, if a member's report ended it
  Clock::time_point retry_at_;
  int reported_failures_ = 0;                   // in the open round
  std::map<IslandId, int> lost_attempts_;       // in the open round: it went while they ran
  std::optional<Clock::time_point> stall_due_;  // of attempt_, since the first word that it is averaged
  int stalled_attempts_ = 0;                    // in the open round
  EdgeBlame blame_;
  std::set<IslandPair> failed_edges_;     // in the open round, too often to be avoided
  std::set<IslandId> left_out_;           // of the open round, for their work itself
  Clock::time_point take_back_at_{};      // who sits out comes back no earlier
  bool attempt_keeps_buckets_ = false;    // attempt_ goes on from one that failed
  std::optional<DigestInquiry> inquiry_;  // into attempt_, which waits for it
  Clock::time_point inquiry_due_;
  std::vector<IslandId> culpable_;  // by the last inquiry, if the next attempt passes without it
  bool turned_ = false;             // the next order is the chosen one backwards
  BadEdges bad_edges_;              // of all rounds since the hub started
  LieSearch lies_;                  // of the open round
  std::string lie_;                 // what its last attempt failed for
  NormWatch norms_;
  ValidationWatch validation_;
  std::optional<ValidatedState> spoiled_;

  std::optional<Standstill> standstill_;
  std::optional<Clock::time_point> unsettled_since_;  // nobody that is here is known to hold the committed state
  std::optional<Clock::time_point> no_quorum_since_;
  std::map<OuterStep, int> rollbacks_;  // that were asked for by the run's policy
  bool wants_rollback_ = false;         // asked for, not answered yet
  Clock::time_point rollback_again_{};  // it failed: asked for again no earlier
  LinkMatrix links_;
  std::vector<IslandId> last_order_;         // of the last attempt
  WireFormat last_wire_ = run_.wire;         // of the last attempt
  std::vector<AttemptMember> failed_order_;  // of the last attempt that failed

  std::optional<Clock::time_point> end_by_;  // after the last round: waits for reports, then for its validation
  std::optional<IslandId> last_validator_;
  bool finished_ = false;
};

}  // namespace atl
