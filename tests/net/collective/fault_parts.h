// What tests of a ring share whose edges fail, or change who dials them.
#pragma once

#include <QtTest>
#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "net/collective/ring_schedule.h"
#include "tests/net/collective/loopback_ring.h"

namespace atl {

// ThreadSanitizer makes handshakes and copies several times slower: timeouts that a test waits for are stretched alike,
// so that they still mean silence and not a busy machine.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 4;
#else
inline constexpr int kSlowdown = 1;
#endif

using Inputs = std::vector<std::vector<float>>;

inline Inputs some_inputs(int world_size, std::size_t numel) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1e-2f, 1e-2f);
  Inputs inputs(static_cast<std::size_t>(world_size), std::vector<float>(numel));
  for (auto& input : inputs) {
    for (float& value : input) value = uniform(random);
  }
  return inputs;
}

inline std::string message_of(const MemberResult& result) {
  return result.ok() ? "succeeded" : result.failure().error.message;
}

inline void verify_all_succeeded(const std::vector<MemberResult>& results) {
  std::string failures;  // of all: one member's tells of another's
  for (const MemberResult& result : results) {
    if (!result.ok()) failures += message_of(result) + "\n";
  }
  QVERIFY2(failures.empty(), failures.c_str());
  for (const MemberResult& result : results) QVERIFY(result.canonical == results[0].canonical);
}

inline RingFrameHeader frame_header(const AllReduceSpec& spec, const EdgeSchedule& edge, std::uint32_t sequence) {
  const RingSubChunk sub_chunk = edge.frame(sequence);
  return {.phase = sub_chunk.phase,
          .round = spec.round,
          .attempt = spec.attempt,
          .fragment = spec.fragment,
          .sequence = sequence,
          .length = sub_chunk.bytes,
          .offset = sub_chunk.first_byte};
}

inline std::array<std::byte, kRingFrameHeaderBytes> encoded(const RingFrameHeader& header) {
  std::array<std::byte, kRingFrameHeaderBytes> bytes;
  encode(header, bytes);
  return bytes;
}

// What a fault may leak.
struct OpenThings {
  std::ptrdiff_t fds = 0;
  std::ptrdiff_t threads = 0;

  static OpenThings now() {
    const auto count = [](const char* path) {
      return std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator());
    };
    return {count("/proc/self/fd"), count("/proc/self/task")};
  }
  bool operator==(const OpenThings&) const = default;
};

// In the cleanup of a test, whose ring is gone by now.
inline void verify_nothing_stays_open(const OpenThings& before) {
  QCOMPARE(OpenThings::now().fds, before.fds);
  // The kernel lists a thread for a moment after it was joined.
  QTRY_COMPARE(OpenThings::now().threads, before.threads);
}

// Of a peer that sent keepalives and no data; `believed`: as long as it did, since they said that it waits itself.
inline void verify_named_for_keepalives_alone(const MemberResult& result, const IslandId& peer, bool believed) {
  QVERIFY(!result.ok());
  QCOMPARE(result.failure().peer->value, peer.value);
  QCOMPARE(result.failure().error.code, believed ? ErrorCode::kPeerLost : ErrorCode::kTimeout);
  QCOMPARE(result.failure().stalled_after, believed ? std::nullopt : std::optional<std::uint64_t>(0));
  const bool says_so = message_of(result).find("sends keepalives but no data") != std::string::npos;
  QVERIFY2(says_so != believed, message_of(result).c_str());
  QVERIFY(!result.failure().silent);
}

}  // namespace atl
