// One round under way, of one fragment: attempt after attempt to average it, until one is agreed on. Begun for the
// islands that train it (RoundParts); when all of these are ready, or the stragglers' grace is over, an attempt
// averages over those that are; when one fails, the next begins over the survivors, without whom is to blame
// (RoundBlame). All live members of an attempt hold the same digest: the round may be committed.
//
// With several fragments several rounds are open. They share the members, what is known of their links and of whom to
// trust, and nothing else: each has its own trainers, leases, attempts and blame.
//
// Not thread-safe; owned by the RoundCoordinator.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/mesh/attempt.h"
#include "net/mesh/round_blame.h"

namespace atl {

// What all open rounds work with; outlives them.
struct RoundSurroundings {
  CoordinatorTurn& turn;
  Membership& members;
  MeshLinks& links;
  MeshTrust& trust;
  LeaseBook& leases;
  MeshVerdicts& verdicts;
};

class OpenRound {
 public:
  // `last_attempt`: of a hub before this one; attempts count on from there.
  OpenRound(OuterStep round, const RoundSurroundings& with, Attempt last_attempt = {});
  OpenRound(const OpenRound&) = delete;
  OpenRound& operator=(const OpenRound&) = delete;

  OuterStep round() const { return round_; }
  FragmentId fragment() const { return parts_.fragment(); }
  RoundParts& parts() { return parts_; }
  const RoundParts& parts() const { return parts_; }
  RoundBlame& blame() { return blame_; }
  const RoundBlame& blame() const { return blame_; }
  bool averages() const { return attempt_ || kept_; }  // an attempt runs, or one failed and the next is to come
  bool runs_attempt() const { return attempt_.has_value(); }
  bool went_directly() const { return schedule_ == Schedule::kDirect; }  // the last attempt
  bool is_averaging_with(const IslandId& island) const { return attempt_ && attempt_->live().contains(island); }
  const std::vector<IslandId>& last_members() const { return last_members_; }  // of the last attempt

  // ---- what its islands say. Whatever is of an attempt that does not run any more changes nothing.
  void said(MeshIsland& island, const IslandReady& message);
  void said(const MeshIsland& island, const IslandHave& message);
  void said(const MeshIsland& island, const IslandAttemptFailed& message);
  void said(const MeshIsland& island, const IslandChunks& message);
  void said(const MeshIsland& island, const IslandLeaseReturned& message);
  // It is lost to the attempt that runs, and nobody waits for what it has to say of the last one.
  void lose(const IslandId& island);
  void disconnected(const IslandId& island);
  // Of whom the last attempt's others heard nothing, nor does the hub: they go on without these, which may come back.
  std::vector<IslandId> missed() const;
  // It takes no part in what is left of the round: it recovers; or is no member any more.
  void drop(const IslandId& island) { parts_.drop(island, has_work_of(island)); }
  void forget(const IslandId& island) { parts_.forget(island, has_work_of(island)); }

  // ---- what the time and the state of things call for
  // Attempts that are over, or take too long; inquiries and accusations that all have spoken to.
  void settle_attempt();
  // Who came gets a part; when enough are ready, the next attempt begins.
  void settle_parts();

  // The round is over, by a commit or because it is given up: nobody works on it any more, and leases that are not used
  // up are free. `averaged`: whose are used up.
  void close(const std::set<IslandId>& averaged);
  void abandon();

  // ---- the commit; of the attempt that was agreed on (MeshVerdicts::commit)
  OpenAttempt take_attempt();
  HubCommit record(const OpenAttempt& done) const;  // not signed
  PersistCommit account(const OpenAttempt& done, const HubCommit& commit);

 private:
  void promote_receivers();
  void open_attempt();
  void charge_for_failure();
  bool may_wait_for(const std::vector<IslandId>& late);
  void begin_attempt(std::vector<AttemptMember> order);
  double bytes_to_average(const HubAttempt& message) const;
  std::optional<Clock::duration> longest(const HubAttempt& message) const;
  double norm_limit(const std::vector<AttemptMember>& members) const;
  void holds(const IslandId& island, const std::string& digest);
  void decide();
  void refuse_too_large();
  bool is_held_by_most_that_are_honest() const;
  bool is_decided() const;
  bool is_sound();
  std::set<IslandId> left_out_of(const std::vector<AttemptMember>& members) const;
  bool has_work_of(const IslandId& island) const;  // in an average that waits to be committed
  void inquire();
  void settle_inquiry();
  void leave_outvoted_behind(const DigestInquiry& inquiry);
  void note_edge_that_left_behind(const IslandId& id, const IslandAttemptFailed& message);
  void leave_laggards_behind();
  void end_what_stalls();
  void end_what_is_held_up();
  void give_up_held_up(const std::string& reason, RoundBlame::HeldUp as);
  void fail_attempt(const std::string& reason, Clock::duration delay);
  Clock::duration retry_delay() const;
  HubAbort abort_of(Attempt attempt, const std::string& reason) const {
    return HubAbort{round_, attempt, reason, fragment()};
  }

  const OuterStep round_;
  CoordinatorTurn& turn_;
  Membership& members_;
  MeshLinks& links_;
  MeshTrust& trust_;
  MeshVerdicts& verdicts_;
  RoundParts parts_;
  RoundBlame blame_;

  std::optional<OpenAttempt> attempt_;
  std::optional<Clock::time_point> average_due_;   // of attempt_, since its first member held the average
  std::optional<Clock::time_point> laggards_due_;  // those that have not were asked why, and answer until then
  Clock::duration laggards_waited_{};              // by the others, until then
  std::optional<Clock::time_point> stall_due_;     // of attempt_, since the first word that it is averaged
  Clock::time_point attempt_began_{};
  std::optional<Clock::time_point> failing_since_;  // an attempt failed that began then, and the next has not begun
  std::optional<Clock::time_point> waits_since_;    // for some that are late, as far as it is accounted for
  std::optional<Clock::duration> longest_;          // that attempt_ may take; empty: not known
  std::optional<Clock::time_point> stalls_since_;   // nothing but stalled attempts
  bool attempt_keeps_buckets_ = false;              // attempt_ goes on from one that failed
  WorkWords words_;                                 // said in attempt_
  bool is_looked_into_ = false;                     // attempt_, and found sound
  WireFormat wire_;                                 // of the last attempt
  Schedule schedule_ = Schedule::kRing;             // of the same
  bool by_ring_ = false;      // a direct exchange failed in this round: attempts go round the ring
  bool left_direct_ = false;  // by the last attempt's failure
  Attempt last_attempt_;
  std::vector<IslandId> last_members_;
  std::optional<KeptBuckets> kept_;          // of the last attempt, which failed
  AnswerTimes reports_came_, answers_came_;  // of the last attempt that failed; of the last inquiry
  Clock::time_point kept_due_;               // the next attempt waits no longer for those that have not reported
  Clock::time_point retry_at_;
  int reported_failures_ = 0;
  int stalled_attempts_ = 0;
  int stall_doublings_ =
      0;  // of how long an attempt may take from the first word that it is averaged; until it is known who held up one
  int held_up_attempts_ = 0;
  std::optional<DigestInquiry> inquiry_;  // into attempt_, which waits for it
  Clock::time_point inquired_at_, inquiry_due_;
};

// By round: those that are open, the oldest first.
using OpenRounds = std::map<OuterStep, std::unique_ptr<OpenRound>>;

}  // namespace atl
