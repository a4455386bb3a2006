// When the next round begins, and for whom: it waits for those that are to come, hands out leases, has one validate now
// and then, and uses what the links are idle. One thread; owned by the RoundCoordinator.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "net/mesh/committed_state.h"
#include "net/mesh/fetch_wait.h"
#include "net/mesh/open_round.h"

namespace atl {

class InnerPhase {
 public:
  InnerPhase(CoordinatorTurn& turn, Membership& members, MeshLinks& links, MeshTrust& trust,
             const CommittedState& state, const CoordinatorMemory& memory);

  LeaseBook& leases() { return leases_; }

  // The next round does not begin before these are here (or nobody waits for them any more).
  void await(const std::set<IslandId>& islands) { awaited_.insert(islands.begin(), islands.end()); }
  void forget_awaited(const IslandId& id) { awaited_.erase(id); }
  void forget_awaited() { awaited_.clear(); }
  // After a way back: for a while the next round waits for all that are here, so that whoever is first is not to train
  // it alone.
  void await_all_that_are_here() { all_back_until_ = turn_.now() + turn_.run().lost_after; }

  // `before`: the round before, while it is open; then the next is begun while that is averaged, for those who are
  // through with it. Not so while one that is here was left behind: between an average and the next it gets the
  // committed state, and where rounds overlap there may be no such time. Nor is it waited for for ever. And not while
  // it waits for those who have fetched for longer than the last round took (FetchWait).
  bool may_begin(OuterStep round, const OpenRound* before);
  // For whom the next round waits, and how much longer at most; nobody: it does not.
  std::vector<IslandId> fetching() const;
  Clock::duration fetch_wait_left() const { return fetch_wait_.left(); }
  void begin(OpenRound& round, const OpenRound* before);
  // The links are idle while the islands train. `averages`: a round is being averaged now.
  void probe_links(bool averages);

 private:
  std::vector<MeshIsland*> trainers_after(const OpenRound* before) const;
  bool may_overlap(const OpenRound& before) const;
  bool waits_for_somebody() const;
  bool could_begin(OuterStep round, const OpenRound* before) const;
  bool fetches(const MeshIsland& island) const;
  std::optional<Clock::duration> oldest_fetch() const;

  CoordinatorTurn& turn_;
  Membership& members_;
  MeshLinks& links_;
  MeshTrust& trust_;
  const CommittedState& state_;

  LeaseBook leases_;
  std::set<IslandId> awaited_;
  Clock::time_point all_back_until_{};
  FetchWait fetch_wait_;
  Clock::time_point began_{};           // when the newest round did
  std::vector<IslandId> to_be_probed_;  // trainers of the newest round
};

}  // namespace atl
