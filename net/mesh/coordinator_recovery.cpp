// RoundCoordinator: who holds the committed outer state, and how the others get it.
#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/round_coordinator.h"

namespace atl {

void RoundCoordinator::start_recovering(MeshIsland& island) {
  leave_attempt(island.id());
  drop_part(island);
  forget_expected(island.id());
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
    return;
  }
  if (!island.recovered_hash.empty()) {
    island.recovered_hash.clear();
    island.told_to_recover.reset();
    if (!last_commit_) {
      return send_away(
          island.id(), ErrorCode::kInternal,
          fmt::format("its initial parameters differ from those of the first island ({} and {}): both must "
                      "run the same version of atoll on the same kind of processor",
                      island.entry.display_name, island.id().value));
    }
    if (++island.wrong_recoveries >= 3) {
      return send_away(island.id(), ErrorCode::kCorrupt,
                       "it fetched the outer state three times and holds another hash each time; check its memory");
    }
  }
  if (island.told_to_recover != committed_) send_recover(island);
}

void RoundCoordinator::send_recover(MeshIsland& island) {
  std::vector<IslandId> sources;
  for (const IslandId& holder : agreement_.holders()) {
    const MeshIsland* source = find(holder);
    if (source != nullptr && source->connected && holder != island.id()) sources.push_back(holder);
  }
  // The only one left whose inner state went wrong still holds the outer state itself.
  if (sources.empty() && agreement_.reported(island.id()) == agreement_.agreed()) sources.push_back(island.id());
  if (sources.empty()) return;  // until one that holds it comes back
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
