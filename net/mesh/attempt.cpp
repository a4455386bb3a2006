#include "net/mesh/attempt.h"

#include <algorithm>

namespace atl {

OpenAttempt::OpenAttempt(Attempt number, std::vector<AttemptMember> order) : number_(number), order_(std::move(order)) {
  for (const AttemptMember& member : order_) live_.insert(member.id);
}

void OpenAttempt::have(const IslandId& island, const std::string& digest) {
  if (live_.contains(island)) digests_[island] = digest;
}

std::vector<IslandId> OpenAttempt::still_averaging() const {
  std::vector<IslandId> islands;
  for (const IslandId& island : live_) {
    if (!digests_.contains(island)) islands.push_back(island);
  }
  return islands;
}

OpenAttempt::Outcome OpenAttempt::outcome() const {
  if (live_.empty()) return Outcome::kDeserted;
  const auto has_digest = [this](const IslandId& island) { return digests_.contains(island); };
  if (!std::ranges::all_of(live_, has_digest)) return Outcome::kPending;
  const std::string& first = digests_.at(*live_.begin());
  const bool same = std::ranges::all_of(live_, [&](const IslandId& island) { return digests_.at(island) == first; });
  return same ? Outcome::kAgreed : Outcome::kDiffer;
}

std::string OpenAttempt::digest() const { return digests_.at(*live_.begin()); }

std::vector<IslandId> OpenAttempt::minority() const {
  std::map<std::string, std::size_t> votes;
  for (const IslandId& island : live_) ++votes[digests_.at(island)];
  std::vector<IslandId> islands;
  for (const IslandId& island : live_) {
    if (votes[digests_.at(island)] * 2 <= live_.size()) islands.push_back(island);
  }
  return islands;
}

bool EdgeBlame::record(const IslandId& reporter, const std::optional<IslandId>& peer) {
  const IslandId& other = peer ? *peer : reporter;
  return ++failures_[std::minmax(reporter, other)] >= kTolerated;
}

}  // namespace atl
