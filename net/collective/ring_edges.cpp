#include "net/collective/ring_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

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

}  // namespace

float share_of(const std::vector<RingMember>& order, std::size_t rank) {
  double total = 0;
  for (const RingMember& member : order) total += member.weight;
  return static_cast<float>(order[rank].weight / total);
}

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

EdgeConnector::EdgeConnector(const AllReduceSpec& spec, Rank self, const RingPayload& payload, ConnectionPool& pool,
                             RingInbox& inbox, const AbortSignal& abort, int connections_from_previous)
    : spec_(spec),
      self_(static_cast<std::size_t>(self.value)),
      next_(edges_of(spec.order, Schedule::kRing, self_)[0]),
      previous_(edges_of(spec.order, Schedule::kRing, self_)[1]),
      payload_(payload),
      pool_(pool),
      inbox_(inbox),
      abort_(abort),
      connections_from_previous_(connections_from_previous > 0 ? connections_from_previous
                                                               : spec.connections_per_edge) {}

void EdgeConnector::forget_other_edges() {
  std::vector<EdgeEnd> dialled;
  std::vector<IslandId> waited_for;
  for (const AttemptEdge& edge : {next_, previous_}) {
    const IslandId& peer = spec_.order[edge.peer].id;
    if (edge.is_dialled) {
      dialled.push_back({peer, edge.role});
    } else {
      waited_for.push_back(peer);
    }
  }
  pool_.keep_only(dialled);
  inbox_.keep_parked_of(spec_.fragment, waited_for);
}

Result<ConnectionPool::Edge> EdgeConnector::dial(const AttemptEdge& edge, int count) {
  const Deadline deadline = Deadline::after(spec_.silence_timeout);
  const RingMember& peer = spec_.order[edge.peer];
  ATOLL_ASSIGN_OR_RETURN(ConnectionPool::Edge dialled,
                         pool_.take({peer.id, edge.role}, peer.address, count, deadline, abort_));
  const RingHello hello = hello_of(spec_, self_, edge.role, payload_);
  ATOLL_RETURN_IF_ERROR(say_hello(dialled.connections, hello, deadline, abort_));
  return dialled;
}

// Its hellos come on these connections, as they come on those that it dialled itself.
Status EdgeConnector::dial_previous() {
  ATOLL_ASSIGN_OR_RETURN(ConnectionPool::Edge edge, dial(previous_, connections_from_previous_));
  std::vector<RingInbox::Parked> parked;
  for (TlsConnection& connection : edge.connections) parked.push_back({std::move(connection), {}});
  inbox_.park(spec_.fragment, std::move(parked));
  return ok_status();
}

Result<ConnectionPool::Edge> EdgeConnector::answer_next() {
  // It calls after it has dialled its own next rank, for which it may need as long as this island may.
  const Deadline deadline = Deadline::after(2 * spec_.silence_timeout);
  ATOLL_ASSIGN_OR_RETURN(RingInbox::Edge edge,
                         inbox_.take(hello_of(spec_, next_.peer, RingRole::kReceives, payload_), deadline, abort_));
  ATOLL_RETURN_IF_ERROR(check_count(edge, next()));
  for (const TlsConnection& connection : edge.connections) {  // the dialler keeps its own warm
    if (since_last_sent(connection.fd()) > kRest) spare_bbr_its_probe(connection.fd());
  }
  ATOLL_RETURN_IF_ERROR(
      say_hello(edge.connections, hello_of(spec_, self_, RingRole::kSends, payload_), deadline, abort_));
  return ConnectionPool::Edge{std::move(edge.connections), edge.reused};
}

Status EdgeConnector::check_count(const RingInbox::Edge& edge, const IslandId& peer) const {
  const int most = most_connections_per_edge(spec_.fragments);
  if (std::ssize(edge.connections) <= most) return ok_status();
  return Error{ErrorCode::kProtocol, fmt::format("{} began the edge with {} connections; in a run of {} fragments each "
                                                 "has {} at most",
                                                 peer.value, edge.connections.size(), spec_.fragments, most)};
}

AllReduceFailure EdgeConnector::failed(const Error& error, const IslandId& peer) {
  inbox_.keep_parked_of(spec_.fragment, {});
  const bool long_aborted = error.code == ErrorCode::kAborted && Clock::now() - step_began_ > spec_.silence_timeout / 2;
  const bool is_silent = error.code == ErrorCode::kTimeout || long_aborted;
  // A peer that closes may do so because another ended the attempt: of that nothing is known first-hand.
  const bool never_met = is_silent || error.code == ErrorCode::kUnreachable;
  return {error, peer, {}, is_silent, {}, never_met};
}

std::variant<EdgeConnector::ToNext, AllReduceFailure> EdgeConnector::connect_next() {
  forget_other_edges();
  step_began_ = Clock::now();
  std::optional<Result<ConnectionPool::Edge>> to_next;
  if (next_.is_dialled) {
    to_next.emplace(dial(next_, spec_.connections_per_edge));
    if (!to_next->ok()) return failed(to_next->error(), next());
  }
  step_began_ = Clock::now();
  if (previous_.is_dialled) {
    if (const Status dialled = dial_previous(); !dialled.ok()) return failed(dialled.error(), previous());
  }
  step_began_ = Clock::now();
  if (!to_next) {
    to_next.emplace(answer_next());
    if (!to_next->ok()) return failed(to_next->error(), next());
  }
  return ToNext{std::move((*to_next)->connections), (*to_next)->reused};
}

std::variant<std::vector<TlsConnection>, AllReduceFailure> EdgeConnector::wait_for_previous(
    const std::function<bool()>& on_tick) {
  step_began_ = Clock::now();
  auto edge = inbox_.take(hello_of(spec_, previous_.peer, RingRole::kSends, payload_),
                          Deadline::after(spec_.silence_timeout), abort_, on_tick);
  if (!edge.ok()) return failed(edge.error(), previous());
  if (const Status counted = check_count(*edge, previous()); !counted.ok()) return failed(counted.error(), previous());
  return std::move(edge->connections);
}

}  // namespace atl
