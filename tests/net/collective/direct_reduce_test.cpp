// Formats that are not summed hop by hop: contributions go straight to each chunk's owner, and what is lost on the way
// is sent with the next round.
#include "net/collective/direct_reduce.h"

#include <poll.h>

#include <QtTest>
#include <cmath>
#include <thread>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "net/collective/canonical_digest.h"
#include "tests/net/collective/ring_inputs.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr WireFormat kWire = WireFormat::kInt4E3m0;

// The sums that the owners make, by the codec alone: contributions in the order of ranks on top of the owner's values.
Bytes expected_canonical(const AllReduceSpec& spec, const Inputs& inputs) {
  const std::size_t numel = inputs[0].size();
  const RingPayload payload = payload_of(spec, static_cast<std::int64_t>(numel));
  const int world_size = static_cast<int>(spec.order.size());
  double total = 0;
  for (const RingMember& member : spec.order) total += member.weight;
  Bytes canonical(static_cast<std::size_t>(encoded_bytes(kWire, std::ssize(inputs[0]))));
  for (int owner = 0; owner < world_size; ++owner) {
    const EdgeSchedule edge(payload, world_size, Rank{owner});
    for (std::uint32_t i = edge.next_own(0); i < edge.frames(); i = edge.next_own(i + 1)) {
      const RingSubChunk chunk = edge.frame(i);
      const auto share = [&](int rank) {
        return static_cast<float>(spec.order[static_cast<std::size_t>(rank)].weight / total);
      };
      const auto values = [&](int rank) {
        return std::span(inputs[static_cast<std::size_t>(rank)])
            .subspan(static_cast<std::size_t>(chunk.first_value), static_cast<std::size_t>(chunk.numel));
      };
      std::vector<float> sum(static_cast<std::size_t>(chunk.numel));
      Bytes contribution(chunk.bytes);
      scaled_copy(values(owner), share(owner), sum);
      for (int rank = 0; rank < world_size; ++rank) {
        if (rank == owner) continue;
        encode_weighted(kWire, values(rank), share(rank), contribution);
        decode_add_values(kWire, contribution, sum);
      }
      encode_values(kWire, sum, std::span(canonical).subspan(chunk.first_byte, chunk.bytes));
    }
  }
  return canonical;
}

// A member that a test plays: its ring edges stand and are kept alive, and it does what it is told with connections
// that it dials to the others as a contributor.
class PlayedMember {
 public:
  PlayedMember(LoopbackRing& ring, int rank, const AllReduceSpec& spec, std::int64_t numel)
      : ring_(ring), rank_(rank), spec_(spec), payload_(payload_of(spec, numel)) {}

  RingEdges connect_ring() { return ring_.edges_of(rank_, spec_, payload_.numel); }
  TlsConnection dial(int owner) {
    const RingMember& to = spec_.order[static_cast<std::size_t>(owner)];
    auto connection = TlsConnection::connect(to.address, *ring_.island(rank_).dial_context, to.id, Deadline::after(5s));
    const RingHello hello = hello_of(spec_, static_cast<std::size_t>(rank_), RingRole::kContributions, payload_);
    if (!connection.ok() || !connection->write_all(encode(hello), Deadline::after(5s)).ok()) {
      qFatal("the played member could not dial");
    }
    return std::move(*connection);
  }
  // The first frame that `owner` expects.
  RingFrameHeader first_header(int owner) const {
    const EdgeSchedule edge(payload_, static_cast<int>(spec_.order.size()), Rank{owner});
    const RingSubChunk chunk = edge.frame(edge.next_own(0));
    return {.round = spec_.round, .attempt = spec_.attempt, .length = chunk.bytes, .offset = chunk.first_byte};
  }
  // Until `end`, or the edge is gone.
  void keep_alive(RingEdges& edges, const AbortSignal& end) const {
    std::array<std::byte, kRingFrameHeaderBytes> keepalive;
    encode({.type = RingFrameType::kKeepalive, .round = spec_.round, .attempt = spec_.attempt}, keepalive);
    while (!end.raised() && edges.to_next.front().write_all(keepalive, Deadline::after(1s)).ok()) {
      pollfd wait{end.fd(), POLLIN, 0};
      (void)::poll(&wait, 1, 50);
    }
  }

 private:
  LoopbackRing& ring_;
  const int rank_;
  const AllReduceSpec spec_;
  const RingPayload payload_;
};

void write_header(TlsConnection& connection, const RingFrameHeader& header) {
  std::array<std::byte, kRingFrameHeaderBytes> bytes;
  encode(header, bytes);
  QVERIFY(connection.write_all(bytes, Deadline::after(5s)).ok());
}

}  // namespace

class DirectReduceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_member_holds_the_sum_that_each_owner_made_once_data();
  void every_member_holds_the_sum_that_each_owner_made_once();
  void values_count_by_their_weight_and_weight_zero_only_receives();
  void buckets_that_are_final_stay_as_they_are_and_so_do_their_residuals();
  void fed_back_error_of_many_rounds_is_that_of_one();
  void residuals_that_do_not_fit_are_refused();
  void a_member_that_vanishes_among_its_contributions_is_named();
  void a_contributor_that_says_nothing_is_named_although_its_edges_live();
  void a_contributor_that_stops_on_an_edge_that_never_paused_is_missed_early();
  void whose_contributions_lack_most_is_named_when_an_attempt_is_ended();
  void who_never_dials_is_named_when_an_attempt_is_ended();
  void contributions_that_break_the_protocol_are_refused_data();
  void contributions_that_break_the_protocol_are_refused();
  void abort_ends_the_attempt_at_once();
};

void DirectReduceTest::every_member_holds_the_sum_that_each_owner_made_once_data() {
  QTest::addColumn<int>("world_size");
  QTest::addColumn<int>("numel");
  for (const int world_size : {1, 2, 3, 4, 5}) {
    // Empty; chunks that are empty; a last block that is short; several sub-chunks and buckets.
    for (const int numel : {0, 1, 700, 100'001, 4'000'003}) {
      QTest::addRow("N=%d numel=%d", world_size, numel) << world_size << numel;
    }
  }
}

void DirectReduceTest::every_member_holds_the_sum_that_each_owner_made_once() {
  QFETCH(int, world_size);
  QFETCH(int, numel);
  LoopbackRing ring(world_size);
  AllReduceSpec spec = ring.spec(kWire);
  spec.bucket_numel = 3'000 * kBlockNumel;
  const Inputs inputs = normal_inputs(world_size, static_cast<std::size_t>(numel));

  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  if (world_size > 1) QVERIFY(results[0].canonical == expected_canonical(spec, inputs));
  for (const MemberResult& result : results) {
    QVERIFY(result.canonical == results[0].canonical);
    QVERIFY(result.report().digest == canonical_digest(result.canonical));
  }
}

void DirectReduceTest::values_count_by_their_weight_and_weight_zero_only_receives() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(kWire);
  const double weights[] = {1000, 0, 3000, 500};
  for (std::size_t rank = 0; rank < 4; ++rank) spec.order[rank].weight = weights[rank];
  Inputs inputs = normal_inputs(4, 50'000);
  const Bytes expected = expected_canonical(spec, inputs);
  inputs[1].assign(50'000, std::numeric_limits<float>::quiet_NaN());  // must not be looked at

  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  // A chunk of the member without weight holds the others' sum alone: zeros added to it change nothing.
  for (const MemberResult& result : results) QVERIFY(result.canonical == expected);
}

void DirectReduceTest::buckets_that_are_final_stay_as_they_are_and_so_do_their_residuals() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(kWire);
  spec.bucket_numel = 100 * kBlockNumel;
  spec.final_buckets = {false, true, false};
  const auto numel = static_cast<std::size_t>(3 * spec.bucket_numel);
  const Inputs inputs = normal_inputs(2, numel);
  const auto before = static_cast<std::size_t>(encoded_bytes(kWire, spec.bucket_numel));
  const std::vector<float> owed(numel, 0.0f);
  Inputs lost(2, std::vector<float>(numel, 7.0f));
  std::vector<MemberResult> results(2);

  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      AllReduceSpec own = spec;
      own.feedback = {owed, lost[static_cast<std::size_t>(rank)]};
      results[static_cast<std::size_t>(rank)] =
          ring.run_member(rank, own, inputs[static_cast<std::size_t>(rank)], ring.abort);
    });
  }
  threads.clear();

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  const auto middle = std::span(results[0].canonical).subspan(before, before);
  QVERIFY(std::ranges::all_of(middle, [](std::byte b) { return b == std::byte{0xee}; }));  // as the room was given
  for (const auto& residual : lost) {
    for (std::size_t i = 0; i < numel; ++i) {
      const bool in_final = i / static_cast<std::size_t>(spec.bucket_numel) == 1;
      QCOMPARE(residual[i] == 7.0f, in_final);
    }
  }
}

void DirectReduceTest::fed_back_error_of_many_rounds_is_that_of_one() {
  constexpr int kMembers = 3;
  constexpr std::size_t kNumel = 6'000;
  LoopbackRing ring(kMembers);
  AllReduceSpec spec = ring.spec(kWire);
  Inputs owed(kMembers, std::vector<float>(kNumel, 0.0f));
  Inputs lost = owed;
  std::vector<double> error(kNumel, 0.0);
  const auto rms = [&] {
    double squares = 0;
    for (const double e : error) squares += e * e;
    return std::sqrt(squares / kNumel);
  };
  double after_one = 0;

  for (unsigned round = 0; round < 50; ++round) {
    spec.round = OuterStep{round};
    const Inputs inputs = normal_inputs(kMembers, kNumel, round);
    std::vector<MemberResult> results(kMembers);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kMembers; ++rank) {
      threads.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        AllReduceSpec own = spec;
        own.feedback = {owed[at], lost[at]};
        results[at] = ring.run_member(rank, own, inputs[at], ring.abort);
      });
    }
    threads.clear();
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    std::swap(owed, lost);  // the round is committed
    std::vector<float> values(kNumel);
    decode_values(spec.wire, results[0].canonical, values);
    for (std::size_t i = 0; i < kNumel; ++i) {
      double mean = 0;
      for (const auto& input : inputs) mean += static_cast<double>(input[i]) / kMembers;
      error[i] += static_cast<double>(values[i]) - mean;
    }
    if (round == 0) after_one = rms();
  }

  // Without feedback it would be about 7 times as large.
  QVERIFY2(rms() <= 1.2 * after_one, qPrintable(QString::number(rms() / after_one)));
}

void DirectReduceTest::residuals_that_do_not_fit_are_refused() {
  LoopbackRing ring(1);
  AllReduceSpec spec = ring.spec(kWire);
  std::vector<float> residual(99);
  spec.feedback = {residual, residual};

  const auto result = ring.run_member(0, spec, std::vector<float>(100), ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kInvalidArgument);
}

void DirectReduceTest::a_member_that_vanishes_among_its_contributions_is_named() {
  constexpr std::int64_t kNumel = 3'000'000;
  LoopbackRing ring(4);
  const AllReduceSpec spec = ring.spec(kWire);
  const Inputs inputs = normal_inputs(4, kNumel);
  const auto begin = Clock::now();

  std::jthread vanishing([&] {
    PlayedMember member(ring, 1, spec, kNumel);
    const RingEdges edges = member.connect_ring();
    TlsConnection contributions = member.dial(3);
    write_header(contributions, member.first_header(3));  // and is gone in the middle of the frame
  });
  const auto results = ring.run(spec, inputs, {0, 2, 3});

  QVERIFY(Clock::now() - begin < test::kForEver);
  bool named = false;
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    named = named || result.failure().peer == ring.id(1);
  }
  QVERIFY(named);
}

void DirectReduceTest::a_contributor_that_says_nothing_is_named_although_its_edges_live() {
  constexpr std::int64_t kNumel = 300'000;
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(kWire);
  AllReduceSpec hasty = spec;
  hasty.silence_timeout = 2'500ms;  // longer than the others take between two keepalives
  const Inputs inputs = normal_inputs(3, kNumel);
  AbortSignal end;

  std::jthread silent([&] {
    PlayedMember member(ring, 1, spec, kNumel);
    RingEdges edges = member.connect_ring();
    const TlsConnection to_first = member.dial(0);
    const TlsConnection to_third = member.dial(2);
    member.keep_alive(edges, end);
  });
  std::jthread patient([&] { (void)ring.run_member(2, spec, inputs[2], end); });
  const auto result = ring.run_member(0, hasty, inputs[0], ring.abort);
  end.raise("test ends");

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

// After half of the timeout, unless this machine itself made gaps.
void DirectReduceTest::a_contributor_that_stops_on_an_edge_that_never_paused_is_missed_early() {
  constexpr std::int64_t kNumel = 300'000;
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(kWire);
  AllReduceSpec hasty = spec;
  hasty.silence_timeout = 6'000ms;
  const Inputs inputs = normal_inputs(3, kNumel);
  AbortSignal end;
  Clock::time_point stopped;

  std::jthread stops([&] {  // sends a little, and goes on to say that it lives
    PlayedMember member(ring, 1, spec, kNumel);
    RingEdges edges = member.connect_ring();
    TlsConnection to_first = member.dial(0);
    const TlsConnection to_third = member.dial(2);
    write_header(to_first, member.first_header(0));
    std::jthread lives([&] { member.keep_alive(edges, end); });
    const Bytes little(16);
    for (int i = 0; i < 150; ++i) {
      QVERIFY(to_first.write_all(little, Deadline::after(5s)).ok());
      std::this_thread::sleep_for(50ms);
    }
    stopped = Clock::now();
    lives.join();
  });
  std::jthread patient([&] { (void)ring.run_member(2, spec, inputs[2], end); });
  const auto result = ring.run_member(0, hasty, inputs[0], ring.abort);
  const auto ended = Clock::now();
  end.raise("test ends");
  stops.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
  QVERIFY(result.failure().silent);
  QVERIFY2(ended - stopped < hasty.silence_timeout, result.failure().error.message.c_str());
}

void DirectReduceTest::whose_contributions_lack_most_is_named_when_an_attempt_is_ended() {
  constexpr std::int64_t kNumel = 300'000;
  LoopbackRing ring(3);
  const AllReduceSpec spec = ring.spec(kWire);
  const Inputs inputs = normal_inputs(3, kNumel);
  AbortSignal end, abort;

  std::jthread trickles([&] {
    PlayedMember member(ring, 1, spec, kNumel);
    RingEdges edges = member.connect_ring();
    TlsConnection to_first = member.dial(0);
    const TlsConnection to_third = member.dial(2);
    write_header(to_first, member.first_header(0));
    member.keep_alive(edges, end);
  });
  std::jthread other([&] { (void)ring.run_member(2, spec, inputs[2], end); });
  // Ended once the header of one and the frame of the other have come: no ring's data can.
  const std::uint64_t frame = PlayedMember(ring, 1, spec, kNumel).first_header(0).length;
  AllReduceSpec watched = spec;
  watched.on_progress = [&, frame](const AllReduceProgress& progress) {
    if (progress.bytes_done >= 2 * kRingFrameHeaderBytes + frame)
      abort.raise("it takes far longer than its links need");
  };
  const auto result = ring.run_member(0, watched, inputs[0], abort);
  end.raise("test ends");

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kAborted);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);  // the ring's previous rank is another
  QCOMPARE(result.failure().stalled_after, std::optional<std::uint64_t>(kRingFrameHeaderBytes));
}

// Nobody is read before all have come, so that of the others as little has.
void DirectReduceTest::who_never_dials_is_named_when_an_attempt_is_ended() {
  constexpr std::int64_t kNumel = 300'000;
  LoopbackRing ring(3);
  const AllReduceSpec spec = ring.spec(kWire);
  const Inputs inputs = normal_inputs(3, kNumel);
  AbortSignal end, abort;

  std::jthread mute([&] {
    PlayedMember member(ring, 1, spec, kNumel);
    RingEdges edges = member.connect_ring();
    member.keep_alive(edges, end);
  });
  std::jthread other([&] { (void)ring.run_member(2, spec, inputs[2], end); });
  AllReduceSpec watched = spec;
  watched.on_progress = [&](const AllReduceProgress&) { abort.raise("it takes far longer than its links need"); };
  const auto result = ring.run_member(0, watched, inputs[0], abort);
  end.raise("test ends");

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().peer->value, ring.id(1).value);  // the ring's previous rank is another
  QCOMPARE(result.failure().stalled_after, std::optional<std::uint64_t>(0));
}

void DirectReduceTest::contributions_that_break_the_protocol_are_refused_data() {
  QTest::addColumn<int>("lie");
  QTest::newRow("another attempt") << 0;
  QTest::newRow("a frame that is not the next") << 1;
  QTest::newRow("another offset") << 2;
  QTest::newRow("another length") << 3;
  QTest::newRow("another phase") << 4;
  QTest::newRow("another idea of the payload") << 5;
  QTest::newRow("another fragment") << 6;
}

void DirectReduceTest::contributions_that_break_the_protocol_are_refused() {
  QFETCH(int, lie);
  constexpr std::int64_t kNumel = 300'000;
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(kWire);
  const Inputs inputs = normal_inputs(2, kNumel);
  AbortSignal end;

  std::jthread liar([&] {
    PlayedMember member(ring, 1, spec, kNumel);
    RingEdges edges = member.connect_ring();
    TlsConnection contributions = PlayedMember(ring, 1, spec, lie == 5 ? kNumel + 1 : kNumel).dial(0);
    RingFrameHeader header = member.first_header(0);
    if (lie == 0) header.attempt = Attempt{9};
    if (lie == 1) header.sequence = 1;
    if (lie == 2) header.offset += 132;
    if (lie == 3) header.length -= 1;
    if (lie == 4) header.phase = RingPhase::kAllGather;
    if (lie == 6) header.fragment = FragmentId{1};
    write_header(contributions, header);
    member.keep_alive(edges, end);
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("test ends");

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void DirectReduceTest::abort_ends_the_attempt_at_once() {
  constexpr std::int64_t kNumel = 300'000;
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(kWire);
  const Inputs inputs = normal_inputs(2, kNumel);
  AbortSignal end;
  AbortSignal abort;

  std::jthread silent([&] {
    PlayedMember member(ring, 1, spec, kNumel);
    RingEdges edges = member.connect_ring();
    abort.raise("the hub says so");
    member.keep_alive(edges, end);
  });
  const auto begin = Clock::now();
  const auto result = ring.run_member(0, spec, inputs[0], abort);
  end.raise("test ends");

  QVERIFY(Clock::now() - begin < test::kForEver);
  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kAborted);
  QVERIFY(!result.failure().silent);
}

QTEST_APPLESS_MAIN(DirectReduceTest)
#include "direct_reduce_test.moc"
