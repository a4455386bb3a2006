// The data phase of one attempt: moves all frames of both edges from one thread, watching for silence and abort.
#pragma once

#include <optional>

#include "net/collective/all_reduce.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_edges.h"

namespace atl {

struct ExchangeTraffic {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

// Blocks until every frame is sent and received; then `canonical` is whole. Empty when it succeeded.
//
// Inbound bytes are always read, into a place that is theirs alone, so that no member ever waits for another to read
// and the ring cannot lock up however small the sockets' buffers are. A member that has nothing to send says so with
// keepalives: a stalled ring is blamed on the edge that is silent, not on those that wait behind it.
std::optional<AllReduceFailure> exchange(const AllReduceSpec& spec, Rank self, RingEdges edges, PartialSums& sums,
                                         std::int64_t payload_numel, std::span<std::byte> canonical,
                                         const AbortSignal& abort, ExchangeTraffic& traffic);

}  // namespace atl
