#include "net/transport/ahead_limits.h"

#include <algorithm>

namespace atl {

void AheadLimits::expect(Schedule schedule, const std::map<IslandId, int>& peers, bool takes_padding,
                         std::uint32_t fragments) {
  schedule_ = schedule;
  fragments_ = fragments;
  peers_.clear();
  for (const auto& [peer, connections] : peers) peers_[peer] = {connections, takes_padding ? kMostPaddingOfPeer : 0};
}

int AheadLimits::most_of_fragment(const RingAhead& ahead, const IslandId& peer) const {
  const auto named = peers_.find(peer);
  if (named == peers_.end() || ahead.schedule != schedule_) return 0;
  if (ahead.fragment.value >= fragments_) return 0;  // no attempt of it would ever close what it left
  return named->second.connections_of_fragment;
}

bool AheadLimits::reads_at_once(const IslandId& peer) const {
  const auto named = peers_.find(peer);
  return named != peers_.end() && named->second.bytes_left > 0;
}

void AheadLimits::has_read(const IslandId& peer, std::uint64_t bytes) {
  const auto named = peers_.find(peer);
  if (named != peers_.end()) named->second.bytes_left -= std::min(bytes, named->second.bytes_left);
}

}  // namespace atl
