// RoundCoordinator: who holds the committed outer state, and how the others get it.
#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/round_coordinator.h"

namespace atl {
namespace {

constexpr int kWrongRecoveries = 3;  // in a row, then it is sent away

}  // namespace

void RoundCoordinator::start_recovering(MeshIsland& island) {
  leave_attempt(island.id());
  drop_part(island);
  forget_expected(island.id());
  act_on_validation(island.id(), validation_.drop(island.id()));
  if (!agreement_.reported(island.id())) agreement_.drop(island.id());  // nobody waits for its report
  island.standing = MeshIsland::Standing::kRecovering;
  island.told_to_recover.reset();
  island.recovered_hash.clear();
}

void RoundCoordinator::settle_recovering(MeshIsland& island) {
  const auto& agreed = agreement_.agreed();
  if (!agreed) return;
  if (island.recovered_hash == *agreed) {
    island.standing = MeshIsland::Standing::kTraining;
    island.recovered_hash.clear();
    island.wrong_recoveries = 0;
    if (island.part != MeshIsland::Part::kNone) send(island.id(), island.begun);
    return;
  }
  if (!island.recovered_hash.empty()) {
    island.recovered_hash.clear();
    island.told_to_recover.reset();
    if (++island.wrong_recoveries >= kWrongRecoveries) {
      const bool is_initial = committed_.value == 0;
      return send_away(
          island.id(), ErrorCode::kCorrupt,
          is_initial
              ? "its initial parameters are not those that the run's seed and model make, three times in a row; it "
                "must run the hub's version of atoll; if it does, check its memory"
              : "it fetched the outer state three times and holds another hash each time; check its memory");
    }
  }
  if (island.told_to_recover != committed_) send_recover(island);
}

bool RoundCoordinator::keeps(const MeshIsland& island, OuterStep step, const std::string& hash) const {
  return std::ranges::find(island.durable, HeldState{step, hash}) != island.durable.end();
}

void RoundCoordinator::send_recover(MeshIsland& island) {
  if (committed_.value == 0 && island.wrong_recoveries == 0) {  // made, not fetched
    send(island.id(), HubInitialise{});
    island.told_to_recover = committed_;
    return;
  }
  std::vector<IslandId> sources;
  for (const IslandId& holder : agreement_.holders()) {
    const MeshIsland* source = find(holder);
    if (source != nullptr && source->connected && holder != island.id()) sources.push_back(holder);
  }
  // Its own disk will do; or the only one left whose inner state went wrong still holds the outer state itself.
  const bool holds_it = agreement_.reported(island.id()) == agreement_.agreed();
  if ((sources.empty() && holds_it) || keeps(island, committed_, *agreement_.agreed())) sources.push_back(island.id());
  if (sources.empty()) return;                       // until one that holds it comes back
  if (roster_changed_) send(island.id(), roster());  // where the sources are
  send(island.id(), HubRecover{committed_, *agreement_.agreed(), std::move(sources)});
  island.told_to_recover = committed_;
}

void RoundCoordinator::compare_hashes() {
  const auto& agreed = agreement_.agreed();
  if (!agreed) return;
  if (!hash_persisted_) {
    actions_.push_back(PersistStateHash{committed_, *agreed, std::nullopt});
    hash_persisted_ = true;
  }
  state_hashes_[committed_] = *agreed;
  if (!compared_ && committed_.value > 0 && agreement_.complete()) {
    compared_ = true;
    actions_.push_back(PersistStateHash{committed_, *agreed, agreement_.unanimous()});
    publish(StateHashesCompared{committed_, agreement_.unanimous()});
  }
  for (const IslandId& id : agreement_.dissenters()) {
    MeshIsland* island = find(id);
    if (island != nullptr && island->standing == MeshIsland::Standing::kTraining) start_recovering(*island);
  }
}

}  // namespace atl
