#include "net/mesh/inner_phase.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::chrono::seconds kFirstCatchUp{5};
constexpr std::chrono::seconds kCatchUpPeriod{40};
constexpr int kShareOfCatchUp = 8;  // one part in so many of the time that somebody has been catching up

}  // namespace

InnerPhase::InnerPhase(CoordinatorTurn& turn, Membership& members, MeshLinks& links, MeshTrust& trust,
                       const CommittedState& state, const CoordinatorMemory& memory)
    : turn_(turn),
      members_(members),
      links_(links),
      trust_(trust),
      state_(state),
      leases_(memory.lease_cursor, memory.returned_leases) {}

std::vector<MeshIsland*> InnerPhase::trainers_after(const OpenRound* before) const {
  std::vector<MeshIsland*> trainers;
  for (auto& [id, island] : members_.islands()) {
    if (island.trains() && (before == nullptr || before->parts().is_through(id))) trainers.push_back(&island);
  }
  return trainers;
}

bool InnerPhase::waits_for_somebody() const {
  if (turn_.now() < all_back_until_ && members_.is_anybody_recovering()) return true;
  if (lets_catch_up()) return true;
  const auto is_away = [this](const IslandId& id) { return !members_.contains(id); };
  return std::ranges::any_of(awaited_, is_away);
}

// The wait is a function of the time alone, by the island that has been behind for longest: one that never arrives, for
// want of speed or of honesty, costs the run a fourth of its time at most. Several that come and go in turn may cost
// more.
bool InnerPhase::lets_catch_up() const {
  Clock::duration behind{};
  for (const auto& [id, island] : members_.islands()) {
    const bool fetches = island.connected && !island.paused && island.left_behind_since &&
                         island.standing == MeshIsland::Standing::kRecovering;
    if (fetches) behind = std::max<Clock::duration>(behind, turn_.now() - *island.left_behind_since);
  }
  Clock::duration begins = kFirstCatchUp;
  if (behind < begins) return false;  // or nobody is
  // Who was away for long, and has only now begun to fetch, is not to wait until that has doubled.
  if (behind >= kCatchUpPeriod && behind % kCatchUpPeriod < kCatchUpPeriod / kShareOfCatchUp) return true;
  while (behind >= 2 * begins) begins *= 2;
  return behind - begins < std::min<Clock::duration>(begins / kShareOfCatchUp, turn_.run().lost_after);
}

bool InnerPhase::may_overlap(const OpenRound& before) const {
  const auto is_left_behind = [&](const auto& entry) {
    const auto& [id, island] = entry;
    if (!island.connected || !island.left_behind_since || before.is_averaging_with(id)) return false;
    return turn_.now() - *island.left_behind_since < turn_.patience();
  };
  return before.runs_attempt() && std::ranges::none_of(members_.islands(), is_left_behind);
}

bool InnerPhase::may_begin(OuterStep round, const OpenRound* before) const {
  if (!state_.is_of_run(round) || trust_.spoiled() || state_.may_be_outdated()) return false;
  if (before != nullptr ? !may_overlap(*before) : waits_for_somebody()) return false;
  const RunConfig& run = turn_.run();
  return trainers_after(before).size() >= std::max(round.value > 0 ? 1u : run.min_islands, run.quorum);
}

void InnerPhase::begin(OpenRound& round, const OpenRound* before) {
  awaited_.clear();
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
