#include "net/mesh/inner_phase.h"

#include <algorithm>

namespace atl {

InnerPhase::InnerPhase(CoordinatorTurn& turn, Membership& members, MeshLinks& links, MeshTrust& trust,
                       const CommittedState& state, const CoordinatorMemory& memory)
    : turn_(turn),
      members_(members),
      links_(links),
      trust_(trust),
      state_(state),
      leases_(memory.lease_cursor, memory.returned_leases),
      fetch_wait_(turn_.run().lost_after) {}

std::vector<MeshIsland*> InnerPhase::trainers_after(const OpenRound* before) const {
  std::vector<IslandId> ids;
  for (const auto& [id, island] : members_.islands()) {
    if (island.trains() && (before == nullptr || before->parts().is_through(id))) ids.push_back(id);
  }
  const std::set<IslandId> sit_out = members_.debtors(ids);
  std::vector<MeshIsland*> trainers;
  for (const IslandId& id : ids) {
    if (!sit_out.contains(id)) trainers.push_back(members_.find(id));
  }
  return trainers;
}

bool InnerPhase::waits_for_somebody() const {
  if (turn_.now() < all_back_until_ && members_.is_anybody_recovering()) return true;
  const auto is_away = [this](const IslandId& id) { return !members_.contains(id); };
  return std::ranges::any_of(awaited_, is_away);
}

// Over the whole of a round: where rounds are longer than a fetch, whoever fetches gets there by itself.
bool InnerPhase::fetches(const MeshIsland& island) const {
  return island.connected && island.standing == MeshIsland::Standing::kRecovering && island.recovers_since <= began_;
}

std::optional<Clock::duration> InnerPhase::oldest_fetch() const {
  std::optional<Clock::duration> oldest;
  for (const auto& [id, island] : members_.islands()) {
    if (fetches(island)) oldest = std::max(oldest.value_or(Clock::duration{}), turn_.now() - island.recovers_since);
  }
  return oldest;
}

std::vector<IslandId> InnerPhase::fetching() const {
  std::vector<IslandId> islands;
  if (fetch_wait_.left() <= Clock::duration{}) return islands;
  for (const auto& [id, island] : members_.islands()) {
    if (fetches(island)) islands.push_back(id);
  }
  return islands;
}

bool InnerPhase::may_overlap(const OpenRound& before) const {
  const auto is_left_behind = [&](const auto& entry) {
    const auto& [id, island] = entry;
    if (!island.connected || !island.left_behind_since || before.is_averaging_with(id)) return false;
    return turn_.now() - *island.left_behind_since < turn_.patience();
  };
  return before.runs_attempt() && std::ranges::none_of(members_.islands(), is_left_behind);
}

bool InnerPhase::could_begin(OuterStep round, const OpenRound* before) const {
  if (!state_.is_of_run(round) || trust_.spoiled() || state_.may_be_outdated()) return false;
  if (before != nullptr ? !may_overlap(*before) : waits_for_somebody()) return false;
  const RunConfig& run = turn_.run();
  return trainers_after(before).size() >= std::max(round.value > 0 ? 1u : run.min_islands, run.quorum);
}

bool InnerPhase::may_begin(OuterStep round, const OpenRound* before) {
  const bool could = could_begin(round, before);
  std::optional<FetchWait::Asked> asked;
  if (const auto oldest = could ? oldest_fetch() : std::nullopt) asked = {*oldest, before == nullptr};
  return !fetch_wait_.waits(asked, turn_.now()) && could;
}

void InnerPhase::begin(OpenRound& round, const OpenRound* before) {
  awaited_.clear();
  began_ = turn_.now();
  const std::vector<MeshIsland*> trainers = trainers_after(before);
  std::vector<IslandId> ids;
  ids.reserve(trainers.size());
  for (const MeshIsland* island : trainers) ids.push_back(island->id());
  const std::set<IslandId> validators = trust_.ask_for_validation(round.round(), state_.committed(), ids);
  round.parts().begin(trainers, validators,
                      trust_.ask_for_evaluation(round.round(), state_.committed(), ids, validators));
  links_.dial_again(trainers);
  to_be_probed_ = std::move(ids);
  probe_links(/*averages=*/before != nullptr);
}

void InnerPhase::probe_links(bool averages) {
  if (averages || to_be_probed_.empty()) return;
  std::erase_if(to_be_probed_, [this](const IslandId& id) { return !members_.is_here(id); });
  links_.probe(std::exchange(to_be_probed_, {}));
}

}  // namespace atl
