// A member of a direct exchange that a test plays itself, to misbehave in it.
#pragma once

#include <optional>
#include <vector>

#include "tests/fakes/patience.h"
#include "tests/net/collective/fault_parts.h"

namespace atl {

inline constexpr std::int64_t kNumel = 3'000'000;

inline AllReduceSpec direct_spec(const LoopbackRing& ring, WireFormat wire = WireFormat::kInt8Block) {
  AllReduceSpec spec = ring.spec(wire);
  spec.schedule = Schedule::kDirect;
  return spec;
}

// A member that a test plays, whose connections stand when they are asked for.
class PlayedPeer {
 public:
  PlayedPeer(LoopbackRing& ring, std::size_t rank, const AllReduceSpec& spec, std::int64_t numel = kNumel)
      : ring_(ring), rank_(rank), spec_(spec), payload_(payload_of(spec, numel)) {}

  // With `other`, whichever of the two dials; both have said hello, or this member what `says` instead.
  TlsConnection meet(std::size_t other, std::optional<RingHello> says = {}) {
    LoopbackIsland& island = ring_.island(static_cast<int>(rank_));
    const Bytes hello = encode(says.value_or(hello_of(spec_, rank_, RingRole::kExchange, payload_)));
    const RingMember& to = spec_.order[other];
    const RingHello expected = hello_of(spec_, other, RingRole::kExchange, payload_);
    if (rank_ < other) {
      auto dialled =
          TlsConnection::connect(to.address, *island.dial_context, to.id, Deadline::after(std::chrono::seconds(20)));
      if (!dialled.ok() || !dialled->write_all(hello, Deadline::after(std::chrono::seconds(20))).ok())
        qFatal("cannot meet");
      return std::move(*dialled);
    }
    auto taken = island.inbox.take(expected, Deadline::after(std::chrono::seconds(20)), ring_.abort);
    if (!taken.ok()) qFatal("%s", taken.error().message.c_str());
    TlsConnection connection = std::move(taken->connections.front());
    (void)connection.write_all(hello, Deadline::after(std::chrono::seconds(20)));
    return connection;
  }
  std::vector<TlsConnection> meet_all() {
    std::vector<TlsConnection> met;
    for (std::size_t other = 0; other < spec_.order.size(); ++other) {
      if (other != rank_) met.push_back(meet(other));
    }
    return met;
  }
  RingFrameHeader contribution(std::size_t to, std::size_t index) const {
    return header(RingPhase::kReduceScatter, to, index);
  }
  RingFrameHeader sum(std::size_t index) const { return header(RingPhase::kAllGather, rank_, index); }
  std::size_t chunks(std::size_t owner) const { return owned(owner).size(); }
  RingFrameHeader keepalive(std::uint64_t patience = 0) const {
    return {.type = RingFrameType::kKeepalive,
            .round = spec_.round,
            .attempt = spec_.attempt,
            .fragment = spec_.fragment,
            .offset = patience};
  }

 private:
  std::vector<RingSubChunk> owned(std::size_t owner) const {
    return owned_sub_chunks(payload_, static_cast<int>(spec_.order.size()), Rank{static_cast<std::int32_t>(owner)});
  }
  RingFrameHeader header(RingPhase phase, std::size_t owner, std::size_t index) const {
    const RingSubChunk sub_chunk = owned(owner).at(index);
    return {.phase = phase,
            .round = spec_.round,
            .attempt = spec_.attempt,
            .fragment = spec_.fragment,
            .sequence = static_cast<std::uint32_t>(index),
            .length = sub_chunk.bytes,
            .offset = sub_chunk.first_byte};
  }

  LoopbackRing& ring_;
  const std::size_t rank_;
  const AllReduceSpec& spec_;
  const RingPayload payload_;
};

inline void say(TlsConnection& connection, ByteView bytes) {
  (void)connection.write_all(bytes, Deadline::after(std::chrono::seconds(10)));
}
inline void say(TlsConnection& connection, const RingFrameHeader& header) { say(connection, encoded(header)); }
inline void say_frame(TlsConnection& connection, const RingFrameHeader& header) {
  say(connection, header);
  say(connection, Bytes(header.length));
}

// All end: who does not name the guilty one, with that code, has heard of it by another who hung up.
inline void verify_ended(const std::vector<MemberResult>& results, const IslandId& guilty, ErrorCode code) {
  bool named = false;
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    const AllReduceFailure& failure = result.failure();
    named = named || (failure.error.code == code && failure.peer == guilty);
    QVERIFY2(failure.error.code == code || failure.error.code == ErrorCode::kPeerLost, message_of(result).c_str());
    QVERIFY2(failure.error.code != code || code == ErrorCode::kPeerLost || failure.peer == guilty,
             message_of(result).c_str());
  }
  QVERIFY2(named, message_of(results.front()).c_str());
}

}  // namespace atl
