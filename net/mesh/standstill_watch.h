// Why a run that has islands does not go on by itself: what was lost, or cannot be decided, under a name (Standstill),
// which is told to everybody; and the way back, by the operator or by the run's policy. One thread; owned by the
// RoundCoordinator.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "net/mesh/committed_state.h"
#include "net/mesh/open_round.h"

namespace atl {

class StandstillWatch {
 public:
  StandstillWatch(CoordinatorTurn& turn, Membership& members, const MeshTrust& trust, const CommittedState& state)
      : turn_(turn), members_(members), trust_(trust), state_(state) {}

  const std::optional<Standstill>& standstill() const { return standstill_; }

  // Looks; tells what changed, and asks for a rollback where the run's policy is to go back.
  void settle(const OpenRounds& rounds, bool finished);
  void rollback_answered() { wants_rollback_ = false; }
  void rollback_failed(OuterStep to);
  void look_anew() { unsettled_since_.reset(); }  // another state is the committed one

 private:
  void note_times(const OpenRounds& rounds);
  std::optional<Standstill> find(const OpenRounds& rounds) const;
  std::optional<Standstill> of_validation() const;
  std::optional<Standstill> of_state() const;
  std::optional<Standstill> of_lies(const OpenRound& round) const;
  std::optional<Standstill> of_stragglers(const OpenRound& round) const;
  std::optional<Standstill> of_quorum(const OpenRounds& rounds) const;
  // That an island which is here keeps, or what the run began with.
  std::optional<OuterStep> newest_kept(OuterStep at_most) const;
  void ask_for_rollback(const Standstill& standstill);
  void notify_islands();

  CoordinatorTurn& turn_;
  Membership& members_;
  const MeshTrust& trust_;
  const CommittedState& state_;

  std::optional<Standstill> standstill_;
  std::optional<Clock::time_point> unsettled_since_;  // nobody that is here is known to hold the committed state
  std::optional<Clock::time_point> no_quorum_since_;
  std::map<OuterStep, int> rollbacks_;  // that were asked for by the run's policy
  bool wants_rollback_ = false;         // asked for, not answered yet
  Clock::time_point rollback_again_{};  // it failed: asked for again no earlier
};

}  // namespace atl
