// Why a run that has islands does not go on by itself: what was lost, or cannot be decided, under a name (Standstill),
// which is told to everybody; and the way back, by the operator or by the run's policy. One thread; owned by the
// RoundCoordinator.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "net/mesh/committed_state.h"
#include "net/mesh/open_round.h"
#include "net/mesh/safekeeping.h"

namespace atl {

class StandstillWatch {
 public:
  StandstillWatch(CoordinatorTurn& turn, Membership& members, const MeshTrust& trust, const CommittedState& state,
                  const Safekeeping& safekeeping)
      : turn_(turn), members_(members), trust_(trust), state_(state), safekeeping_(safekeeping) {}

  const std::optional<Standstill>& standstill() const { return standstill_; }
  Clock::time_point since() const { return since_; }  // while there is one: from when on what it names was so

  // Before that is a standstill: who holds the committed state is waited for, and who that is. Empty: nobody.
  std::string waits_for() const;

  // Looks; tells what changed, and asks for a rollback where the run's policy is to go back, or `dispute` calls for it.
  void settle(const OpenRounds& rounds, bool finished, const std::optional<WantRollback>& dispute);
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
  std::optional<Standstill> of_data(const OpenRound& round) const;
  std::optional<Standstill> of_quorum(const OpenRounds& rounds) const;
  bool is_at_hub() const;    // the committed state is outer step 0, which the hub serves
  bool is_in_store() const;  // the committed state
  std::string where_it_may_be() const;
  void note_since(Standstill::Kind kind);
  void ask_for_rollback(const Standstill& standstill);
  bool ask_for(const WantRollback& rollback);  // false: asked already, or failed just now
  void notify_islands();

  CoordinatorTurn& turn_;
  Membership& members_;
  const MeshTrust& trust_;
  const CommittedState& state_;
  const Safekeeping& safekeeping_;

  std::optional<Standstill> standstill_;
  Clock::time_point since_{};
  std::optional<Clock::time_point> unsettled_since_;  // nobody that is here is known to hold the committed state
  std::optional<Clock::time_point> no_quorum_since_;
  std::map<OuterStep, int> rollbacks_;  // that were asked for by the run's policy
  bool wants_rollback_ = false;         // asked for, not answered yet
  Clock::time_point rollback_again_{};  // it failed: asked for again no earlier
};

}  // namespace atl
