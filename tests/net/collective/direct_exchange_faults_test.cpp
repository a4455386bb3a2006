// What an exchange by the direct schedule does with a member or a link that is bad: it ends everywhere, in a named
// error at whoever is to blame, with no byte wrong of what it calls whole, and nothing stays open; what is only slow
// does not end it.
#include <poll.h>

#include <QtTest>
#include <thread>

#include "net/collective/attempt_context.h"
#include "net/transport/socket.h"
#include "tests/net/collective/played_exchange.h"
#include "tests/net/collective/slow_link.h"

using namespace atl;
using namespace std::chrono_literals;

class DirectExchangeFaultsTest : public QObject {
  Q_OBJECT

  OpenThings before_;

 private Q_SLOTS:
  // What OpenSSL and the sanitizers open once is open before anything is counted.
  void initTestCase() {
    LoopbackRing ring(2);
    verify_all_succeeded(ring.run(direct_spec(ring), some_inputs(2, 1'000)));
  }
  void init() { before_ = OpenThings::now(); }
  void cleanup() { verify_nothing_stays_open(before_); }

  void a_member_that_dies_is_named_at_once();
  void a_member_that_nobody_can_reach_is_named_data();
  void a_member_that_nobody_can_reach_is_named();
  void a_member_that_falls_silent_is_named_within_the_silence_timeout();
  void a_member_that_stops_on_an_edge_that_never_paused_is_missed_early();
  void a_member_that_sends_keepalives_but_no_data_is_named_data();
  void a_member_that_sends_keepalives_but_no_data_is_named();
  void a_member_that_takes_nothing_is_named();
  void a_link_that_goes_dark_is_named_by_its_ends_alone();
  void a_link_that_is_cut_in_a_frame_ends_the_attempt_at_once();
  void a_link_slow_to_a_crawl_is_not_dead();
  void an_abort_ends_the_attempt_and_tells_the_others();
  void who_aborts_says_of_whom_nothing_was_heard_for_long();
};

void DirectExchangeFaultsTest::a_member_that_dies_is_named_at_once() {
  LoopbackRing ring(4);
  const AllReduceSpec spec = direct_spec(ring);
  const Inputs inputs = some_inputs(4, kNumel);
  const auto begin = Clock::now();

  std::jthread dying([&] {
    PlayedPeer member(ring, 1, spec);
    auto connections = member.meet_all();
    say(connections[1], member.contribution(2, 0));
    say(connections[1], Bytes(member.contribution(2, 0).length / 2));
  });
  const auto results = ring.run(spec, inputs, {0, 2, 3});
  dying.join();

  QVERIFY(Clock::now() - begin < spec.silence_timeout);
  verify_ended(results, ring.id(1), ErrorCode::kPeerLost);
}

void DirectExchangeFaultsTest::a_member_that_nobody_can_reach_is_named_data() {
  QTest::addColumn<int>("rank");
  QTest::addColumn<bool>("refuses");
  QTest::newRow("the first, which dials all") << 0 << false;
  QTest::newRow("the last, which all dial, and which is not there") << 2 << true;
  QTest::newRow("the last, which does not begin") << 2 << false;
}

void DirectExchangeFaultsTest::a_member_that_nobody_can_reach_is_named() {
  QFETCH(int, rank);
  QFETCH(bool, refuses);
  LoopbackRing ring(3);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 1'500ms * kSlowdown;
  if (refuses) ring.island(rank).listener.reset();
  const Inputs inputs = some_inputs(3, kNumel);
  std::vector<int> others;
  for (int other = 0; other < 3; ++other) {
    if (other != rank) others.push_back(other);
  }
  const auto begin = Clock::now();

  const auto results = ring.run(spec, inputs, others);

  QVERIFY(Clock::now() - begin < test::kForEver);
  verify_ended(results, ring.id(rank), refuses ? ErrorCode::kUnreachable : ErrorCode::kTimeout);
  if (QTest::currentTestFailed() || refuses) return;
  for (const MemberResult& result : results) {
    if (result.failure().error.code == ErrorCode::kTimeout) QVERIFY(result.failure().silent);
  }
}

void DirectExchangeFaultsTest::a_member_that_falls_silent_is_named_within_the_silence_timeout() {
  LoopbackRing ring(4);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 1'500ms * kSlowdown;
  const Inputs inputs = some_inputs(4, kNumel);
  AbortSignal end;
  const auto begin = Clock::now();

  std::jthread stopped([&] {
    PlayedPeer member(ring, 2, spec);
    auto connections = member.meet_all();
    say_frame(connections[0], member.contribution(0, 0));  // and no more
    (void)wait_ready(end.fd(), POLLIN, Deadline::after(1min), nullptr, "test");
  });
  const auto results = ring.run(spec, inputs, {0, 1, 3});
  const auto took = Clock::now() - begin;
  end.raise("the test ends");
  stopped.join();

  QVERIFY(took < test::kForEver);
  verify_ended(results, ring.id(2), ErrorCode::kTimeout);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : results) {
    QCOMPARE(result.failure().silent, result.failure().error.code == ErrorCode::kTimeout);
  }
}

// After half of the timeout, unless this machine itself made gaps.
void DirectExchangeFaultsTest::a_member_that_stops_on_an_edge_that_never_paused_is_missed_early() {
  LoopbackRing ring(3);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 6'000ms * kSlowdown;
  const Inputs inputs = some_inputs(3, 100'000);
  AbortSignal end;
  Clock::time_point stopped;

  std::jthread stops([&] {  // lives, and says so, for longer than a timeout
    PlayedPeer member(ring, 1, spec, 100'000);
    auto connections = member.meet_all();
    const Deadline stop = Deadline::after(spec.silence_timeout * 5 / 4);
    pollfd wait{end.fd(), POLLIN, 0};
    while (!stop.expired() && ::poll(&wait, 1, 50) == 0) {
      for (TlsConnection& connection : connections) say(connection, member.keepalive());
    }
    stopped = Clock::now();
    (void)wait_ready(end.fd(), POLLIN, Deadline::after(1min), nullptr, "test");
  });
  const auto results = ring.run(spec, inputs, {0, 2});
  const auto ended = Clock::now();
  end.raise("the test ends");
  stops.join();

  verify_ended(results, ring.id(1), ErrorCode::kTimeout);
  QVERIFY2(ended - stopped < spec.silence_timeout, message_of(results[0]).c_str());
}

void DirectExchangeFaultsTest::a_member_that_sends_keepalives_but_no_data_is_named_data() {
  QTest::addColumn<std::uint64_t>("promises");
  QTest::addColumn<bool>("believed");
  QTest::newRow("and does not say that it waits") << std::uint64_t{0} << false;
  QTest::newRow("and waits itself") << std::uint64_t{1'000'000} << true;
}

// One that waits itself is given time: here until it goes, twice as long as the other is waited for.
void DirectExchangeFaultsTest::a_member_that_sends_keepalives_but_no_data_is_named() {
  QFETCH(std::uint64_t, promises);
  QFETCH(bool, believed);
  LoopbackRing ring(2);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 400ms * kSlowdown;
  const Inputs inputs = some_inputs(2, 100'000);
  AbortSignal end;

  std::jthread idles([&] {
    PlayedPeer member(ring, 1, spec, 100'000);
    TlsConnection connection = member.meet(0);
    const Deadline goes = Deadline::after(2 * kStallTimeouts * spec.silence_timeout);
    const auto keepalive = encoded(member.keepalive(promises));
    pollfd wait{end.fd(), POLLIN, 0};
    while (!end.raised() && !goes.expired() && connection.write_all(keepalive, goes).ok()) (void)::poll(&wait, 1, 50);
  });
  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("the test ends");
  idles.join();

  verify_named_for_keepalives_alone(result, ring.id(1), believed);
}

// It has done its own part: nothing else would be heard from it.
void DirectExchangeFaultsTest::a_member_that_takes_nothing_is_named() {
  LoopbackRing ring(2);
  AllReduceSpec spec = direct_spec(ring, WireFormat::kFp32);
  spec.silence_timeout = 2'000ms * kSlowdown;
  const std::int64_t numel = 20'000'000;  // more than the sockets' buffers hold
  const Inputs inputs = some_inputs(2, static_cast<std::size_t>(numel));
  AbortSignal end;

  std::jthread stuck([&] {
    PlayedPeer member(ring, 1, spec, numel);
    TlsConnection connection = member.meet(0);
    for (std::size_t i = 0; i < member.chunks(0); ++i) say_frame(connection, member.contribution(0, i));
    for (std::size_t i = 0; i < member.chunks(1); ++i) say_frame(connection, member.sum(i));
    (void)wait_ready(end.fd(), POLLIN, Deadline::after(1min), nullptr, "test");
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("test ends");

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QVERIFY2(message_of(result).find(ring.id(1).value + " took nothing") != std::string::npos,
           message_of(result).c_str());
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void DirectExchangeFaultsTest::a_link_that_goes_dark_is_named_by_its_ends_alone() {
  LoopbackRing ring(4);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 1'500ms * kSlowdown;
  const Inputs inputs = some_inputs(4, 8'000'000);
  SlowLink link(spec.order[1].address);  // from rank 0 alone
  link.black_out_after(500'000);
  spec.order[1].address = link.address();
  const auto begin = Clock::now();

  const auto results = ring.run(spec, inputs);

  QVERIFY(Clock::now() - begin < test::kForEver);
  bool named = false;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    QVERIFY(!results[rank].ok());
    const auto& failure = results[rank].failure();
    if (failure.error.code != ErrorCode::kTimeout) continue;
    // Others hear keepalives of the two, and learn of it by a closed connection.
    QVERIFY2(rank <= 1 && failure.peer == ring.id(static_cast<int>(1 - rank)) && failure.silent,
             message_of(results[rank]).c_str());
    named = true;
  }
  QVERIFY(named);
}

void DirectExchangeFaultsTest::a_link_that_is_cut_in_a_frame_ends_the_attempt_at_once() {
  LoopbackRing ring(3);
  AllReduceSpec spec = direct_spec(ring);
  const Inputs inputs = some_inputs(3, 6'000'000);
  SlowLink link(spec.order[1].address);
  link.cut_after(1'000'000);
  spec.order[1].address = link.address();
  const auto begin = Clock::now();

  const auto results = ring.run(spec, inputs);

  QVERIFY(Clock::now() - begin < test::kForEver);
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    QCOMPARE(result.failure().error.code, ErrorCode::kPeerLost);
  }
}

void DirectExchangeFaultsTest::a_link_slow_to_a_crawl_is_not_dead() {
  LoopbackRing ring(3);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 1'000ms * kSlowdown;
  const Inputs inputs = some_inputs(3, 400'000);
  SlowLink link(spec.order[1].address, 60'000);  // some 4 s for what rank 0 sends to rank 1, as the others wait
  spec.order[1].address = link.address();

  verify_all_succeeded(ring.run(spec, inputs));
}

void DirectExchangeFaultsTest::an_abort_ends_the_attempt_and_tells_the_others() {
  LoopbackRing ring(3);
  const AllReduceSpec spec = direct_spec(ring);
  const Inputs inputs = some_inputs(3, kNumel);
  AbortSignal abort;
  std::optional<TlsConnection> first, third;
  MemberResult aborted;
  std::vector<MemberResult> others;
  std::jthread waits([&] { others = ring.run(spec, inputs, {2}); });
  std::jthread member([&] { aborted = ring.run_member(0, spec, inputs[0], abort); });
  PlayedPeer played(ring, 1, spec);  // which does nothing: the attempt does not end by itself
  first.emplace(played.meet(0));
  third.emplace(played.meet(2));
  std::this_thread::sleep_for(500ms * kSlowdown);  // so that the other two have met as well
  const auto begin = Clock::now();

  abort.raise("the hub says so");
  member.join();
  waits.join();

  QVERIFY(Clock::now() - begin < test::kForEver);
  QCOMPARE(aborted.failure().error.code, ErrorCode::kAborted);
  QVERIFY(!aborted.failure().peer);
  QCOMPARE(others[0].failure().error.code, ErrorCode::kPeerLost);
  QCOMPARE(others[0].failure().peer->value, ring.id(0).value);
}

void DirectExchangeFaultsTest::who_aborts_says_of_whom_nothing_was_heard_for_long() {
  LoopbackRing ring(2);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 4'000ms * kSlowdown;
  const Inputs inputs = some_inputs(2, kNumel);
  AbortSignal abort;
  MemberResult result;
  std::jthread member([&] { result = ring.run_member(0, spec, inputs[0], abort); });
  PlayedPeer played(ring, 1, spec);
  const TlsConnection connection = played.meet(0);

  std::this_thread::sleep_for(spec.silence_timeout * 3 / 4);
  abort.raise("the hub says so");
  member.join();

  QCOMPARE(result.failure().error.code, ErrorCode::kAborted);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
  QVERIFY(result.failure().silent);
}

QTEST_GUILESS_MAIN(DirectExchangeFaultsTest)
#include "direct_exchange_faults_test.moc"
