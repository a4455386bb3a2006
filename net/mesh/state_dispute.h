// Who gives up a state that its makers do not agree on. A commit that few held may be kept from being known by one of
// them that lies: it says nothing of the state that it makes, or says another hash. Where so many of the makers may lie
// that the honest are no majority of them, and others keep a state from before, the run goes back to that one: nothing
// that was agreed on is lost. Whoever says nothing is waited for on its own account (DelayBudget), and each edge
// between two that do not agree rests, so that these two do not make a state alone again soon.
//
// In the thread of the coordinator, which owns it.
#pragma once

#include <optional>
#include <set>

#include "net/mesh/committed_state.h"
#include "net/mesh/mesh_links.h"
#include "net/mesh/mesh_trust.h"
#include "net/mesh/safekeeping.h"

namespace atl {

class StateDispute {
 public:
  StateDispute(CoordinatorTurn& turn, Membership& members, MeshLinks& links, const MeshTrust& trust,
               const CommittedState& state, const Safekeeping& safekeeping)
      : turn_(turn), members_(members), links_(links), trust_(trust), state_(state), safekeeping_(safekeeping) {}

  // To where the run goes back; empty: it does not, or not yet.
  std::optional<WantRollback> settle();
  // It does: those who do not agree are not to make a state alone again.
  void part_makers();

 private:
  bool may_be_a_lie() const;
  bool may_wait();

  CoordinatorTurn& turn_;
  Membership& members_;
  MeshLinks& links_;
  const MeshTrust& trust_;
  const CommittedState& state_;
  const Safekeeping& safekeeping_;

  OuterStep of_{};                                // what is below is of this state
  std::optional<Clock::time_point> open_since_;   // it waits for votes
  std::optional<Clock::time_point> waits_since_;  // after the first vote, as far as it is accounted for
};

}  // namespace atl
