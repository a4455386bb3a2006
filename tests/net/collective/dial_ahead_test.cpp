// Connections that islands dial before an attempt begins, on the hub's advice.
#include "net/collective/dial_ahead.h"

#include <sys/resource.h>
#include <unistd.h>

#include <QtTest>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <thread>

#include "net/transport/socket.h"
#include "tests/fakes/patience.h"
#include "tests/net/collective/fault_parts.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

NextAttempts next_of(const AllReduceSpec& spec) {
  NextAttempts next;
  next.order = spec.order;
  next.schedule = spec.schedule;
  next.fragments = spec.fragments;
  next.connections_per_edge = spec.connections_per_edge;
  next.bytes_to_each = 1 << 20;
  return next;
}

// All are told at about the same time, as by a hub.
void prepare_all(LoopbackRing& ring, const AllReduceSpec& spec) {
  for (int rank = 0; rank < ring.world_size(); ++rank) ring.island(rank).ring->prepare(next_of(spec));
}

void await_all(LoopbackRing& ring) {
  for (int rank = 0; rank < ring.world_size(); ++rank) {
    QVERIFY(ring.island(rank).ring->await_prepared(Deadline::after(test::kForEver)));
  }
}

// Those listen nowhere any more.
void close_all_ports(LoopbackRing& ring) {
  for (int rank = 0; rank < ring.world_size(); ++rank) ring.island(rank).listener.reset();
}

}  // namespace

Q_DECLARE_METATYPE(std::vector<int>)

class DialAheadTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_first_attempt_finds_its_connections_there_data();
  void the_first_attempt_finds_its_connections_there();
  void the_first_exchange_finds_its_connections_there();
  void the_attempts_of_all_fragments_find_theirs();
  void an_attempt_that_begins_meanwhile_takes_what_stands();
  void who_sees_its_neighbours_alone_dials_them_too();
  void an_island_that_is_gone_is_dialled_in_vain_and_nobody_else_minds();
  void who_was_not_told_is_dialled_by_the_attempt();
  void advice_for_the_other_schedule_costs_the_dials_alone();
  void what_attempts_left_is_not_dialled_again();
  void what_the_newest_advice_does_not_name_is_closed();
  void what_dies_before_the_attempt_is_dialled_again();
  void who_closes_at_once_is_dialled_ever_more_rarely();
  void a_hub_of_an_old_backup_is_followed_and_nothing_is_lost_or_left_data();
  void a_hub_of_an_old_backup_is_followed_and_nothing_is_lost_or_left();
  void without_a_descriptor_left_nothing_is_dialled_ahead();
  void windows_are_opened_with_no_more_than_was_asked();
  void what_is_taken_in_the_midst_of_padding_serves();
  void little_padding_waits_in_sockets_whose_link_is_slow();
};

void DialAheadTest::the_first_attempt_finds_its_connections_there_data() {
  QTest::addColumn<int>("world_size");
  QTest::addColumn<std::vector<int>>("hidden");
  QTest::newRow("two") << 2 << std::vector<int>{};
  QTest::newRow("two, of which one is dialled by nobody") << 2 << std::vector{1};
  QTest::newRow("four") << 4 << std::vector<int>{};
  QTest::newRow("four, of which two are dialled by nobody") << 4 << std::vector{0, 2};
}

void DialAheadTest::the_first_attempt_finds_its_connections_there() {
  QFETCH(int, world_size);
  QFETCH(std::vector<int>, hidden);
  LoopbackRing ring(world_size);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.connections_per_edge = 3;
  for (const int rank : hidden) {
    spec.order[static_cast<std::size_t>(rank)].dials_previous = true;
    ring.island(rank).listener.reset();
  }

  prepare_all(ring, spec);
  await_all(ring);
  close_all_ports(ring);
  const auto results = ring.run(spec, some_inputs(world_size, 200'000));

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, 3);
}

void DialAheadTest::the_first_exchange_finds_its_connections_there() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.schedule = Schedule::kDirect;

  prepare_all(ring, spec);
  await_all(ring);
  close_all_ports(ring);
  const auto results = ring.run(spec, some_inputs(4, 200'000));

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, 3);
}

void DialAheadTest::the_attempts_of_all_fragments_find_theirs() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.fragments = 2;

  prepare_all(ring, spec);
  await_all(ring);
  close_all_ports(ring);

  for (const std::uint32_t fragment : {1u, 0u}) {
    spec.fragment = FragmentId{fragment};
    const auto results = ring.run(spec, some_inputs(3, 200'000));
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    for (const MemberResult& result : results) {
      QCOMPARE(result.report().connections_reused, spec.connections_per_edge);
    }
  }
}

void DialAheadTest::an_attempt_that_begins_meanwhile_takes_what_stands() {
  const Inputs inputs = some_inputs(3, 100'000);
  for (const auto delay : {0ms, 1ms, 2ms, 4ms, 8ms, 16ms, 32ms}) {
    for (const Schedule schedule : {Schedule::kRing, Schedule::kDirect}) {
      LoopbackRing ring(3);
      AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
      spec.connections_per_edge = 8;
      spec.schedule = schedule;

      prepare_all(ring, spec);
      std::this_thread::sleep_for(delay);
      const auto results = ring.run(spec, inputs);

      verify_all_succeeded(results);
      if (QTest::currentTestFailed()) return;
      await_all(ring);  // nothing of the advice is left
    }
  }
}

void DialAheadTest::who_sees_its_neighbours_alone_dials_them_too() {
  LoopbackRing ring(4);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  for (int rank = 0; rank < 4; ++rank) {
    NextAttempts next = next_of(spec);
    std::ranges::rotate(next.order, next.order.begin() + (rank + 3) % 4);
    next.order.resize(3);
    ring.island(rank).ring->prepare(next);
  }
  await_all(ring);
  close_all_ports(ring);

  const auto results = ring.run(spec, some_inputs(4, 100'000));

  verify_all_succeeded(results);
}

void DialAheadTest::an_island_that_is_gone_is_dialled_in_vain_and_nobody_else_minds() {
  LoopbackRing ring(4);
  const AllReduceSpec all = ring.spec(WireFormat::kInt8Block);
  ring.island(3).listener.reset();
  AllReduceSpec spec = all;
  spec.order.pop_back();

  prepare_all(ring, all);
  const auto results = ring.run(spec, some_inputs(4, 100'000), {0, 1, 2});

  verify_all_succeeded(results);
  await_all(ring);
}

void DialAheadTest::who_was_not_told_is_dialled_by_the_attempt() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);

  ring.island(0).ring->prepare(next_of(spec));
  await_all(ring);
  const auto results = ring.run(spec, some_inputs(2, 100'000));

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QCOMPARE(results[0].report().connections_reused, 0);
}

void DialAheadTest::advice_for_the_other_schedule_costs_the_dials_alone() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.schedule = Schedule::kDirect;
  prepare_all(ring, spec);
  await_all(ring);

  spec.schedule = Schedule::kRing;
  const auto results = ring.run(spec, some_inputs(3, 100'000));

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, 0);
}

void DialAheadTest::what_attempts_left_is_not_dialled_again() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(2, 100'000);
  verify_all_succeeded(ring.run(spec, inputs));
  if (QTest::currentTestFailed()) return;
  close_all_ports(ring);

  const auto begin = Clock::now();
  prepare_all(ring, spec);
  await_all(ring);
  QVERIFY(Clock::now() - begin < 500ms);  // nothing was tried again
  spec.attempt = Attempt{2};
  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
}

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

void DialAheadTest::what_the_newest_advice_does_not_name_is_closed() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const std::ptrdiff_t before = open_files();
  prepare_all(ring, spec);
  await_all(ring);
  const std::ptrdiff_t with_one = open_files();
  QVERIFY(with_one >= before + 4 * 2);  // an edge each, with two ends

  std::ranges::reverse(spec.order);
  prepare_all(ring, spec);
  await_all(ring);

  QTRY_VERIFY_WITH_TIMEOUT(open_files() <= with_one, std::chrono::milliseconds(test::kForEver).count());
  verify_all_succeeded(ring.run(spec, some_inputs(4, 100'000)));
}

// Connections that were dialled ahead and lie in that inbox, which takes padding.
std::size_t count_ahead(RingInbox& inbox) {
  std::vector<pollfd> polls;
  inbox.append_ahead(polls);
  return polls.size() - 1;  // the first tells of arrivals
}

void DialAheadTest::what_dies_before_the_attempt_is_dialled_again() {
  LoopbackRing ring(3);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  prepare_all(ring, spec);
  await_all(ring);
  RingInbox& far = ring.island(1).inbox;
  const auto connections = static_cast<std::size_t>(spec.connections_per_edge);
  QCOMPARE(count_ahead(far), connections);

  far.forget(ring.id(0));
  QCOMPARE(count_ahead(far), std::size_t{0});
  far.expect_ahead(Schedule::kRing, {{ring.id(0), spec.connections_per_edge}}, true);

  QTRY_COMPARE_WITH_TIMEOUT(count_ahead(far), connections, std::chrono::milliseconds(test::kForEver).count());
  await_all(ring);
  close_all_ports(ring);
  const auto results = ring.run(spec, some_inputs(3, 100'000));
  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, spec.connections_per_edge);
}

// The n-th dial comes 0.5 + 1 + 2 ... s after the first at the earliest.
void DialAheadTest::who_closes_at_once_is_dialled_ever_more_rarely() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.connections_per_edge = 1;
  RingInbox& far = ring.island(1).inbox;
  const auto expect_one = [&] { far.expect_ahead(Schedule::kRing, {{ring.id(0), 1}}, true); };

  expect_one();
  const auto begin = Clock::now();
  ring.island(0).ring->prepare(next_of(spec));
  std::size_t dials = 0;
  while (dials < 4 && Clock::now() - begin < test::kForEver) {
    const std::size_t came = count_ahead(far);
    if (came == 0) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    dials += came;
    far.forget(ring.id(0));
    expect_one();
  }

  QCOMPARE(dials, std::size_t{4});
  QVERIFY(Clock::now() - begin >= 3500ms);
  verify_all_succeeded(ring.run(spec, some_inputs(2, 100'000)));
}

void DialAheadTest::a_hub_of_an_old_backup_is_followed_and_nothing_is_lost_or_left_data() {
  QTest::addColumn<std::vector<int>>("order");
  QTest::addColumn<bool>("directly");
  QTest::addColumn<bool>("averages");
  for (const bool averages : {false, true}) {
    const char* const then = averages ? "an attempt of that" : "no attempt";
    QTest::addRow("the same ring, %s", then) << std::vector{0, 1, 2, 3} << false << averages;
    QTest::addRow("another ring, %s", then) << std::vector{3, 1, 2, 0} << false << averages;
    QTest::addRow("the other schedule, %s", then) << std::vector{0, 1, 2, 3} << true << averages;
    QTest::addRow("before one joined, %s", then) << std::vector{2, 1, 0} << false << averages;
  }
}

// Its rounds count back, and it advises by what it knew then; later it has heard what it missed.
void DialAheadTest::a_hub_of_an_old_backup_is_followed_and_nothing_is_lost_or_left() {
  QFETCH(std::vector<int>, order);
  QFETCH(bool, directly);
  QFETCH(bool, averages);
  LoopbackRing ring(4);
  const Inputs inputs = some_inputs(4, 100'000);
  AllReduceSpec newest = ring.spec(WireFormat::kInt8Block);
  newest.round = OuterStep{9};
  verify_all_succeeded(ring.run(newest, inputs));
  prepare_all(ring, newest);
  await_all(ring);
  if (QTest::currentTestFailed()) return;
  const std::ptrdiff_t standing = open_files();

  AllReduceSpec old = newest;
  old.round = OuterStep{3};
  old.order.clear();
  for (const int rank : order) old.order.push_back(newest.order[static_cast<std::size_t>(rank)]);
  if (directly) old.schedule = Schedule::kDirect;
  for (int rank = 0; rank < 4; ++rank) ring.island(rank).inbox.forget_attempts();
  for (const int rank : order) ring.island(rank).ring->prepare(next_of(old));
  await_all(ring);
  if (averages) {
    const auto results = ring.run(old, inputs, order);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    const int connections = directly ? 3 : old.connections_per_edge;
    for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, connections);
  }
  newest.round = OuterStep{4};
  prepare_all(ring, newest);
  await_all(ring);

  QTRY_VERIFY_WITH_TIMEOUT(open_files() <= standing, std::chrono::milliseconds(test::kForEver).count());
  close_all_ports(ring);
  const auto results = ring.run(newest, inputs);
  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, newest.connections_per_edge);
}

void DialAheadTest::without_a_descriptor_left_nothing_is_dialled_ahead() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  rlimit limit{};
  QCOMPARE(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low{std::min<rlim_t>(limit.rlim_cur, 512), limit.rlim_max};
  QCOMPARE(::setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<UniqueFd> taken;
  for (UniqueFd one(::dup(0)); one; one = UniqueFd(::dup(0))) taken.push_back(std::move(one));

  prepare_all(ring, spec);
  await_all(ring);

  taken.clear();
  QCOMPARE(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  verify_all_succeeded(ring.run(spec, some_inputs(2, 100'000)));
}

// An island that only listens, with a thread that reads what comes, and one that dials it as it likes.
struct Padded {
  LoopbackRing ring{2};
  AttemptsUnderWay attempts;
  LinkPacing link;
  UploadShare upload{attempts, {}};
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);

  Padded() { ring.island(0).inbox.expect_ahead(Schedule::kRing, {{ring.id(1), 2}}, true); }
  std::vector<DialledAhead> dial(int count) {
    std::vector<DialledAhead> dialled;
    for (int i = 0; i < count; ++i) {
      const Deadline deadline = Deadline::after(test::kForEver);
      auto connection =
          TlsConnection::connect(spec.order[0].address, *ring.island(1).dial_context, ring.id(0), deadline).value();
      RingAheadBytes answer;
      if (!connection.write_all(encode(RingAhead{}), deadline).ok() || !connection.read_exact(answer, deadline).ok()) {
        qFatal("cannot dial ahead");
      }
      dialled.push_back({FragmentId{}, {ring.id(0)}, spec.order[0].address, std::move(connection)});
    }
    return dialled;
  }
  static void wait(const WindowOpener& opener) {
    std::vector<pollfd> polls;
    opener.append_polls(polls);
    (void)::poll(polls.data(), polls.size(), 10);
  }
};

void DialAheadTest::windows_are_opened_with_no_more_than_was_asked() {
  Padded padded;
  constexpr std::uint64_t kBytes = 20 << 20;
  WindowOpener opener(padded.dial(2), padded.link, padded.upload, kBytes);

  const auto begin = Clock::now();
  while (opener.turn(Clock::now())) Padded::wait(opener);

  QVERIFY(Clock::now() - begin < WindowOpener::kLongest);
  const std::vector<DialledAhead> opened = opener.release();
  QCOMPARE(opened.size(), std::size_t{2});
  std::uint64_t written = 0;
  for (const DialledAhead& one : opened) {
    QVERIFY(!one.connection.has_unsent());
    written += tcp_progress(one.connection.fd()).bytes_written();
  }
  QVERIFY(written > kBytes / 20);       // a slow machine's link is soon seen full
  QVERIFY(written < kBytes / 20 * 21);  // TLS, and the handshakes
}

void DialAheadTest::what_is_taken_in_the_midst_of_padding_serves() {
  Padded padded;
  WindowOpener opener(padded.dial(2), padded.link, padded.upload, kMostPaddingOfPeer);
  for (int i = 0; i < 3; ++i) QVERIFY(opener.turn(Clock::now()));

  std::vector<DialledAhead> taken = opener.release();
  const RingPayload payload = payload_of(padded.spec, 1000);
  RingHello hello = hello_of(padded.spec, 1, RingRole::kSends, payload);
  hello.connection_count = 2;
  for (DialledAhead& one : taken) {
    QVERIFY(one.connection.write_all(encode(hello), Deadline::after(test::kForEver)).ok());
    ++hello.connection_index;
  }

  hello.connection_index = 0;
  const auto edge = padded.ring.island(0).inbox.take(hello, Deadline::after(test::kForEver), padded.ring.abort);
  QVERIFY2(edge.ok(), edge.ok() ? "" : edge.error().message.c_str());
  QCOMPARE(edge->reused, 2);
}

void DialAheadTest::little_padding_waits_in_sockets_whose_link_is_slow() {
  constexpr std::uint64_t kRecord = 16 << 10;
  Padded padded;
  std::vector<DialledAhead> dialled = padded.dial(2);
  padded.ring.island(0).inbox.expect_ahead(Schedule::kRing, {}, false);  // it reads no more
  WindowOpener opener(std::move(dialled), padded.link, padded.upload, kMostPaddingOfPeer);

  const auto now = Clock::now();  // time stands still: nothing is known of the link
  for (int i = 0; i < 100; ++i) {
    QVERIFY(opener.turn(now));
    Padded::wait(opener);
  }

  for (const DialledAhead& one : opener.release()) {
    const TcpProgress progress = tcp_progress(one.connection.fd());
    QVERIFY(progress.bytes_written() > kRecord);
    QVERIFY2(progress.bytes_unsent < 3 * kRecord, qPrintable(QString::number(progress.bytes_unsent)));
  }
}

QTEST_GUILESS_MAIN(DialAheadTest)
#include "dial_ahead_test.moc"
