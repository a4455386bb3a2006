// Who takes part in one open round: who trains it, with which lease, who only receives its result, who is ready, who
// is waited for, and who sits it out. Where rounds overlap, an island gets its part in a round when it is through with
// the one before, and is told of it then. One thread; owned by the OpenRound.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "net/mesh/lease_book.h"
#include "net/mesh/membership.h"
#include "net/mesh/mesh_links.h"

namespace atl {

// One island's part in a round. A receiver trains nothing and weighs 0, but takes the outer step with the others.
struct RoundPart {
  enum class Role { kNone, kTrainer, kReceiver };
  Role role = Role::kNone;
  HubRoundBegin begun;               // what it is told
  bool told = false;                 // since its last (re)connection
  std::optional<IslandReady> ready;  // since its last (re)connection
  bool sits_out = false;             // blamed for failed attempts: recovers after the commit
  Clock::time_point awaited_until;   // an attempt waits so long for one that is away, or receives and is not ready

  bool takes_part() const { return role != Role::kNone && !sits_out; }
  bool trains() const { return role == Role::kTrainer && !sits_out; }
  LeaseRange lease() const { return {begun.lease_first_sequence, begun.lease_sequences}; }
};

class RoundParts {
 public:
  // All outlive it.
  RoundParts(OuterStep round, CoordinatorTurn& turn, Membership& members, MeshLinks& links, LeaseBook& leases);

  OuterStep round() const { return round_; }
  FragmentId fragment() const { return turn_.run().fragment_of(round_); }
  Clock::time_point began() const { return began_; }
  void resume() { began_ = turn_.now(); }                      // a hub that starts does not know since when it is open
  void follow(const RoundParts* before) { before_ = before; }  // the round before this one; none: it is committed
  // After a restart of the hub: these have it, with these leases.
  void expect(const std::vector<IslandLease>& leases);
  bool expects_anybody() const { return !expected_back_.empty(); }
  void forget_expected(const IslandId& id);
  void forget_expected();

  RoundPart& of(const IslandId& id) { return parts_[id]; }
  const RoundPart& of(const IslandId& id) const;
  // Through with its part, as far as it goes before the average: it may begin the next round.
  bool is_through(const IslandId& id) const;
  bool may_work(const IslandId& id) const { return before_ == nullptr || before_->is_through(id); }

  // The round begins: each trains with a lease of its own, which is on the disk before it hears of it.
  void begin(const std::vector<MeshIsland*>& trainers, const std::set<IslandId>& validators,
             const std::set<IslandId>& evaluators);
  // For one that came to train while the round is open. `averages`: an attempt was begun and is not done with.
  void give(MeshIsland& island, bool averages, Attempt last_attempt);
  // A round that has too few trainers is trained by those who came meanwhile, too.
  // Those that are connected; but for who could not get its data of late.
  std::vector<IslandId> receivers() const;
  void promote(const std::vector<IslandId>& receivers);
  void tell(const MeshIsland& island);  // (again), when it may work
  void tell_the_untold();
  void disconnected(const IslandId& id, bool averages);
  void stop_waiting(const IslandId& id) { parts_[id].awaited_until = turn_.now(); }
  // It cannot get the data of its lease, which others get later. Once in the round it gets another one, while nothing
  // is averaged; else it only receives.
  void return_lease(const IslandId& id, bool averages);
  // All that could train have returned a lease of late.
  bool lacks_data() const;
  // Its lease is free again; where its work is `in_average`, one that waits to be committed, only if that fails.
  void drop(const IslandId& id, bool in_average);
  void forget(const IslandId& id, bool in_average);  // it is no member any more
  void average_failed();
  // Of one that trains, or whose work is in the average; empty: it only receives.
  LeaseRange lease_of(const IslandId& id) const;
  // The round is over: all leases but those that are used up are free.
  void close(const std::set<IslandId>& averaged);

  std::vector<AttemptMember> ready_members() const;
  std::vector<AttemptMember> likely_members() const;  // who will be, as far as can be told: those that train, too
  std::size_t count_trainers() const;
  // Half of those that are ready, also of those that sit out, but not for what they owe: where fewer would
  // average, whoever sits out is taken back. Who gets others out is not to be left alone with its own.
  std::size_t least_members() const;
  // Who is not ready yet and may be soon; of those that were there before the hub restarted, all.
  std::vector<IslandId> awaited() const;
  std::vector<IslandId> late() const;         // trainers that are not ready
  std::vector<IslandId> sitting_out() const;  // for whatever reason

  // From when most trainers are ready on, the rest has the stragglers' grace. The first one's word closes nothing: it
  // may be lying.
  void start_grace();
  const std::optional<Clock::time_point>& first_ready() const { return first_ready_; }
  const std::optional<Clock::time_point>& grace_ends() const { return grace_ends_; }
  // Nobody becomes ready, or too few for a grace, for very long.
  bool takes_too_long() const;

  // It went while an attempt ran. Who comes and goes all the time lets no attempt come to its end, and sits out.
  void lost_attempt(const IslandId& id);
  bool lost_too_often(const IslandId& id) const;
  // It sits the round out, also where it leaves and comes back; until it is let back, or needed (take_back).
  void keep_out(const IslandId& id);
  void let_back(const IslandId& id);
  // Of the round, for its work itself: it does not come back to it.
  void leave_out(const IslandId& id);
  bool is_left_out(const IslandId& id) const { return left_out_.contains(id); }
  // Those who sit out are needed, whatever failed with them; but for whose work cannot be averaged. Not all the time,
  // so that what keeps failing fails slowly. False: not now, or there is nobody.
  bool take_back();
  void let_all_take_part();

 private:
  bool is_half_late() const;
  bool must_sit_out(const IslandId& id) const;
  void train(const IslandId& id, bool validate);
  void train(const IslandId& id, bool validate, LeaseRange lease);
  HubRoundBegin begun_with(LeaseRange lease, bool validate) const;
  void only_receive(const IslandId& id);
  bool takes_up_work(const MeshIsland& island, bool averages);
  bool may_still_train(bool averages) const;

  const OuterStep round_;
  CoordinatorTurn& turn_;
  Membership& members_;
  MeshLinks& links_;
  LeaseBook& leases_;
  const RoundParts* before_ = nullptr;

  Clock::time_point began_;
  std::map<IslandId, RoundPart> parts_;
  std::map<IslandId, LeaseRange> expected_back_;
  std::map<IslandId, LeaseRange> in_average_;     // of those that were dropped meanwhile
  std::optional<Clock::time_point> first_ready_;  // of its trainers
  std::optional<Clock::time_point> grace_ends_;   // since most trainers were ready
  std::map<IslandId, int> lost_attempts_;
  std::map<IslandId, Clock::time_point> returned_at_;  // their last lease
  std::set<IslandId> kept_out_;
  std::set<IslandId> left_out_;
  Clock::time_point take_back_at_{};  // who sits out comes back no earlier
};

}  // namespace atl
