#include "net/collective/ring_edges.h"

namespace atl {
namespace {

RingHello hello_of(const AllReduceSpec& spec, std::size_t rank, std::int64_t payload_numel) {
  return RingHello{.from = spec.order[rank].id,
                   .round = spec.round,
                   .attempt = spec.attempt,
                   .from_rank = Rank{static_cast<std::int32_t>(rank)},
                   .world_size = static_cast<int>(spec.order.size()),
                   .connection_index = 0,
                   .connection_count = spec.connections_per_edge,
                   .wire = spec.wire,
                   .payload_numel = static_cast<std::uint64_t>(payload_numel)};
}

Result<std::vector<TlsConnection>> dial(const AllReduceSpec& spec, const RingMember& next, RingHello hello,
                                        const TlsContext& context, const AbortSignal& abort) {
  std::vector<TlsConnection> connections;
  for (int index = 0; index < spec.connections_per_edge; ++index) {
    const Deadline deadline = Deadline::after(spec.silence_timeout);
    ATOLL_ASSIGN_OR_RETURN(TlsConnection connection,
                           TlsConnection::connect(next.address, context, next.id, deadline, &abort));
    hello.connection_index = index;
    ATOLL_RETURN_IF_ERROR(connection.write_all(encode(hello), deadline, &abort));
    connections.push_back(std::move(connection));
  }
  return connections;
}

}  // namespace

std::variant<RingEdges, AllReduceFailure> connect_edges(const AllReduceSpec& spec, Rank self,
                                                        std::int64_t payload_numel, const TlsContext& dial_context,
                                                        RingInbox& inbox, const AbortSignal& abort) {
  const std::size_t world_size = spec.order.size();
  const auto rank = static_cast<std::size_t>(self.value);
  const RingMember& next = spec.order[(rank + 1) % world_size];
  const std::size_t previous = (rank + world_size - 1) % world_size;
  auto to_next = dial(spec, next, hello_of(spec, rank, payload_numel), dial_context, abort);
  if (!to_next.ok()) return AllReduceFailure{to_next.error(), next.id};
  auto from_previous =
      inbox.take(hello_of(spec, previous, payload_numel), Deadline::after(spec.silence_timeout), abort);
  if (!from_previous.ok()) return AllReduceFailure{from_previous.error(), spec.order[previous].id};
  return RingEdges{std::move(*to_next), std::move(*from_previous)};
}

}  // namespace atl
