#include "net/collective/ring_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "net/collective/edge_monitor.h"
#include "net/transport/socket.h"

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

Status say_hello(std::vector<TlsConnection>& connections, RingHello hello, Deadline deadline,
                 const AbortSignal& abort) {
  hello.connection_count = static_cast<int>(connections.size());
  for (TlsConnection& connection : connections) {
    ATOLL_RETURN_IF_ERROR(connection.write_all(encode(hello), deadline, &abort));
    ++hello.connection_index;
  }
  return ok_status();
}

// Says a keepalive on one connection whenever its interval has passed. A peer that has gone is found out later.
class EdgeKeeper {
 public:
  EdgeKeeper(TlsConnection& connection, const AllReduceSpec& spec)
      : connection_(connection), interval_(keepalive_interval(spec.silence_timeout)) {
    encode({.type = RingFrameType::kKeepalive, .round = spec.round, .attempt = spec.attempt, .fragment = spec.fragment},
           keepalive_);
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

// The steps in which an island's two edges come to stand. None of them waits for a peer's step that waits for this
// island: first everybody dials, then who was called by the next rank answers it, then all wait for the previous rank.
class EdgeConnector {
 public:
  EdgeConnector(const AllReduceSpec& spec, Rank self, const RingPayload& payload, ConnectionPool& pool,
                RingInbox& inbox, const AbortSignal& abort)
      : spec_(spec),
        self_(static_cast<std::size_t>(self.value)),
        next_((self_ + 1) % spec.order.size()),
        previous_((self_ + spec.order.size() - 1) % spec.order.size()),
        payload_(payload),
        pool_(pool),
        inbox_(inbox),
        abort_(abort) {}

  const IslandId& next() const { return spec_.order[next_].id; }
  const IslandId& previous() const { return spec_.order[previous_].id; }
  bool next_dials() const { return spec_.order[next_].dials_previous; }
  bool dials_previous() const { return spec_.order[self_].dials_previous; }

  void forget_other_edges() {
    std::vector<EdgeEnd> dialled;
    std::vector<IslandId> waited_for;
    if (next_dials()) {
      waited_for.push_back(next());
    } else {
      dialled.push_back({next(), RingRole::kSends});
    }
    if (dials_previous()) {
      dialled.push_back({previous(), RingRole::kReceives});
    } else {
      waited_for.push_back(previous());
    }
    pool_.keep_only(dialled);
    inbox_.keep_parked_of(spec_.fragment, waited_for);
  }

  Result<ConnectionPool::Edge> dial_next() { return dial(next_, RingRole::kSends, spec_.connections_per_edge); }

  // Its hellos come on these connections, as they come on those that it dialled itself.
  Status dial_previous(int count) {
    ATOLL_ASSIGN_OR_RETURN(ConnectionPool::Edge edge, dial(previous_, RingRole::kReceives, count));
    std::vector<RingInbox::Parked> parked;
    for (TlsConnection& connection : edge.connections) parked.push_back({std::move(connection), {}});
    inbox_.park(spec_.fragment, std::move(parked));
    return ok_status();
  }

  Result<ConnectionPool::Edge> answer_next() {
    // It calls after it has dialled its own next rank, for which it may need as long as this island may.
    const Deadline deadline = Deadline::after(2 * spec_.silence_timeout);
    ATOLL_ASSIGN_OR_RETURN(RingInbox::Edge edge,
                           inbox_.take(hello_of(spec_, next_, RingRole::kReceives, payload_), deadline, abort_));
    ATOLL_RETURN_IF_ERROR(check_count(edge, next()));
    ATOLL_RETURN_IF_ERROR(
        say_hello(edge.connections, hello_of(spec_, self_, RingRole::kSends, payload_), deadline, abort_));
    return ConnectionPool::Edge{std::move(edge.connections), edge.reused};
  }

  Result<RingInbox::Edge> wait_for_previous(EdgeKeeper& keeper) {
    ATOLL_ASSIGN_OR_RETURN(RingInbox::Edge edge,
                           inbox_.take(hello_of(spec_, previous_, RingRole::kSends, payload_),
                                       Deadline::after(spec_.silence_timeout), abort_, [&] { keeper.tick(); }));
    ATOLL_RETURN_IF_ERROR(check_count(edge, previous()));
    return edge;
  }

 private:
  Result<ConnectionPool::Edge> dial(std::size_t rank, RingRole role, int count) {
    const Deadline deadline = Deadline::after(spec_.silence_timeout);
    const RingMember& peer = spec_.order[rank];
    ATOLL_ASSIGN_OR_RETURN(ConnectionPool::Edge edge,
                           pool_.take({peer.id, role}, peer.address, count, deadline, abort_));
    ATOLL_RETURN_IF_ERROR(say_hello(edge.connections, hello_of(spec_, self_, role, payload_), deadline, abort_));
    return edge;
  }

  Status check_count(const RingInbox::Edge& edge, const IslandId& peer) const {
    const int most = most_connections_per_edge(spec_.fragments);
    if (std::ssize(edge.connections) <= most) return ok_status();
    return Error{ErrorCode::kProtocol,
                 fmt::format("{} began the edge with {} connections; in a run of {} fragments each "
                             "has {} at most",
                             peer.value, edge.connections.size(), spec_.fragments, most)};
  }

  const AllReduceSpec& spec_;
  const std::size_t self_, next_, previous_;
  const RingPayload& payload_;
  ConnectionPool& pool_;
  RingInbox& inbox_;
  const AbortSignal& abort_;
};

}  // namespace

RingHello hello_of(const AllReduceSpec& spec, std::size_t rank, RingRole role, const RingPayload& payload) {
  return RingHello{.from = spec.order[rank].id,
                   .role = role,
                   .round = spec.round,
                   .attempt = spec.attempt,
                   .fragment = spec.fragment,
                   .from_rank = Rank{static_cast<std::int32_t>(rank)},
                   .world_size = static_cast<int>(spec.order.size()),
                   .connection_index = 0,
                   .connection_count = 1,
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
                                                        RingInbox& inbox, const AbortSignal& abort,
                                                        int connections_from_previous) {
  EdgeConnector connector(spec, self, payload, pool, inbox, abort);
  auto step_began = Clock::now();
  const auto failed = [&](const Error& error, const IslandId& peer) {
    inbox.keep_parked_of(spec.fragment, {});  // closed, which tells the neighbours
    const bool long_aborted = error.code == ErrorCode::kAborted && Clock::now() - step_began > spec.silence_timeout / 2;
    return AllReduceFailure{error, peer, {}, error.code == ErrorCode::kTimeout || long_aborted};
  };
  connector.forget_other_edges();
  std::optional<Result<ConnectionPool::Edge>> to_next;
  if (!connector.next_dials()) {
    to_next.emplace(connector.dial_next());
    if (!to_next->ok()) return failed(to_next->error(), connector.next());
  }
  step_began = Clock::now();
  if (connector.dials_previous()) {
    const int count = connections_from_previous > 0 ? connections_from_previous : spec.connections_per_edge;
    if (const Status dialled = connector.dial_previous(count); !dialled.ok()) {
      return failed(dialled.error(), connector.previous());
    }
  }
  step_began = Clock::now();
  if (!to_next) {
    to_next.emplace(connector.answer_next());
    if (!to_next->ok()) return failed(to_next->error(), connector.next());
  }
  step_began = Clock::now();
  EdgeKeeper keeper((*to_next)->connections.front(), spec);
  auto from_previous = connector.wait_for_previous(keeper);
  if (!from_previous.ok()) return failed(from_previous.error(), connector.previous());
  return RingEdges{std::move((*to_next)->connections), std::move(from_previous->connections), (*to_next)->reused};
}

}  // namespace atl
