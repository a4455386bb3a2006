// Edges that the receiver dials, because nobody can dial it: the same bytes flow the same way.
#include <QtTest>
#include <algorithm>
#include <thread>

#include "tests/net/collective/fault_parts.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

// Those of `hidden` listen nowhere and dial both their edges.
AllReduceSpec hide(LoopbackRing& ring, const std::vector<int>& hidden) {
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  for (const int rank : hidden) {
    spec.order[static_cast<std::size_t>(rank)].dials_previous = true;
    ring.island(rank).listener.reset();
  }
  return spec;
}

}  // namespace

Q_DECLARE_METATYPE(std::vector<int>)

class RingDiallingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void islands_that_nobody_can_dial_get_the_same_average_data();
  void islands_that_nobody_can_dial_get_the_same_average();
  void every_edge_may_be_dialled_by_its_receiver();
  void connections_stay_open_whoever_dialled_them_data();
  void connections_stay_open_whoever_dialled_them();
  void connections_that_broke_meanwhile_are_replaced_by_who_dialled_them();
  void the_dialler_chooses_how_many_connections_an_edge_has();
  void an_edge_changes_its_dialler_from_one_attempt_to_the_next();
  void who_takes_anothers_part_in_the_hello_is_refused_data();
  void who_takes_anothers_part_in_the_hello_is_refused();
  void a_receiver_that_never_calls_is_named();
  void a_sender_that_never_answers_the_call_is_named();
  void a_receiver_that_dialled_and_vanishes_ends_the_attempt_at_once();
};

void RingDiallingTest::islands_that_nobody_can_dial_get_the_same_average_data() {
  QTest::addColumn<int>("world_size");
  QTest::addColumn<std::vector<int>>("hidden");
  QTest::newRow("one of two") << 2 << std::vector{1};
  QTest::newRow("the other of two") << 2 << std::vector{0};
  QTest::newRow("one of three") << 3 << std::vector{2};
  QTest::newRow("two of four") << 4 << std::vector{0, 2};
  QTest::newRow("two of five") << 5 << std::vector{1, 4};
}

void RingDiallingTest::islands_that_nobody_can_dial_get_the_same_average() {
  QFETCH(int, world_size);
  QFETCH(std::vector<int>, hidden);
  const Inputs inputs = some_inputs(world_size, 700'000);
  LoopbackRing open(world_size);
  const auto expected = open.run(open.spec(WireFormat::kInt8Block), inputs);
  LoopbackRing ring(world_size);

  const auto results = ring.run(hide(ring, hidden), inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QVERIFY(results[0].canonical == expected[0].canonical);
}

void RingDiallingTest::every_edge_may_be_dialled_by_its_receiver() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  for (RingMember& member : spec.order) member.dials_previous = true;

  verify_all_succeeded(ring.run(spec, some_inputs(4, 300'000)));
}

void RingDiallingTest::connections_stay_open_whoever_dialled_them_data() {
  QTest::addColumn<int>("world_size");
  QTest::addColumn<std::vector<int>>("hidden");
  QTest::newRow("both edges of two islands") << 2 << std::vector{1};
  QTest::newRow("two of four") << 4 << std::vector{1, 3};
  QTest::newRow("one of three") << 3 << std::vector{0};
}

void RingDiallingTest::connections_stay_open_whoever_dialled_them() {
  QFETCH(int, world_size);
  QFETCH(std::vector<int>, hidden);
  LoopbackRing ring(world_size);
  AllReduceSpec spec = hide(ring, hidden);
  spec.connections_per_edge = 3;
  const Inputs inputs = some_inputs(world_size, 200'000);

  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
    spec.attempt = Attempt{attempt};
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    if (attempt == 2) {  // nobody can dial anybody any more
      for (int rank = 0; rank < world_size; ++rank) ring.island(rank).listener.reset();
    }
    // Of an edge that the next rank dialled the first hello is a new one too.
    for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, attempt == 1 ? 0 : 3);
  }
}

void RingDiallingTest::connections_that_broke_meanwhile_are_replaced_by_who_dialled_them() {
  LoopbackRing ring(3);
  AllReduceSpec spec = hide(ring, {1});
  const Inputs inputs = some_inputs(3, 100'000);
  verify_all_succeeded(ring.run(spec, inputs));
  if (QTest::currentTestFailed()) return;

  ring.island(0).inbox.keep_parked_of(spec.fragment, {ring.id(2)});  // closes those that rank 1 dialled
  spec.attempt = Attempt{2};
  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QCOMPARE(results[0].report().connections_reused, 0);
  QCOMPARE(results[1].report().connections_reused, spec.connections_per_edge);
}

void RingDiallingTest::the_dialler_chooses_how_many_connections_an_edge_has() {
  LoopbackRing ring(2);
  AllReduceSpec spec = hide(ring, {1});
  AllReduceSpec of_hidden = spec;
  spec.connections_per_edge = 5;
  of_hidden.connections_per_edge = 3;
  const Inputs inputs = some_inputs(2, 100'000);

  MemberResult hidden;
  std::jthread thread([&] { hidden = ring.run_member(1, of_hidden, inputs[1], ring.abort); });
  const auto open = ring.run_member(0, spec, inputs[0], ring.abort);
  thread.join();

  QVERIFY2(open.ok(), message_of(open).c_str());
  QVERIFY2(hidden.ok(), message_of(hidden).c_str());
  QCOMPARE(open.report().connections, 3);
  QCOMPARE(hidden.report().connections, 3);
}

void RingDiallingTest::an_edge_changes_its_dialler_from_one_attempt_to_the_next() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(3, 100'000);

  for (const bool dials_previous : {false, true, false, true}) {
    spec.attempt.value += 1;
    spec.order[1].dials_previous = dials_previous;
    verify_all_succeeded(ring.run(spec, inputs));
    if (QTest::currentTestFailed()) return;
  }
}

void RingDiallingTest::who_takes_anothers_part_in_the_hello_is_refused_data() {
  QTest::addColumn<int>("peer");
  QTest::addColumn<bool>("dials_previous");
  QTest::addColumn<int>("role");
  QTest::addColumn<QString>("says");
  QTest::newRow("the previous rank would receive") << 2 << false << 1 << "the part of the receiver";
  QTest::newRow("the next rank would send") << 1 << true << 0 << "the part of the sender";
}

void RingDiallingTest::who_takes_anothers_part_in_the_hello_is_refused() {
  QFETCH(int, peer);
  QFETCH(bool, dials_previous);
  QFETCH(int, role);
  QFETCH(QString, says);
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.order[1].dials_previous = dials_previous;
  const Inputs inputs = some_inputs(3, 10'000);
  const RingPayload payload = payload_of(spec, 10'000);
  auto liar =
      TlsConnection::connect(spec.order[0].address, *ring.island(peer).dial_context, ring.id(0), Deadline::after(5s));
  QVERIFY(liar.ok());
  const RingHello hello{.from = ring.id(peer),
                        .role = static_cast<RingRole>(role),
                        .round = spec.round,
                        .attempt = spec.attempt,
                        .from_rank = Rank{peer},
                        .world_size = 3,
                        .connection_index = 0,
                        .connection_count = 1,
                        .wire = spec.wire,
                        .payload_numel = 10'000,
                        .bucket_numel = static_cast<std::uint64_t>(payload.bucket_numel)};
  QVERIFY(liar->write_all(encode(hello), Deadline::after(5s)).ok());

  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QCOMPARE(result.failure().peer->value, ring.id(peer).value);
  QVERIFY2(QString::fromStdString(message_of(result)).contains(says), message_of(result).c_str());
}

void RingDiallingTest::a_receiver_that_never_calls_is_named() {
  LoopbackRing ring(3);
  AllReduceSpec spec = hide(ring, {1});
  spec.silence_timeout = 2s;

  const auto result = ring.run_member(0, spec, some_inputs(3, 10)[0], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingDiallingTest::a_sender_that_never_answers_the_call_is_named() {
  LoopbackRing ring(3);
  AllReduceSpec spec = hide(ring, {1});
  spec.silence_timeout = 2s;

  const auto result = ring.run_member(1, spec, some_inputs(3, 10)[1], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QCOMPARE(result.failure().peer->value, ring.id(0).value);
}

void RingDiallingTest::a_receiver_that_dialled_and_vanishes_ends_the_attempt_at_once() {
  LoopbackRing ring(4);
  const AllReduceSpec spec = hide(ring, {1});
  const Inputs inputs = some_inputs(4, 3'000'000);
  const auto begin = Clock::now();

  std::jthread vanishing([&] { ring.edges_of(1, spec, 3'000'000); });  // connects, and is gone
  const auto results = ring.run(spec, inputs, {0, 2, 3});

  QVERIFY(Clock::now() - begin < test::kForEver);
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    QCOMPARE(result.failure().error.code, ErrorCode::kPeerLost);
  }
}

QTEST_GUILESS_MAIN(RingDiallingTest)
#include "ring_dialling_test.moc"
