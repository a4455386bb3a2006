// What would outlive the islands' processes: up to which outer step the run is safe on their disks, which is told to
// everybody, and which outer states are written to the run's object store, by whom. An island's word is taken for what
// it keeps: nothing that is committed depends on it. One thread; owned by the RoundCoordinator.
#pragma once

#include <optional>
#include <set>

#include "net/mesh/committed_state.h"
#include "net/mesh/membership.h"
#include "net/mesh/mesh_trust.h"

namespace atl {

class Safekeeping {
 public:
  Safekeeping(CoordinatorTurn& turn, Membership& members, const MeshTrust& trust, const CommittedState& state)
      : turn_(turn), members_(members), trust_(trust), state_(state) {}

  // The newest outer step that RunConfig::safe_copies islands (all of them, where there are fewer), here or away, have
  // on their disks: it, or a newer one, which came of it. Nothing while one of so few has none.
  std::optional<OuterStep> safe_step() const;
  // The newest that is in the store, as far as this hub heard since it started.
  const std::optional<OuterStep>& uploaded() const { return uploaded_; }

  void settle();  // tells what changed, and asks for an upload when one is due
  void said(const MeshIsland& island, const IslandUploaded& message);
  void go_back_to(OuterStep step);  // later states are undone

 private:
  // The newest committed state that it keeps.
  std::optional<HeldState> newest_kept(const MeshIsland& island) const;
  bool upload_is_due(OuterStep step) const;
  void ask_for_upload();

  CoordinatorTurn& turn_;
  Membership& members_;
  const MeshTrust& trust_;
  const CommittedState& state_;

  std::optional<OuterStep> uploaded_;
  struct Upload {
    IslandId by;
    HeldState state;
  };
  std::optional<Upload> under_way_;
  std::set<IslandId> failed_;  // since an upload ended well: the others are asked first
  Clock::time_point not_before_{};
};

}  // namespace atl
