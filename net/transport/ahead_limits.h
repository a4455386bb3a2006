// Whose connections may stand here before the attempts that they will serve, how many, and how much padding of theirs
// is read as it comes: what the newest advice of the hub says (net/collective/dial_ahead.h). State alone; owned by a
// ParkedConnections.
#pragma once

#include <cstdint>
#include <map>

#include "net/base/id.h"
#include "net/wire/ring_frame.h"
#include "net/wire/schedule.h"

namespace atl {

class AheadLimits {
 public:
  // In place of what was said before. `peers`: and how many connections each may dial ahead for each of the run's
  // fragments. With `takes_padding` kMostPaddingOfPeer of each are read as they come.
  void expect(Schedule schedule, const std::map<IslandId, int>& peers, bool takes_padding, std::uint32_t fragments);
  // How many of that fragment the peer may have here for that schedule; 0: nobody said that it may dial ahead.
  int most_of_fragment(const RingAhead& ahead, const IslandId& peer) const;
  // Whether what comes of it is read as it comes, which `bytes` of it were.
  bool reads_at_once(const IslandId& peer) const;
  void has_read(const IslandId& peer, std::uint64_t bytes);
  void forget(const IslandId& peer) { peers_.erase(peer); }

 private:
  struct OfPeer {
    int connections_of_fragment;
    std::uint64_t bytes_left;  // to be read as they come
  };
  Schedule schedule_ = Schedule::kRing;
  std::uint32_t fragments_ = 0;
  std::map<IslandId, OfPeer> peers_;
};

}  // namespace atl
