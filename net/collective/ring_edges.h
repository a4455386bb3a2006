// The connections of one attempt: dials the next rank, and takes what the previous one dialled from the inbox.
#pragma once

#include <variant>
#include <vector>

#include "net/collective/all_reduce.h"
#include "net/transport/tls_connection.h"

namespace atl {

struct RingEdges {
  std::vector<TlsConnection> to_next;
  std::vector<TlsConnection> from_previous;
};

// Blocks until both edges stand, each connection within spec.silence_timeout of the one before. World size at least 2.
std::variant<RingEdges, AllReduceFailure> connect_edges(const AllReduceSpec& spec, Rank self,
                                                        std::int64_t payload_numel, const TlsContext& dial_context,
                                                        RingInbox& inbox, const AbortSignal& abort);

}  // namespace atl
