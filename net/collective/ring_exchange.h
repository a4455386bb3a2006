// The data phase of one attempt: its worker threads and what watches over them.
#pragma once

#include <variant>

#include "net/collective/all_reduce.h"
#include "net/collective/direct_reduce.h"
#include "net/collective/edge_monitor.h"
#include "net/collective/edge_pacing.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_edges.h"

namespace atl {

struct ExchangeOutcome {
  Digest digest;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_to_next = 0;  // of those: what the ring's edges carried
  std::uint64_t bytes_from_previous = 0;
  std::uint64_t bytes_retransmitted = 0;  // on the connections to the next rank
  std::size_t threads = 1;                // that encoded and added
  // For the next attempt.
  std::vector<TlsConnection> to_next;
  std::vector<RingInbox::Parked> from_previous;
};

// Blocks until every frame is sent and received; then `canonical` is whole. Begins to send at once, and to receive when
// `connector` has the previous rank's connections. `direct`: what makes the own frames of formats that are not summed
// hop by hop; null for the others. `link`: to the next rank. All references outlive it.
//
// Inbound bytes are always read, into a place that is theirs alone, so that no member ever waits for another to read
// and the ring cannot lock up however small the sockets' buffers are. A member that has nothing to send says so with
// keepalives: a stalled ring is blamed on the edge that is silent, not on those that wait behind it.
std::variant<ExchangeOutcome, AllReduceFailure> exchange(const AllReduceSpec& spec, Rank self, EdgeConnector& connector,
                                                         EdgeConnector::ToNext to_next, const PartialSums& sums,
                                                         const RingPayload& payload, std::span<std::byte> canonical,
                                                         LinkPacing& link, EdgeSilences silences,
                                                         const UploadShare& upload, DirectReduce* direct,
                                                         const AbortSignal& abort);

}  // namespace atl
