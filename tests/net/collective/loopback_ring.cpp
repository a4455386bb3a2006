#include "tests/net/collective/loopback_ring.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "tests/fakes/older_member.h"

namespace atl {

LoopbackRing::LoopbackRing(int world_size, const std::vector<int>& older, std::string host) : host_(std::move(host)) {
  for (int rank = 0; rank < world_size; ++rank) {
    auto island = std::make_unique<LoopbackIsland>();
    island->identity = run_.island(rank);
    island->dial_context.emplace(TlsContext::client(island->identity, kAlpnRing).value());
    TlsContext listen_context = TlsContext::island_server(island->identity).value();
    if (std::ranges::find(older, rank) != older.end()) {
      offer_no_receipts(*island->dial_context);
      take_no_receipts(listen_context);
    }
    island->ring.emplace(island->identity.name, island->inbox, *island->dial_context);
    island->listener =
        PeerListener::start(
            {.bind = {host_, 0}}, std::move(listen_context), [](const PeerCertificate&) { return ok_status(); },
            island->inbox, [](TlsConnection, const AbortSignal&) {})
            .value();
    islands_.push_back(std::move(island));
  }
}

AllReduceSpec LoopbackRing::spec(WireFormat wire) const {
  AllReduceSpec spec;
  spec.round = OuterStep{3};
  spec.attempt = Attempt{1};
  spec.wire = wire;
  spec.silence_timeout = test::kForEver;
  for (const auto& island : islands_) {
    const std::uint16_t port = island->listener ? island->listener->port() : 1;  // a hidden one is dialled by nobody
    spec.order.push_back({island->identity.name, {host_, port}, 1.0});
  }
  return spec;
}

MemberResult LoopbackRing::run_member(int rank, const AllReduceSpec& spec, std::span<const float> input,
                                      const AbortSignal& member_abort, Bytes room) {
  LoopbackIsland& member = island(rank);
  MemberResult result{AllReduceFailure{}, std::move(room)};
  result.canonical.resize(static_cast<std::size_t>(encoded_bytes(spec.wire, std::ssize(input))), std::byte{0xee});
  result.outcome = member.ring->run(spec, input, result.canonical, member_abort);
  return result;
}

std::vector<MemberResult> LoopbackRing::run(const AllReduceSpec& spec, const std::vector<std::vector<float>>& inputs,
                                            std::vector<int> ranks, std::vector<Bytes> rooms) {
  rooms.resize(spec.order.size());
  if (ranks.empty()) {
    ranks.resize(spec.order.size());
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::vector<MemberResult> results(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      const int rank = ranks[i];
      results[i] = run_member(rank, spec, inputs[static_cast<std::size_t>(rank)], abort, std::move(rooms[i]));
    });
  }
  threads.clear();
  return results;
}

RingEdges LoopbackRing::edges_of(int rank, const AllReduceSpec& spec, std::int64_t numel) {
  LoopbackIsland& member = island(rank);
  ConnectionPool pool(*member.dial_context);
  const auto done = [](auto edge) {
    if (const auto* failure = std::get_if<AllReduceFailure>(&edge)) {
      std::fprintf(stderr, "loopback ring: %s\n", failure->error.message.c_str());
      std::abort();
    }
    return std::move(std::get<0>(edge));
  };
  const RingPayload payload = payload_of(spec, numel);
  EdgeConnector connector(spec, Rank{rank}, payload, pool, member.inbox, abort);
  std::vector<TlsConnection> to_next = done(connector.connect_next()).connections;
  return {std::move(to_next), done(connector.wait_for_previous([] { return true; }))};
}

}  // namespace atl
