#include "net/collective/all_reduce.h"

#include <poll.h>

#include <QtTest>
#include <cmath>
#include <thread>

#include "kernels/wire_codec.h"
#include "net/collective/canonical_digest.h"
#include "net/collective/ring_schedule.h"
#include "tests/net/collective/ring_inputs.h"

using namespace atl;
using namespace std::chrono_literals;

Q_DECLARE_METATYPE(atl::WireFormat)

namespace {

std::vector<double> exact_mean(const AllReduceSpec& spec, const Inputs& inputs) {
  double total = 0;
  for (const RingMember& member : spec.order) total += member.weight;
  std::vector<double> mean(inputs.front().size(), 0.0);
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += spec.order[rank].weight / total * inputs[rank][i];
  }
  return mean;
}

std::vector<float> decoded(WireFormat wire, const Bytes& canonical, std::size_t numel) {
  std::vector<float> values(numel);
  decode_values(wire, canonical, values);
  return values;
}

double largest_magnitude(const Inputs& inputs) {
  double largest = 0;
  for (const auto& input : inputs) {
    for (const float value : input) largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  return largest;
}

}  // namespace

class RingAllReduceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_member_holds_the_same_bytes_near_the_exact_mean_data();
  void every_member_holds_the_same_bytes_near_the_exact_mean();
  void values_count_by_their_weight_and_weight_zero_only_receives();
  void bytes_sent_are_those_of_a_ring();
  void the_parts_make_up_the_duration_data();
  void the_parts_make_up_the_duration();
  void sixteen_connections_share_an_edge();
  void attempts_follow_each_other_on_the_same_ports();
  void a_value_that_is_not_finite_passes_through_without_a_crash();
  void a_peer_that_vanishes_ends_the_attempt_at_once();
  void a_silent_peer_is_named_by_its_neighbour();
  void a_member_that_waits_is_not_blamed_for_the_silence_of_another();
  void abort_ends_the_attempt_at_once_data();
  void abort_ends_the_attempt_at_once();
  void an_unreachable_next_member_is_named();
  void a_member_that_never_dials_is_named();
  void a_peer_with_another_idea_of_the_attempt_is_refused();
  void frames_that_break_the_protocol_are_refused_data();
  void frames_that_break_the_protocol_are_refused();
  void truncated_stream_is_a_lost_peer();
  void orders_that_make_no_sense_are_refused_data();
  void orders_that_make_no_sense_are_refused();
};

void RingAllReduceTest::every_member_holds_the_same_bytes_near_the_exact_mean_data() {
  QTest::addColumn<WireFormat>("wire");
  QTest::addColumn<int>("world_size");
  QTest::addColumn<int>("numel");
  for (const int world_size : {1, 2, 3, 4, 5}) {
    // Empty; less than a block, so that most chunks are empty; ends inside a block; several sub-chunks a chunk.
    for (const int numel : {0, 1, 700, 256 * 5, 100'001, world_size == 3 ? 1'500'003 : 400'003}) {
      QTest::addRow("fp32 N=%d numel=%d", world_size, numel) << WireFormat::kFp32 << world_size << numel;
      QTest::addRow("int8-block N=%d numel=%d", world_size, numel) << WireFormat::kInt8Block << world_size << numel;
    }
  }
}

void RingAllReduceTest::every_member_holds_the_same_bytes_near_the_exact_mean() {
  QFETCH(WireFormat, wire);
  QFETCH(int, world_size);
  QFETCH(int, numel);
  LoopbackRing ring(world_size);
  const AllReduceSpec spec = ring.spec(wire);
  const Inputs inputs = normal_inputs(world_size, static_cast<std::size_t>(numel));

  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  const auto mean = exact_mean(spec, inputs);
  const auto values = decoded(wire, results[0].canonical, mean.size());
  // fp32: a rounding for the weight, each product and each sum. int8: each of N encodings is off by at most half a
  // scale, which is up to 1/128 larger than 1/127 of the largest value, and partial sums little more than that.
  const double largest = largest_magnitude(inputs);
  const double tolerance =
      wire == WireFormat::kFp32 ? largest * 3 * world_size * 0x1p-24 : largest / 127 / 2 * world_size * 1.04;
  for (std::size_t i = 0; i < mean.size(); ++i) QVERIFY(std::abs(values[i] - mean[i]) <= tolerance);
  for (const MemberResult& result : results) {
    QVERIFY(result.canonical == results[0].canonical);
    QVERIFY(result.report().digest == canonical_digest(result.canonical));
  }
}

void RingAllReduceTest::values_count_by_their_weight_and_weight_zero_only_receives() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  const double weights[] = {1000, 0, 3000, 500};
  for (std::size_t rank = 0; rank < 4; ++rank) spec.order[rank].weight = weights[rank];
  Inputs inputs = normal_inputs(4, 5'000);
  const auto mean = exact_mean(spec, inputs);
  inputs[1].assign(5'000, std::numeric_limits<float>::quiet_NaN());  // never looked at

  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  const auto values = decoded(WireFormat::kFp32, results[1].canonical, mean.size());
  for (std::size_t i = 0; i < mean.size(); ++i) QVERIFY(std::abs(values[i] - mean[i]) <= 0.05 * 12 * 0x1p-24);
  for (const MemberResult& result : results) QVERIFY(result.canonical == results[1].canonical);
}

void RingAllReduceTest::the_parts_make_up_the_duration_data() {
  QTest::addColumn<int>("world_size");
  QTest::addColumn<WireFormat>("wire");
  QTest::newRow("alone") << 1 << WireFormat::kInt8Block;
  QTest::newRow("summed hop by hop") << 3 << WireFormat::kInt8Block;
  QTest::newRow("summed by owners") << 3 << WireFormat::kInt4E3m0;
}

void RingAllReduceTest::the_parts_make_up_the_duration() {
  QFETCH(const int, world_size);
  QFETCH(const WireFormat, wire);
  LoopbackRing ring(world_size);

  const auto results = ring.run(ring.spec(wire), normal_inputs(world_size, 1 << 20));

  verify_all_succeeded(results);
  for (const MemberResult& result : results) {
    const AllReducePhases& parts = result.report().phases;
    QVERIFY(parts.quantise > Seconds::zero() && parts.reduce_scatter >= Seconds::zero());
    QVERIFY(parts.all_gather > Seconds::zero());  // the digest at least
    const Seconds sum = parts.connect + parts.quantise + parts.reduce_scatter + parts.all_gather;
    QVERIFY(sum > Seconds::zero() && sum <= result.report().duration);
  }
}

void RingAllReduceTest::bytes_sent_are_those_of_a_ring() {
  LoopbackRing ring(4);
  const std::size_t numel = 8'000'000;  // frames of 64 KiB: their headers count

  const auto results = ring.run(ring.spec(WireFormat::kInt8Block), normal_inputs(4, numel));

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  const double ideal = 2.0 * 3 / 4 * static_cast<double>(encoded_bytes(WireFormat::kInt8Block, numel));
  for (const MemberResult& result : results) {
    QVERIFY(std::abs(static_cast<double>(result.report().bytes_sent) / ideal - 1) < 1e-3);
  }
}

void RingAllReduceTest::sixteen_connections_share_an_edge() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = normal_inputs(3, 2'000'000);
  const auto with_two = ring.run(spec, inputs);
  spec.attempt = Attempt{2};
  spec.connections_per_edge = 16;

  const auto with_sixteen = ring.run(spec, inputs);

  verify_all_succeeded(with_two);
  verify_all_succeeded(with_sixteen);
  if (QTest::currentTestFailed()) return;
  QVERIFY(with_sixteen[1].canonical == with_two[1].canonical);
}

void RingAllReduceTest::attempts_follow_each_other_on_the_same_ports() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = normal_inputs(3, 50'000);

  for (std::uint32_t round = 1; round <= 10; ++round) {
    spec.round = OuterStep{round};
    verify_all_succeeded(ring.run(spec, inputs));
    if (QTest::currentTestFailed()) return;
  }
}

void RingAllReduceTest::a_value_that_is_not_finite_passes_through_without_a_crash() {
  // Refusing it is the caller's part, before it lets the values in (all_finite).
  LoopbackRing ring(3);
  Inputs inputs = normal_inputs(3, 3'000);
  inputs[1][10] = std::numeric_limits<float>::quiet_NaN();
  inputs[2][600] = std::numeric_limits<float>::infinity();

  const auto results = ring.run(ring.spec(WireFormat::kInt8Block), inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  const auto values = decoded(WireFormat::kInt8Block, results[0].canonical, 3'000);
  QVERIFY(std::isnan(values[10]));
  QVERIFY(std::isnan(values[600]));
  QVERIFY(std::isfinite(values[1000]));
  QVERIFY(results[0].canonical == results[1].canonical && results[0].canonical == results[2].canonical);
}

void RingAllReduceTest::a_peer_that_vanishes_ends_the_attempt_at_once() {
  LoopbackRing ring(4);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = normal_inputs(4, 3'000'000);
  const auto begin = Clock::now();

  std::jthread vanishing([&] { ring.edges_of(1, spec, 3'000'000); });  // connects, and is gone
  const auto results = ring.run(spec, inputs, {0, 2, 3});

  QVERIFY(Clock::now() - begin < test::kForEver);
  bool named = false;
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    QCOMPARE(result.failure().error.code, ErrorCode::kPeerLost);
    named = named || result.failure().peer == ring.id(1);
  }
  // Whoever fails after the first may name the neighbour that gave the attempt up before it.
  QVERIFY(named);
  QVERIFY(results[1].failure().error.message.starts_with("all_reduce round 3 attempt 1, rank 2: "));
}

void RingAllReduceTest::a_silent_peer_is_named_by_its_neighbour() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 2s;
  const Inputs inputs = normal_inputs(2, 100'000);
  AbortSignal end;

  std::jthread silent([&] {
    const RingEdges edges = ring.edges_of(1, spec, 100'000);
    pollfd wait{end.fd(), POLLIN, 0};
    (void)::poll(&wait, 1, 5'000);
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("test ends");

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
  QVERIFY(result.failure().error.message.find(ring.id(1).value) != std::string::npos);
}

void RingAllReduceTest::a_member_that_waits_is_not_blamed_for_the_silence_of_another() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = normal_inputs(3, 100'000);
  AllReduceSpec hasty = spec;
  hasty.silence_timeout = 1'000ms;
  spec.silence_timeout = 1'500ms;
  AbortSignal end;

  // Rank 1 says nothing. Rank 2 waits for it patiently and meanwhile keeps its edge to rank 0 alive.
  std::jthread silent([&] {
    const RingEdges edges = ring.edges_of(1, spec, 100'000);
    pollfd wait{end.fd(), POLLIN, 0};
    (void)::poll(&wait, 1, 10'000);
  });
  MemberResult patient;
  std::jthread waiting([&] { patient = ring.run_member(2, spec, inputs[2], ring.abort); });
  const auto begin = Clock::now();
  const auto first = ring.run_member(0, hasty, inputs[0], ring.abort);
  const auto took = Clock::now() - begin;
  end.raise("test ends");
  waiting.join();

  QVERIFY(took > 1'300ms);  // not its own second: keepalives of rank 2 reached it
  QVERIFY(!first.ok());
  QVERIFY(!patient.ok());
  QCOMPARE(patient.failure().peer->value, ring.id(1).value);
}

void RingAllReduceTest::abort_ends_the_attempt_at_once_data() {
  QTest::addColumn<bool>("connected");
  QTest::newRow("while waiting to be dialled") << false;
  QTest::newRow("while waiting for data") << true;
}

void RingAllReduceTest::abort_ends_the_attempt_at_once() {
  QFETCH(bool, connected);
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = normal_inputs(2, 100'000);
  AbortSignal abort;
  std::optional<RingEdges> edges;
  Clock::time_point ended;
  MemberResult result;

  std::jthread member([&] {
    result = ring.run_member(0, spec, inputs[0], abort);
    ended = Clock::now();
  });
  if (connected) edges.emplace(ring.edges_of(1, spec, 100'000));
  std::this_thread::sleep_for(200ms);
  const auto raised = Clock::now();
  abort.raise("the hub said so");
  member.join();

  QVERIFY(ended - raised < test::kForEver);
  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kAborted);
  QVERIFY(!result.failure().silent);
  // For whom it waited, once they had met.
  QCOMPARE(result.failure().peer, connected ? std::optional(spec.order[1].id) : std::nullopt);
  QCOMPARE(result.failure().stalled_after, connected ? std::optional<std::uint64_t>(0) : std::nullopt);
  QVERIFY(result.failure().error.message.find("the hub said so") != std::string::npos);
}

void RingAllReduceTest::an_unreachable_next_member_is_named() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  const Inputs inputs = normal_inputs(2, 10);
  ring.island(1).listener.reset();

  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kUnreachable);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingAllReduceTest::a_member_that_never_dials_is_named() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  spec.silence_timeout = 2s;
  const Inputs inputs = normal_inputs(3, 10);

  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QCOMPARE(result.failure().peer->value, ring.id(2).value);
}

void RingAllReduceTest::a_peer_with_another_idea_of_the_attempt_is_refused() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  AllReduceSpec other = spec;
  other.wire = WireFormat::kFp32;
  const Inputs inputs = normal_inputs(2, 10'000);

  MemberResult second;
  std::jthread thread([&] { second = ring.run_member(1, other, inputs[1], ring.abort); });
  const auto first = ring.run_member(0, spec, inputs[0], ring.abort);
  thread.join();

  for (const MemberResult* result : {&first, &std::as_const(second)}) {
    QVERIFY(!result->ok());
    QCOMPARE(result->failure().error.code, ErrorCode::kProtocol);
    QVERIFY(result->failure().error.message.find("another wire format") != std::string::npos);
  }
}

void RingAllReduceTest::frames_that_break_the_protocol_are_refused_data() {
  QTest::addColumn<int>("fault");
  QTest::newRow("garbage") << 0;
  QTest::newRow("another attempt") << 1;
  QTest::newRow("a frame beyond the last") << 2;
  QTest::newRow("another offset") << 3;
  QTest::newRow("another length") << 4;
  QTest::newRow("another phase") << 5;
}

void RingAllReduceTest::frames_that_break_the_protocol_are_refused() {
  QFETCH(int, fault);
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const std::int64_t numel = 100'000;
  const Inputs inputs = normal_inputs(2, numel);
  // What rank 1 should send first, and one thing wrong in it.
  const RingSubChunk right = EdgeSchedule(payload_of(spec, numel), 2, Rank{1}).frame(0);
  RingFrameHeader header{.phase = right.phase,
                         .round = spec.round,
                         .attempt = spec.attempt,
                         .sequence = 0,
                         .length = right.bytes,
                         .offset = right.first_byte};
  if (fault == 1) header.attempt = Attempt{9};
  if (fault == 2) header.sequence = 1000;
  if (fault == 3) header.offset += 4;
  if (fault == 4) header.length += 1;
  if (fault == 5) header.phase = RingPhase::kAllGather;
  std::array<std::byte, kRingFrameHeaderBytes> bytes;
  encode(header, bytes);
  if (fault == 0) bytes.fill(std::byte{0x5a});

  std::optional<RingEdges> edges;
  std::jthread peer([&] {
    edges.emplace(ring.edges_of(1, spec, numel));
    (void)edges->to_next[0].write_all(bytes, Deadline::after(1s));
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);
  peer.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
  QVERIFY(result.failure().error.message.find(ring.id(1).value) != std::string::npos);
}

void RingAllReduceTest::truncated_stream_is_a_lost_peer() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const std::int64_t numel = 100'000;
  const Inputs inputs = normal_inputs(2, numel);
  const RingSubChunk right = EdgeSchedule(payload_of(spec, numel), 2, Rank{1}).frame(0);
  const RingFrameHeader header{.phase = right.phase,
                               .round = spec.round,
                               .attempt = spec.attempt,
                               .sequence = 0,
                               .length = right.bytes,
                               .offset = right.first_byte};
  Bytes bytes(kRingFrameHeaderBytes + right.bytes / 2);
  encode(header, std::span(bytes).first<kRingFrameHeaderBytes>());

  std::jthread peer([&] {
    RingEdges edges = ring.edges_of(1, spec, numel);
    (void)edges.to_next[0].write_all(bytes, Deadline::after(1s));
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kPeerLost);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingAllReduceTest::orders_that_make_no_sense_are_refused_data() {
  QTest::addColumn<int>("fault");
  QTest::newRow("self is no member") << 0;
  QTest::newRow("a member twice") << 1;
  QTest::newRow("no weight at all") << 2;
  QTest::newRow("a negative weight") << 3;
  QTest::newRow("fewer connections than none") << 4;
  QTest::newRow("more connections than a fragment's part") << 5;
  QTest::newRow("a fragment beyond the last") << 6;
  QTest::newRow("no fragments") << 7;
  QTest::newRow("more fragments than there can be") << 8;
}

void RingAllReduceTest::orders_that_make_no_sense_are_refused() {
  QFETCH(int, fault);
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  if (fault == 0) spec.order.erase(spec.order.begin());
  if (fault == 1) spec.order.push_back(spec.order[0]);
  if (fault == 2) spec.order[0].weight = spec.order[1].weight = 0;
  if (fault == 3) spec.order[1].weight = -1;
  if (fault == 4) spec.connections_per_edge = -1;
  if (fault == 5) spec.fragments = 2, spec.connections_per_edge = 9;
  if (fault == 6) spec.fragments = 2, spec.fragment = FragmentId{2};
  if (fault == 7) spec.fragments = 0;
  if (fault == 8) spec.fragments = static_cast<int>(kMaxFragments) + 1;

  const auto result = ring.run_member(0, spec, std::vector<float>(10), ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kInvalidArgument);
  QVERIFY(!result.failure().peer.has_value());
}

QTEST_GUILESS_MAIN(RingAllReduceTest)
#include "ring_all_reduce_test.moc"
