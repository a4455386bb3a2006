#include "net/collective/ring_edges.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "net/collective/edge_monitor.h"

namespace atl {
namespace {

// Of the set of final buckets, for the hello: 0 when there are none.
std::uint64_t fingerprint(const std::vector<bool>& final_buckets) {
  if (std::ranges::find(final_buckets, true) == final_buckets.end()) return 0;
  std::string flags;
  for (const bool is_final : final_buckets) flags += is_final ? '1' : '0';
  const Digest digest = sha256(as_bytes(flags));
  std::uint64_t value = 0;
  std::memcpy(&value, digest.data(), sizeof value);
  return value;
}

Result<ConnectionPool::Edge> begin_edge(const AllReduceSpec& spec, const RingMember& next, RingHello hello,
                                        ConnectionPool& pool, const AbortSignal& abort) {
  const Deadline deadline = Deadline::after(spec.silence_timeout);
  ATOLL_ASSIGN_OR_RETURN(ConnectionPool::Edge edge,
                         pool.take(next.id, next.address, spec.connections_per_edge, deadline, abort));
  for (TlsConnection& connection : edge.connections) {
    ATOLL_RETURN_IF_ERROR(connection.write_all(encode(hello), deadline, &abort));
    ++hello.connection_index;
  }
  return edge;
}

// Says a keepalive on one connection whenever its interval has passed. A peer that has gone is found out later.
class EdgeKeeper {
 public:
  EdgeKeeper(TlsConnection& connection, const AllReduceSpec& spec)
      : connection_(connection), interval_(keepalive_interval(spec.silence_timeout)) {
    encode({.type = RingFrameType::kKeepalive, .round = spec.round, .attempt = spec.attempt}, keepalive_);
  }
  void tick() {
    if (Clock::now() - last_ < interval_) return;
    last_ = Clock::now();
    // Either all of it or nothing: it is one TLS record, and what lies before it is a hello.
    (void)connection_.try_write(keepalive_);
  }

 private:
  TlsConnection& connection_;
  const std::chrono::milliseconds interval_;
  std::array<std::byte, kRingFrameHeaderBytes> keepalive_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace

RingHello hello_of(const AllReduceSpec& spec, std::size_t rank, const RingPayload& payload) {
  return RingHello{.from = spec.order[rank].id,
                   .round = spec.round,
                   .attempt = spec.attempt,
                   .from_rank = Rank{static_cast<std::int32_t>(rank)},
                   .world_size = static_cast<int>(spec.order.size()),
                   .connection_index = 0,
                   .connection_count = spec.connections_per_edge,
                   .wire = spec.wire,
                   .payload_numel = static_cast<std::uint64_t>(payload.numel),
                   .bucket_numel = static_cast<std::uint64_t>(payload.bucket_numel),
                   .final_buckets = fingerprint(payload.final_buckets)};
}

RingPayload payload_of(const AllReduceSpec& spec, std::int64_t numel) {
  return RingPayload{spec.wire, numel, spec.bucket_numel, spec.final_buckets};
}

std::variant<RingEdges, AllReduceFailure> connect_edges(const AllReduceSpec& spec, Rank self,
                                                        const RingPayload& payload, ConnectionPool& pool,
                                                        RingInbox& inbox, const AbortSignal& abort) {
  const std::size_t world_size = spec.order.size();
  const auto rank = static_cast<std::size_t>(self.value);
  const RingMember& next = spec.order[(rank + 1) % world_size];
  const std::size_t previous = (rank + world_size - 1) % world_size;
  pool.keep_only(next.id);
  inbox.keep_parked_of(spec.order[previous].id);
  auto to_next = begin_edge(spec, next, hello_of(spec, rank, payload), pool, abort);
  if (!to_next.ok()) return AllReduceFailure{to_next.error(), next.id, {}};
  EdgeKeeper keeper(to_next->connections.front(), spec);
  auto from_previous = inbox.take(hello_of(spec, previous, payload), Deadline::after(spec.silence_timeout), abort,
                                  [&] { keeper.tick(); });
  if (!from_previous.ok()) return AllReduceFailure{from_previous.error(), spec.order[previous].id, {}};
  return RingEdges{std::move(to_next->connections), std::move(*from_previous), to_next->reused};
}

}  // namespace atl
