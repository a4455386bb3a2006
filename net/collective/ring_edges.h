// The connections of one attempt: to the next rank those that the pool keeps or dials, from the previous one what the
// inbox holds or receives.
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
// How `rank` begins its edge to the next one, but for the connection's index.
RingHello hello_of(const AllReduceSpec& spec, std::size_t rank, const RingPayload& payload);

// Blocks until both edges stand, each within spec.silence_timeout; meanwhile the one to the next rank is kept alive.
// World size at least 2.
std::variant<RingEdges, AllReduceFailure> connect_edges(const AllReduceSpec& spec, Rank self,
                                                        const RingPayload& payload, ConnectionPool& pool,
                                                        RingInbox& inbox, const AbortSignal& abort);

}  // namespace atl
