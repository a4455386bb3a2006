// How an island gets to hold the committed outer state: from its own disk, by the commits that it missed, from others,
// or, where none of them is here, from the run's object store, or outer step 0 from the hub. And when it is believed
// that it does. One thread; owned by the RoundCoordinator.
#pragma once

#include <vector>

#include "net/mesh/committed_state.h"
#include "net/mesh/membership.h"
#include "net/mesh/mesh_trust.h"
#include "net/mesh/mesh_verdicts.h"
#include "net/mesh/safekeeping.h"

namespace atl {

class Recovery {
 public:
  Recovery(CoordinatorTurn& turn, Membership& members, MeshTrust& trust, const CommittedState& state,
           const Safekeeping& safekeeping, MeshVerdicts& verdicts)
      : turn_(turn), members_(members), trust_(trust), state_(state), safekeeping_(safekeeping), verdicts_(verdicts) {}

  // An island that comes (back) is told again where it stands: what was sent before may never have arrived.
  void place_returning(MeshIsland& island, const IslandHello& hello);
  // One that says that it holds the committed outer step. While nobody knows which state that is, its word is a vote if
  // it has one, and it keeps what place it has; it trains when the others' words bear it out.
  void place_holder(MeshIsland& island, const std::string& hash);
  void said(MeshIsland& island, const IslandApplied& message);
  void said(MeshIsland& island, const IslandRecovered& message);
  // From now on it recovers; what it works on is the caller's to end.
  void begin(MeshIsland& island);
  // Whoever recovers: is told to, or found to hold the state, and trains.
  void settle();
  void find_other_sources();  // one of them is gone

 private:
  bool may_begin_at_beginning(const MeshIsland& island) const;
  void lead(MeshIsland& island, const HeldState& from, const std::vector<HubCommit>& missed);
  void lead_on(const MeshIsland& island, OuterStep held);
  void settle(MeshIsland& island);
  void send_recover(MeshIsland& island);
  std::vector<IslandId> others_with_state(const MeshIsland& island) const;

  CoordinatorTurn& turn_;
  Membership& members_;
  MeshTrust& trust_;
  const CommittedState& state_;
  const Safekeeping& safekeeping_;
  MeshVerdicts& verdicts_;
};

}  // namespace atl
