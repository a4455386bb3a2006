// The connections of one attempt, of both edges of this island. Either end of an edge may have dialled it: the one that
// did keeps it in its pool between attempts and begins the next one; the other end's inbox holds or receives it.
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "net/collective/all_reduce.h"
#include "net/collective/attempt_edges.h"
#include "net/collective/ring_schedule.h"
#include "net/transport/tls_connection.h"

namespace atl {

inline constexpr std::chrono::seconds kRest{1};  // of a connection, after which BBR may think of a probe

// A member's weight over the total.
float share_of(const std::vector<RingMember>& order, std::size_t rank);
inline bool has_share(const std::vector<RingMember>& order, std::size_t rank) { return share_of(order, rank) != 0.0f; }
// How `rank` speaks first on an edge of one connection.
RingHello hello_of(const AllReduceSpec& spec, std::size_t rank, RingRole role, const RingPayload& payload);

// How the two edges come to stand: first everybody dials, then who is called by the next rank answers it; both is
// connect_next(). From then on frames may be sent, while wait_for_previous() still waits: the hello of the previous
// rank is half a round trip under way. No step waits for a peer's step that waits for this island.
class EdgeConnector {
 public:
  // `pool`: of spec.fragment. World size at least 2. `connections_from_previous`: where this island dials the previous
  // rank; 0: as many as to the next one. References outlive this.
  EdgeConnector(const AllReduceSpec& spec, Rank self, const RingPayload& payload, ConnectionPool& pool,
                RingInbox& inbox, const AbortSignal& abort, int connections_from_previous = 0);

  struct ToNext {
    std::vector<TlsConnection> connections;
    int reused = 0;  // of those
  };
  // Each blocks for some spec.silence_timeout at most. On failure everything of the fragment that waits for its next
  // attempt is closed, which tells the neighbours.
  std::variant<ToNext, AllReduceFailure> connect_next();
  // As RingInbox::take's: called several times a second, and says whether to wait on.
  std::variant<std::vector<TlsConnection>, AllReduceFailure> wait_for_previous(const std::function<bool()>& on_tick);

 private:
  AllReduceFailure failed(const Error& error, const IslandId& peer);
  const IslandId& next() const { return spec_.order[next_.peer].id; }
  const IslandId& previous() const { return spec_.order[previous_.peer].id; }
  void forget_other_edges();
  Result<ConnectionPool::Edge> dial(const AttemptEdge& edge, int count);
  Status dial_previous();
  Result<ConnectionPool::Edge> answer_next();
  Status check_count(const RingInbox::Edge& edge, const IslandId& peer) const;

  const AllReduceSpec& spec_;
  const std::size_t self_;
  const AttemptEdge next_, previous_;
  const RingPayload& payload_;
  ConnectionPool& pool_;
  RingInbox& inbox_;
  const AbortSignal& abort_;
  const int connections_from_previous_;
  Clock::time_point step_began_;
};

}  // namespace atl
