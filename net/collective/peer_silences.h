// What is known of the silences of each peer (silence_limit.h), from attempt to attempt: also of one that sits some
// out, which on an edge that nobody knows would have the whole timeout when it is back. It is of an edge between two
// addresses: where either has changed nothing is known. Of those that are in no attempt it keeps the ones that were
// last, so that whoever names islands makes it no larger. Used by the attempts of one fragment, of which one runs at a
// time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "net/collective/ring_member.h"
#include "net/collective/silence_limit.h"

namespace atl {

class PeerSilences {
 public:
  // So many peers are known at most, unless an attempt has more.
  static constexpr std::size_t kMost = 128;

  // An attempt of these begins, of whom `self` is one.
  void begin_attempt(const IslandId& self, const std::vector<RingMember>& members);
  // Of its members. Stays where it is until the next one begins.
  PeerSilence& at(const IslandId& peer) { return peers_.at(peer).silence; }
  std::size_t size() const { return peers_.size(); }

 private:
  struct Peer {
    Address own, its;
    std::uint64_t last_attempt = 0;  // counted here
    PeerSilence silence = {};
  };

  std::map<IslandId, Peer> peers_;
  std::uint64_t attempts_ = 0;
};

}  // namespace atl
