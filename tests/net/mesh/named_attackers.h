// Members of a TimedMesh that keep an honest majority from training: each is one way to do so. Those of one run may
// plot: they know each other, and whom they frame. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/net/mesh/timed_mesh.h"

namespace atl {

struct Conspiracy {
  std::vector<IslandId> liars;
  IslandId victim;  // honest
  int number_of(const IslandId& liar) const { return static_cast<int>(std::ranges::find(liars, liar) - liars.begin()); }
};
using SharedConspiracy = std::shared_ptr<const Conspiracy>;

// Beside its lies it is as honest islands are. Sent away, it comes back under the same key at once.
class Liar : public TimedIsland {
 public:
  Liar(TimedMesh& mesh, IslandId id, SharedConspiracy plot)
      : TimedIsland(mesh, std::move(id)), plot_(std::move(plot)) {}
  bool honest() const final { return false; }

 protected:
  void was_closed() override;
  Clock::duration fetch() override { return std::chrono::milliseconds(1); }
  // It has no work to lose: it says to hold whatever the run holds.
  IslandHello hello() override;
  bool is_liar(const IslandId& id) const { return std::ranges::find(plot_->liars, id) != plot_->liars.end(); }
  // Of that attempt, with which it has an edge.
  std::vector<IslandId> neighbours(const HubAttempt& attempt) const;
  std::optional<IslandId> honest_neighbour(const HubAttempt& attempt) const;  // the victim, where that is one

  SharedConspiracy plot_;
  Clock::duration back_after_ = std::chrono::milliseconds(300);
};

struct NamedAttacker {
  std::string name;
  std::function<void(TimedMesh&, const std::string& id, SharedConspiracy)> add;
  std::chrono::milliseconds grace{60'000};
  bool warms_up = true;             // else what it does at once counts
  std::chrono::minutes warm_up{5};  // at least: an attempt that is held up takes minutes, and tells of one edge
  std::chrono::milliseconds ring{500};
};
// Whatever was found to stop a run, by the number that it has in SECURITY.md's list of rules between machines.
std::vector<NamedAttacker> named_attackers();

}  // namespace atl
