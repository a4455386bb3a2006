#include "net/transport/peer_listener.h"

#include <poll.h>

#include <QtTest>
#include <atomic>
#include <deque>
#include <filesystem>
#include <thread>

#include "net/transport/socket.h"
#include "tests/fakes/patience.h"
#include "tests/fakes/test_run.h"
#include "tests/timing.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

RingHello hello_from(int number, int index = 0, int count = 1) {
  return RingHello{.from = TestRun::island_id(number),
                   .round = OuterStep{1},
                   .attempt = Attempt{1},
                   .from_rank = Rank{1},
                   .world_size = 3,
                   .connection_index = index,
                   .connection_count = count,
                   .wire = WireFormat::kFp32,
                   .payload_numel = 10,
                   .bucket_numel = 256};
}

std::ptrdiff_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

}  // namespace

class PeerListenerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void cleanup();
  void a_ring_connection_reaches_the_inbox_after_its_hello();
  void an_edge_comes_in_the_order_of_its_connections();
  void an_https_connection_reaches_the_handler();
  void who_is_not_in_the_roster_gets_no_further();
  void who_is_of_another_run_gets_no_further();
  void a_hello_in_anothers_name_is_refused();
  void garbage_instead_of_a_hello_is_refused();
  void slow_handshakes_do_not_hold_up_others();
  void a_slow_handshake_ends_at_its_deadline();
  void connections_of_older_attempts_are_dropped();
  void rounds_that_count_back_are_served_again();
  void a_peer_that_is_cut_loses_what_it_has_open();
  void stopping_ends_what_is_served();
  void eighty_idle_strangers_do_not_keep_a_member_out();
  void a_flood_that_never_ends_does_not_keep_a_member_out();
  void silent_connections_cost_no_threads();
  void one_member_cannot_hold_all_https_slots();
  void a_member_that_says_no_hello_loses_its_own_connections();
  void who_waits_for_a_place_gets_the_next();
  void who_was_removed_while_it_waited_is_not_served();

 private:
  void start(PeerListenerOptions options = {});
  Result<TlsConnection> dial(int number, std::string_view alpn = kAlpnRing);
  Status say_hello(TlsConnection& connection, const RingHello& hello);
  std::vector<UniqueFd> dial_in_silence(int count);
  bool closed_by_listener(TlsConnection& connection);
  Result<std::vector<TlsConnection>> take(const RingHello& expected, Deadline deadline);

  TestRun run_;
  AbortSignal abort_;
  std::optional<RingInbox> inbox_;
  std::atomic<int> https_served_{0};
  std::atomic<int> https_ended_{0};
  std::atomic<int> admissions_asked_{0};
  std::atomic<int> removed_{9};  // island
  std::unique_ptr<PeerListener> listener_;
};

void PeerListenerTest::start(PeerListenerOptions options) {
  options.bind = {"127.0.0.1", 0};
  const auto admit = [this](const PeerCertificate& peer) {
    ++admissions_asked_;
    if (peer.name != TestRun::island_id(removed_)) return ok_status();
    return Status(Error{ErrorCode::kCertificate, "not in the roster"});
  };
  const auto serve = [this](TlsConnection connection, const AbortSignal& abort) {
    ++https_served_;
    std::byte byte;
    (void)connection.read_some({&byte, 1}, Deadline::after(20s), &abort);
    ++https_ended_;
  };
  listener_ =
      PeerListener::start(options, TlsContext::island_server(run_.island(0)).value(), admit, *inbox_, serve).value();
}

void PeerListenerTest::init() {
  inbox_.emplace();
  https_served_ = https_ended_ = admissions_asked_ = 0;
  removed_ = 9;
  start();
}

void PeerListenerTest::cleanup() { listener_.reset(); }

Result<TlsConnection> PeerListenerTest::dial(int number, std::string_view alpn) {
  const TlsContext context = TlsContext::client(run_.island(number), alpn).value();
  return TlsConnection::connect({"127.0.0.1", listener_->port()}, context, TestRun::island_id(0), Deadline::after(5s));
}

Status PeerListenerTest::say_hello(TlsConnection& connection, const RingHello& hello) {
  return connection.write_all(encode(hello), Deadline::after(5s));
}

std::vector<UniqueFd> PeerListenerTest::dial_in_silence(int count) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < count; ++i) {
    silent.push_back(connect_tcp({"127.0.0.1", listener_->port()}, Deadline::after(5s), nullptr, "dial").value());
  }
  return silent;
}

bool PeerListenerTest::closed_by_listener(TlsConnection& connection) {
  std::byte byte;
  const auto read = connection.read_some({&byte, 1}, Deadline::after(5s));
  return read.ok() ? *read == 0 : read.error().code != ErrorCode::kTimeout;
}

Result<std::vector<TlsConnection>> PeerListenerTest::take(const RingHello& expected, Deadline deadline) {
  ATOLL_ASSIGN_OR_RETURN(RingInbox::Edge edge, inbox_->take(expected, deadline, abort_));
  return std::move(edge.connections);
}

void PeerListenerTest::a_ring_connection_reaches_the_inbox_after_its_hello() {
  auto connection = dial(1);
  QVERIFY(say_hello(*connection, hello_from(1)).ok());

  auto taken = take(hello_from(1), Deadline::after(5s));

  QVERIFY(taken.ok());
  QVERIFY(connection->write_all(as_bytes("hi"), Deadline::after(5s)).ok());
  Bytes received(2);
  QVERIFY(taken->front().read_exact(received, Deadline::after(5s)).ok());
  QCOMPARE(to_string(received), std::string("hi"));
}

void PeerListenerTest::an_edge_comes_in_the_order_of_its_connections() {
  std::vector<TlsConnection> dialled;
  for (const int index : {2, 0, 1}) {
    dialled.push_back(dial(1).value());
    QVERIFY(say_hello(dialled.back(), hello_from(1, index, 3)).ok());
    const std::byte mark{static_cast<unsigned char>(index)};
    QVERIFY(dialled.back().write_all({&mark, 1}, Deadline::after(5s)).ok());
  }

  auto edge = take(hello_from(1, 0, 3), Deadline::after(5s));

  QVERIFY(edge.ok());
  for (std::size_t index = 0; index < 3; ++index) {
    std::byte mark{};
    QVERIFY((*edge)[index].read_exact({&mark, 1}, Deadline::after(5s)).ok());
    QCOMPARE(static_cast<std::size_t>(mark), index);
  }
}

void PeerListenerTest::an_https_connection_reaches_the_handler() {
  auto connection = dial(1, kAlpnHttp);

  QTRY_COMPARE(https_served_.load(), 1);
}

void PeerListenerTest::who_is_not_in_the_roster_gets_no_further() {
  auto connection = dial(9);
  (void)say_hello(*connection, hello_from(9));

  QVERIFY(closed_by_listener(*connection));
  QCOMPARE(take(hello_from(9), Deadline::after(50ms)).error().code, ErrorCode::kTimeout);
}

void PeerListenerTest::who_is_of_another_run_gets_no_further() {
  TestRun other("fedcba9876543210");
  Identity stranger = other.island(1);
  stranger.authority_pem = run_.island(1).authority_pem;
  const TlsContext context = TlsContext::client(stranger, kAlpnRing).value();

  auto connection =
      TlsConnection::connect({"127.0.0.1", listener_->port()}, context, TestRun::island_id(0), Deadline::after(5s));
  if (connection.ok()) {
    (void)say_hello(*connection, hello_from(1));
    QVERIFY(closed_by_listener(*connection));
  }

  QCOMPARE(take(hello_from(1), Deadline::after(50ms)).error().code, ErrorCode::kTimeout);
}

void PeerListenerTest::a_hello_in_anothers_name_is_refused() {
  auto connection = dial(1);
  QVERIFY(say_hello(*connection, hello_from(2)).ok());

  QVERIFY(closed_by_listener(*connection));
  QCOMPARE(take(hello_from(2), Deadline::after(50ms)).error().code, ErrorCode::kTimeout);
}

void PeerListenerTest::garbage_instead_of_a_hello_is_refused() {
  auto connection = dial(1);
  QVERIFY(connection->write_all(as_bytes("GET / HTTP/1.1\r\n\r\n"), Deadline::after(5s)).ok());

  QVERIFY(closed_by_listener(*connection));
}

void PeerListenerTest::slow_handshakes_do_not_hold_up_others() {
  listener_.reset();
  start({.handshake_timeout = test::kForEver});
  const auto silent = dial_in_silence(20);

  auto connection = dial(1);
  QVERIFY(say_hello(*connection, hello_from(1)).ok());
  QVERIFY(take(hello_from(1), Deadline::after(20s)).ok());

  // Before any of the others was done with: none of them was in its way by ending.
  for (const UniqueFd& fd : silent) {
    QVERIFY(!wait_ready(fd.get(), POLLIN, Deadline::after(0s), nullptr, "ask whether it ended").ok());
  }
}

void PeerListenerTest::a_slow_handshake_ends_at_its_deadline() {
  listener_.reset();
  start({.handshake_timeout = 2s});
  const UniqueFd silent = connect_tcp({"127.0.0.1", listener_->port()}, Deadline::after(5s), nullptr, "dial").value();
  auto without_hello = dial(1);

  QVERIFY(closed_by_listener(*without_hello));
  QVERIFY(wait_ready(silent.get(), POLLIN, Deadline::after(20s), nullptr, "wait for the end").ok());
}

void PeerListenerTest::connections_of_older_attempts_are_dropped() {
  RingHello newer = hello_from(1);
  newer.attempt = Attempt{2};
  auto late = dial(1);
  QVERIFY(say_hello(*late, hello_from(1)).ok());
  std::this_thread::sleep_for(50ms);  // until it has arrived

  QCOMPARE(take(newer, Deadline::after(50ms)).error().code, ErrorCode::kTimeout);

  QVERIFY(closed_by_listener(*late));
}

// After a rollback.
void PeerListenerTest::rounds_that_count_back_are_served_again() {
  RingHello later = hello_from(1);
  later.attempt = Attempt{7};
  auto left_over = dial(1);
  QVERIFY(say_hello(*left_over, later).ok());
  QVERIFY(take(later, Deadline::after(20s)).ok());

  inbox_->forget_attempts();
  auto again = dial(1);
  QVERIFY(say_hello(*again, hello_from(1)).ok());
  std::this_thread::sleep_for(50ms);  // until it has arrived, and waits

  QVERIFY(take(hello_from(1), Deadline::after(20s)).ok());
}

void PeerListenerTest::a_peer_that_is_cut_loses_what_it_has_open() {
  auto cut = dial(1, kAlpnHttp), stays = dial(2, kAlpnHttp);
  QTRY_COMPARE(https_served_.load(), 2);
  auto edge = dial(1);
  QVERIFY(say_hello(*edge, hello_from(1)).ok());
  auto parked = take(hello_from(1), Deadline::after(20s));
  QVERIFY(parked.ok());
  std::vector<RingInbox::Parked> parking;
  parking.push_back({std::move(parked->front()), {}});
  inbox_->park(FragmentId{}, std::move(parking));

  listener_->cut(TestRun::island_id(1));
  inbox_->forget(TestRun::island_id(1));

  QVERIFY(closed_by_listener(*cut));
  QVERIFY(closed_by_listener(*edge));
  QTRY_COMPARE(https_ended_.load(), 1);  // the other's goes on
}

void PeerListenerTest::stopping_ends_what_is_served() {
  auto https = dial(1, kAlpnHttp);
  auto pending = dial(2);
  QTRY_COMPARE(https_served_.load(), 1);
  const auto begin = Clock::now();

  listener_.reset();

  QVERIFY(Clock::now() - begin < 20s);  // for which serve() would wait
  QCOMPARE(https_ended_.load(), 1);
}

void PeerListenerTest::eighty_idle_strangers_do_not_keep_a_member_out() {
  const auto silent = dial_in_silence(80);

  auto connection = dial(1);  // from the same address
  QVERIFY(connection.ok());
  QVERIFY(say_hello(*connection, hello_from(1)).ok());

  QVERIFY(take(hello_from(1), Deadline::after(5s)).ok());
}

void PeerListenerTest::a_flood_that_never_ends_does_not_keep_a_member_out() {
  const std::jthread flood([this](const std::stop_token& stop) {
    std::deque<UniqueFd> open;
    for (int i = 0; !stop.stop_requested(); ++i) {
      auto socket = connect_tcp({"127.0.0.1", listener_->port()}, Deadline::after(5s), nullptr, "flood");
      if (socket.ok() && i % 2 == 0) (void)::send(socket->get(), "\x16\x03\x01", 3, MSG_NOSIGNAL);
      if (socket.ok()) open.push_back(std::move(*socket));
      if (open.size() > 300) open.pop_front();
      std::this_thread::sleep_for(1ms);
    }
  });
  std::this_thread::sleep_for(300ms);

  for (std::uint32_t attempt = 1; attempt <= 20; ++attempt) {
    RingHello hello = hello_from(1);
    hello.attempt = Attempt{attempt};
    auto connection = dial(1);
    QVERIFY2(connection.ok(), connection.ok() ? "" : connection.error().message.c_str());
    QVERIFY(say_hello(*connection, hello).ok());
    QVERIFY(take(hello, Deadline::after(5s)).ok());
  }
}

void PeerListenerTest::silent_connections_cost_no_threads() {
  const auto before = threads_of_this_process();

  const auto silent = dial_in_silence(60);
  auto connection = dial(1);  // accepted after all of them
  QVERIFY(say_hello(*connection, hello_from(1)).ok());
  QVERIFY(take(hello_from(1), Deadline::after(5s)).ok());

  QCOMPARE(threads_of_this_process(), before);
}

void PeerListenerTest::one_member_cannot_hold_all_https_slots() {
  std::vector<TlsConnection> greedy;
  for (int i = 0; i < 20; ++i) greedy.push_back(dial(1, kAlpnHttp).value());
  const int most = static_cast<int>(ServingSizes().places_of_member);
  QTRY_COMPARE(https_served_.load(), most);

  const auto other = dial(2, kAlpnHttp);

  QTRY_COMPARE(https_served_.load(), most + 1);
  QCOMPARE(https_ended_.load(), 0);
}

void PeerListenerTest::a_member_that_says_no_hello_loses_its_own_connections() {
  std::vector<TlsConnection> greedy;
  auto other = dial(2);
  for (std::size_t i = 0; i <= PeerListenerOptions().connections.of_member; ++i) greedy.push_back(dial(1).value());

  QVERIFY(closed_by_listener(greedy.front()));
  QVERIFY(say_hello(greedy.back(), hello_from(1)).ok());
  QVERIFY(take(hello_from(1), Deadline::after(5s)).ok());
  QVERIFY(say_hello(*other, hello_from(2)).ok());
  QVERIFY(take(hello_from(2), Deadline::after(5s)).ok());
}

void PeerListenerTest::who_waits_for_a_place_gets_the_next() {
  listener_.reset();
  start({.serving = {.places = 1}});
  auto first = dial(1, kAlpnHttp);
  QTRY_COMPARE(https_served_.load(), 1);
  auto second = dial(2, kAlpnHttp);

  QVERIFY(first->write_all(as_bytes("x"), Deadline::after(5s)).ok());

  QTRY_COMPARE(https_served_.load(), 2);
  QCOMPARE(https_ended_.load(), 1);
}

void PeerListenerTest::who_was_removed_while_it_waited_is_not_served() {
  listener_.reset();
  start({.serving = {.places = 1}});
  auto first = dial(1, kAlpnHttp);
  QTRY_COMPARE(https_served_.load(), 1);
  auto second = dial(2, kAlpnHttp);
  QTRY_VERIFY(admissions_asked_ >= 3);  // twice for the first: before and after its wait of no time

  removed_ = 2;
  QVERIFY(first->write_all(as_bytes("x"), Deadline::after(5s)).ok());

  QVERIFY(closed_by_listener(*second));
  QCOMPARE(https_served_.load(), 1);
}

QTEST_GUILESS_MAIN(PeerListenerTest)
#include "peer_listener_test.moc"
