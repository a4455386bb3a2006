// The connections between islands, broken at each of their bytes: cut, reset, or silent. A state that is fetched comes
// all the same; an attempt of the ring fails or succeeds, and the next one is as good as ever.
#include <spdlog/spdlog.h>

#include <QtTest>
#include <array>

#include "tests/net/collective/loopback_ring.h"
#include "tests/net/faults/break_everywhere.h"
#include "tests/net/recovery/state_peers.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr OuterStep kVersion{7};
constexpr std::uint64_t kStateNumel = 3'000;
constexpr std::int64_t kRingNumel = 64;
}  // namespace

class PeerFaultsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { spdlog::set_level(spdlog::level::err); }
  void a_broken_fetch_of_the_state_is_tried_again_data() { add_kinds_of_faults(); }
  void a_broken_fetch_of_the_state_is_tried_again();
  void a_broken_edge_of_the_ring_ends_its_attempt_and_no_more_data() { add_kinds_of_faults(); }
  void a_broken_edge_of_the_ring_ends_its_attempt_and_no_more();

 private:
  static Breaking breaking_of(bool stalls) {
    Breaking breaking;
    breaking.stalls = stalls;
    if (stalls) breaking.stride = kStallStride;
    return breaking;
  }
};

// From one source alone, which has it: whatever becomes of the connections to it.
void PeerFaultsTest::a_broken_fetch_of_the_state_is_tried_again() {
  QFETCH(const bool, stalls);
  TestRun run;
  const FakeState state(kVersion, kStateNumel, 1);
  const StatePeer peer(run.island(1), state);
  FaultProxy proxy(peer.address().address);
  const AbortSignal never;
  StateFetchOptions options;
  options.stall = silence_until(stalls);
  options.retry_after = 0ms;
  options.max_failures = kEnoughTries;

  const auto wrong = break_everywhere(proxy, breaking_of(stalls), [&]() -> std::optional<std::string> {
    const auto fetched = fetch_whole_state(run.island(9), {{peer.address().id, proxy.address()}}, kVersion,
                                           state.tree_hash(), kStateNumel, never, {}, options);
    if (!fetched.ok()) return words(fetched.error());
    const bool same = fetched->parameters == state.parameters() && fetched->momentum == state.momentum();
    return same ? std::nullopt : std::optional<std::string>("another state");
  });

  QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
}

void PeerFaultsTest::a_broken_edge_of_the_ring_ends_its_attempt_and_no_more() {
  QFETCH(const bool, stalls);
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  FaultProxy proxy(spec.order[1].address);
  spec.order[1].address = proxy.address();
  spec.connections_per_edge = 1;
  spec.silence_timeout = silence_until(stalls);
  const std::vector<std::vector<float>> inputs = {std::vector<float>(kRingNumel, 1.0f),
                                                  std::vector<float>(kRingNumel, 3.0f)};
  // As the hub does: who fails ends the attempt for all.
  const auto attempt = [&] {
    ++spec.attempt.value;
    std::array<AbortSignal, 2> abort;
    std::array<MemberResult, 2> results;
    std::array<std::jthread, 2> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads[rank] = std::jthread([&, rank] {
        results[rank] = ring.run_member(static_cast<int>(rank), spec, inputs[rank], abort[rank]);
        if (!results[rank].ok()) abort[1 - rank].raise("the other failed");
      });
    }
    for (std::jthread& thread : threads) thread.join();
    return results;
  };

  const auto wrong = break_everywhere(proxy, breaking_of(stalls), [&]() -> std::optional<std::string> {
    for (int rank = 0; rank < 2; ++rank) ring.island(rank).ring->forget(ring.id(1 - rank));
    std::array<MemberResult, 2> results;
    for (int tries = 0; tries < kEnoughTries; ++tries) {
      results = attempt();
      if (results[0].ok() && results[1].ok()) break;
    }
    for (const MemberResult& result : results) {
      if (!result.ok()) return words(result.failure().error);
    }
    const std::vector<float> mean(kRingNumel, 2.0f);
    const auto expected = std::as_bytes(std::span(mean));
    const bool right =
        results[0].canonical == results[1].canonical && std::ranges::equal(results[0].canonical, expected);
    return right ? std::nullopt : std::optional<std::string>("another mean");
  });

  QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::PeerFaultsTest)
#include "peer_faults_test.moc"
