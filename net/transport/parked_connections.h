// Ring connections between two attempts, on which the next hello is awaited: those that attempts left open, and those
// that peers dialled ahead of an attempt (net/collective/dial_ahead.h). Either serves its fragment's next attempt, and
// the bounds are of both together. What comes on them before that hello, keepalives, receipts and padding, is passed
// over here. Owned by a RingInbox, under its mutex. Nothing here waits but finish(); what is to be closed is returned,
// for that takes time.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/transport/ahead_limits.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

class ParkedConnections {
 public:
  // Of one peer, whatever fragments it names: two islands alone share two edges, of kMaxConnectionsPerEdge with all
  // fragments.
  static constexpr std::size_t kMostOfPeer = 2 * kMaxConnectionsPerEdge;
  // Of all peers, of those that were dialled ahead: kMaxDirectIslands for each fragment beyond the first.
  static constexpr std::size_t kMostAhead = 256 + (kMaxFragments - 1) * kMaxDirectIslands;

  // A ring's connections serve rings, an exchange's exchanges.
  enum class Kind { kRing, kExchange };
  struct One {
    FragmentId fragment;
    Kind kind = Kind::kRing;
    TlsConnection connection;
    Bytes surplus = {};       // was read beyond what ended there
    bool ahead = false;       // it was dialled ahead, and no hello has come yet
    std::uint64_t skips = 0;  // of padding: bytes to come
  };

  // More than there may be of a peer: of the fragment of which it has most the first is returned.
  std::vector<One> park(One one);
  std::vector<One> drop_others(FragmentId fragment, const std::vector<IslandId>& peers, Kind kind);
  void forget(const IslandId& peer);
  void finish(Deadline deadline) const;
  // The only one of that kind, left by an attempt, on which nothing has come.
  std::optional<TlsConnection> take_resting(FragmentId fragment, const IslandId& peer, Kind kind);

  // See RingInbox.
  void expect_ahead(Schedule schedule, const std::map<IslandId, int>& peers, bool takes_padding,
                    std::uint32_t fragments) {
    limits_.expect(schedule, peers, takes_padding, fragments);
  }
  bool park_ahead(const RingAhead& ahead, TlsConnection&& connection);  // false: it is the caller's still

  // Those that are parked no more: their hello came, or they ended, or something else came.
  struct Heard {
    struct Begun {
      RingHello hello;
      TlsConnection connection;
    };
    std::vector<Begun> begun;
    std::vector<One> ended;
  };
  Heard listen(FragmentId fragment, const IslandId& peer);
  Heard read_ahead();  // of those whose padding is read as it comes; who sent more is read as all are
  void append_polls(FragmentId fragment, const IslandId& peer, std::vector<pollfd>& polls) const;
  void append_ahead(std::vector<pollfd>& polls) const;  // for read_ahead()
  std::set<std::pair<FragmentId, IslandId>> edges() const;

 private:
  bool may_park_ahead(const RingAhead& ahead, const IslandId& peer);
  bool reads_at_once(const One& one) const { return one.ahead && limits_.reads_at_once(one.connection.peer()); }

  std::vector<One> parked_;  // oldest first
  AheadLimits limits_;
};

}  // namespace atl
