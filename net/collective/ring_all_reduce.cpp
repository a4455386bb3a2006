#include <fmt/format.h>

#include <cmath>

#include "net/collective/all_reduce.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_edges.h"
#include "net/collective/ring_exchange.h"

namespace atl {
namespace {

Error invalid(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

Status check_members(const std::vector<RingMember>& order) {
  double total = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!std::isfinite(order[i].weight) || order[i].weight < 0) {
      return invalid(fmt::format("the weight of {} is {}", order[i].id.value, order[i].weight));
    }
    total += order[i].weight;
    for (std::size_t j = 0; j < i; ++j) {
      if (order[i].id == order[j].id) return invalid(fmt::format("{} is in the ring twice", order[i].id.value));
    }
  }
  if (!std::isfinite(total) || total <= 0) return invalid("no member has a weight");
  return ok_status();
}

Status check(const AllReduceSpec& spec, std::size_t numel, std::size_t canonical_bytes) {
  if (numel > kMaxPayloadNumel) return invalid(fmt::format("{} values are too many", numel));
  if (canonical_bytes != static_cast<std::size_t>(encoded_bytes(spec.wire, static_cast<std::int64_t>(numel)))) {
    return invalid("the room for the result does not fit the input");
  }
  if (spec.order.size() > kMaxRingIslands) {
    return invalid(fmt::format("a ring of {} islands; at most {}", spec.order.size(), kMaxRingIslands));
  }
  if (spec.connections_per_edge < 1 || spec.connections_per_edge > kMaxConnectionsPerEdge) {
    return invalid(fmt::format("{} connections an edge; 1 to {}", spec.connections_per_edge, kMaxConnectionsPerEdge));
  }
  if (spec.silence_timeout <= std::chrono::milliseconds::zero()) return invalid("the silence timeout is not positive");
  return check_members(spec.order);
}

std::optional<Rank> rank_of(const IslandId& self, const std::vector<RingMember>& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].id == self) return Rank{static_cast<std::int32_t>(i)};
  }
  return std::nullopt;
}

float share_of(Rank rank, const std::vector<RingMember>& order) {
  double total = 0;
  for (const RingMember& member : order) total += member.weight;
  return static_cast<float>(order[static_cast<std::size_t>(rank.value)].weight / total);
}

void encode_alone(WireFormat wire, std::int64_t numel, PartialSums& sums) {
  for (std::uint32_t i = 0; i < sub_chunk_count(wire, numel); ++i) sums.encode_own(sub_chunk_at(wire, 0, numel, i));
}

}  // namespace

RingAllReduce::RingAllReduce(IslandId self, RingInbox& inbox, const TlsContext& dial_context)
    : self_(std::move(self)), inbox_(inbox), dial_context_(dial_context) {}

std::variant<AllReduceReport, AllReduceFailure> RingAllReduce::run(const AllReduceSpec& spec,
                                                                   std::span<const float> input,
                                                                   std::span<std::byte> canonical,
                                                                   const AbortSignal& abort) {
  const auto begin = Clock::now();
  const auto failed = [&](AllReduceFailure failure, std::string_view rank) {
    failure.error = failure.error.with_context(
        fmt::format("all_reduce round {} attempt {}, {}", spec.round.value, spec.attempt.value, rank));
    if (failure.error.code == ErrorCode::kAborted) failure.peer.reset();
    return failure;
  };
  const std::optional<Rank> self = rank_of(self_, spec.order);
  if (!self) return failed({invalid(fmt::format("{} is not in the ring", self_.value)), std::nullopt}, "no rank");
  const std::string rank_text = fmt::format("rank {}", self->value);
  if (Status status = check(spec, input.size(), canonical.size()); !status.ok()) {
    return failed({status.error(), std::nullopt}, rank_text);
  }

  const auto numel = static_cast<std::int64_t>(input.size());
  PartialSums sums(spec.wire, input, share_of(*self, spec.order), canonical);
  ExchangeTraffic traffic;
  if (spec.order.size() == 1) {
    encode_alone(spec.wire, numel, sums);
  } else {
    auto edges = connect_edges(spec, *self, numel, dial_context_, inbox_, abort);
    if (auto* failure = std::get_if<AllReduceFailure>(&edges)) return failed(std::move(*failure), rank_text);
    auto failure = exchange(spec, *self, std::move(std::get<RingEdges>(edges)), sums, numel, canonical, abort, traffic);
    if (failure) return failed(std::move(*failure), rank_text);
  }
  return AllReduceReport{.digest = sha256(canonical),
                         .bytes_sent = traffic.bytes_sent,
                         .bytes_received = traffic.bytes_received,
                         .duration = Clock::now() - begin};
}

}  // namespace atl
