// The connections of one attempt, of both edges of this island. Either end of an edge may have dialled it: the one that
// did keeps it in its pool between attempts and begins the next one; the other end's inbox holds or receives it.
#pragma once

#include <variant>
#include <vector>

#include "net/collective/all_reduce.h"
#include "net/collective/ring_schedule.h"
#include "net/transport/tls_connection.h"

namespace atl {

struct RingEdges {
  std::vector<TlsConnection> to_next;
  std::vector<TlsConnection> from_previous;
  int reused = 0;  // of those to the next rank
};

// What spec and input make of the payload.
RingPayload payload_of(const AllReduceSpec& spec, std::int64_t numel);
// How `rank` speaks first on an edge of one connection.
RingHello hello_of(const AllReduceSpec& spec, std::size_t rank, RingRole role, const RingPayload& payload);

// `pool`: of spec.fragment. Blocks until both edges stand, each step of it within spec.silence_timeout; meanwhile the
// one to the next rank is kept alive. World size at least 2. `connections_from_previous`: where this island dials the
// previous rank; 0: as many as to the next one.
std::variant<RingEdges, AllReduceFailure> connect_edges(const AllReduceSpec& spec, Rank self,
                                                        const RingPayload& payload, ConnectionPool& pool,
                                                        RingInbox& inbox, const AbortSignal& abort,
                                                        int connections_from_previous = 0);

}  // namespace atl
