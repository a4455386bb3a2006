#include "net/collective/peer_silences.h"

#include <algorithm>

namespace atl {

void PeerSilences::begin_attempt(const IslandId& self, const std::vector<RingMember>& members) {
  ++attempts_;
  const auto me = std::ranges::find(members, self, &RingMember::id);
  const Address own = me != members.end() ? me->address : Address{};
  for (const RingMember& member : members) {
    Peer& peer = peers_[member.id];
    if (peer.own != own || peer.its != member.address) peer = {.own = own, .its = member.address};
    peer.last_attempt = attempts_;
  }
  while (peers_.size() > kMost) {
    const auto longest_away =
        std::ranges::min_element(peers_, {}, [](const auto& entry) { return entry.second.last_attempt; });
    if (longest_away->second.last_attempt == attempts_) break;
    peers_.erase(longest_away);
  }
}

}  // namespace atl
