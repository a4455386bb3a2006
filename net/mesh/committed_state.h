// What is decided of the run's history: how many rounds are committed, by which record and in which epoch, and the ways
// to another place in it: forth by a commit that an island shows, back by a rollback. One thread; owned by the
// RoundCoordinator.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "net/mesh/coordinator_turn.h"

namespace atl {

class CommittedState {
 public:
  CommittedState(CoordinatorTurn& turn, const CoordinatorMemory& memory, CommitSigner sign);

  // Outer steps that are committed: round `committed()` is the next one to be.
  OuterStep committed() const { return committed_; }
  const std::optional<HubCommit>& last_commit() const { return last_commit_; }                 // that made this state
  bool may_hold_last(const IslandId& island) const { return last_holders_.contains(island); }  // its average
  const std::set<IslandId>& last_holders() const { return last_holders_; }
  // Those that lead from outer step `held` to this state, in order, where `island` may hold the average of each; else
  // none. kCommitsRemembered at most.
  std::vector<HubCommit> commits_since(OuterStep held, const IslandId& island) const;
  bool remembers(OuterStep round, Attempt attempt) const;
  bool is_commit_of_late(OuterStep round, Attempt attempt) const;  // of as many rounds as can be open at once
  bool is_last_round_done() const { return !is_of_run(committed_); }
  bool is_of_run(OuterStep round) const;  // whether the run has such a round

  std::uint64_t epoch() const { return epoch_; }
  // Whoever may know more than a hub that starts has come by then: those who worked with the one before and, where it
  // runs on an old backup, anybody.
  void begin_waiting();  // with the first event
  bool still_waits() const { return turn_.now() < *wait_until_; }
  bool may_be_outdated() const { return restored_ && still_waits(); }

  // In its epoch, with its signature.
  HubCommit sign(HubCommit commit) const;
  void advance(const HubCommit& commit);
  // Records are ordered by epoch, then by round: what a rollback undid belongs to an earlier epoch than the rollback.
  bool is_newer(const HubCommit& commit) const;
  void go_forth(const HubCommit& commit, const IslandId& shown_by);
  void go_back(const RollBack& event);
  void forget_holder(const IslandId& island);  // it was removed, and does not come again
  bool is_removed(const IslandId& island) const { return removed_.contains(island); }

 private:
  std::set<IslandId> holders_that_may_come(const HubCommit& commit) const;
  void remember(const HubCommit& commit);

  CoordinatorTurn& turn_;
  const CommitSigner sign_;
  OuterStep committed_;
  std::optional<HubCommit> last_commit_;
  std::deque<HubCommit> before_;     // those before it, one round after the other, the oldest first
  std::set<IslandId> last_holders_;  // who may hold the average of last_commit_
  std::uint64_t epoch_;
  std::uint64_t record_epoch_;
  bool restored_;
  std::set<IslandId> removed_;  // by the operator
  std::optional<Clock::time_point> wait_until_;
};

}  // namespace atl
