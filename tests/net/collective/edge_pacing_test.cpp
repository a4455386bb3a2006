// What attempts that move bytes at the same time share: the owner's limit on all of them, and the link to a peer.
#include "net/collective/edge_pacing.h"

#include <linux/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <QtTest>
#include <cmath>
#include <thread>

#include "tests/timing.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

// A TCP connection of this machine.
class Connection {
 public:
  Connection() {
    const UniqueFd listener = listen_tcp({"127.0.0.1", 0}).value();
    // Of a fixed size, also of what it accepts: while a queue grows more is acknowledged than taken.
    constexpr int kQueueBytes = 128 << 10;
    if (::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &kQueueBytes, sizeof kQueueBytes) != 0) qFatal("no queue");
    near_ = connect_tcp({"127.0.0.1", local_port(listener.get())}, Deadline::after(test::kForEver), nullptr, "test")
                .value();
    pollfd wait{listener.get(), POLLIN, 0};
    (void)::poll(&wait, 1, -1);
    far_ = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }

  int fd() const { return near_.get(); }
  // Bytes/s, which its congestion control has chosen.
  double pace() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) qFatal("no pace");
    return static_cast<double>(info.tcpi_pacing_rate);
  }
  // What its receiver would tell, by a clock that says so.
  RingReceipt receipt(std::uint32_t microseconds) const {
    return {.round = {},
            .attempt = {},
            .fragment = {},
            .microseconds = microseconds,
            .bytes = tcp_progress(far_.get()).bytes_received};
  }
  // Bytes/s; none when nothing holds it.
  std::optional<double> paced_to() const {
    std::uint64_t rate = 0;
    socklen_t size = sizeof rate;
    if (::getsockopt(fd(), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size) != 0) qFatal("no pacing rate");
    return rate == ~std::uint64_t{0} ? std::nullopt : std::optional(static_cast<double>(rate));
  }
  // The peer takes so many bytes; nothing is under way afterwards.
  void carry_all(std::size_t bytes) {
    const std::vector<char> buffer(std::size_t{16} << 10);
    for (std::size_t sent = 0; sent < bytes; sent += buffer.size()) {
      if (::send(fd(), buffer.data(), buffer.size(), MSG_NOSIGNAL) < 0) qFatal("cannot send");
      std::vector<char> rest = buffer;
      while (!rest.empty()) {
        const auto read = ::recv(far_.get(), rest.data(), rest.size(), 0);
        if (read > 0) rest.resize(rest.size() - static_cast<std::size_t>(read));
      }
    }
    while (tcp_progress(fd()).bytes_queued > 0) {
      pollfd wait{far_.get(), POLLIN, 0};
      (void)::poll(&wait, 1, 1);
    }
  }
  // The peer takes all that was sent.
  void take_all() {
    std::vector<char> buffer(std::size_t{64} << 10);
    while (tcp_progress(fd()).bytes_queued > 0) {
      pollfd wait{far_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 10) > 0) (void)::recv(far_.get(), buffer.data(), buffer.size(), 0);
    }
  }
  // The peer takes so many bytes, and the sender's queue is full again.
  void carry(std::size_t bytes) {
    fill();
    std::vector<char> buffer(std::size_t{64} << 10);
    while (bytes > 0) {
      const auto read = ::recv(far_.get(), buffer.data(), std::min(bytes, buffer.size()), 0);
      if (read > 0) {
        bytes -= static_cast<std::size_t>(read);
        continue;
      }
      fill();
      pollfd wait{far_.get(), POLLIN, 0};
      (void)::poll(&wait, 1, 1);
    }
    fill();
  }

 private:
  void fill() {
    const std::vector<char> buffer(std::size_t{64} << 10);
    while (::send(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }

  UniqueFd near_, far_;
};

}  // namespace

class EdgePacingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void attempts_at_once_share_the_owners_limit();
  void an_attempt_knows_whether_it_was_alone();
  void a_peer_on_this_machine_is_left_alone_without_a_limit();
  void attempts_to_one_peer_share_what_its_link_carries();
  void a_limit_that_changes_holds_from_the_next_look_on();
  void contributions_and_their_edge_have_half_each();
  void sockets_that_have_something_to_send_share_what_all_may();
  void a_link_whose_queue_overflows_delivers_its_rate();
  void what_was_sent_last_is_waited_for_until_it_is_taken();
  void bbr_begins_an_attempt_at_the_limit_that_its_socket_has_then_data();
  void bbr_begins_an_attempt_at_the_limit_that_its_socket_has_then();
  void acknowledgements_that_come_late_slow_nobody_whose_receiver_tells_data();
  void acknowledgements_that_come_late_slow_nobody_whose_receiver_tells();
  void what_is_told_of_another_links_socket_is_not_heard();
};

void EdgePacingTest::attempts_at_once_share_the_owners_limit() {
  AttemptsUnderWay attempts;
  LinkPacing link, other_link;
  Connection first, second, other;
  const auto now = Clock::now();
  const UploadShare upload(attempts, [] { return std::optional(1e6); });
  EdgePacing pacing(link, {first.fd(), second.fd()}, upload);
  QCOMPARE(first.paced_to(), std::optional(5e5));  // of each connection
  {
    const UploadShare other_upload(attempts, [] { return std::optional(1e6); });
    EdgePacing other_pacing(other_link, {other.fd()}, other_upload);

    pacing.look(now);

    QCOMPARE(other.paced_to(), std::optional(5e5));
    QCOMPARE(first.paced_to(), std::optional(2.5e5));
    QCOMPARE(second.paced_to(), std::optional(2.5e5));
  }

  pacing.look(now);

  QCOMPARE(first.paced_to(), std::optional(5e5));
}

void EdgePacingTest::an_attempt_knows_whether_it_was_alone() {
  AttemptsUnderWay attempts;
  const UploadShare first(attempts, {});
  QVERIFY(first.alone_so_far());
  {
    const UploadShare second(attempts, {});
    QVERIFY(!second.alone_so_far());
  }

  QVERIFY(!first.alone_so_far());  // it was not
  QVERIFY(!first.most_bytes_per_second());
}

void EdgePacingTest::a_peer_on_this_machine_is_left_alone_without_a_limit() {
  AttemptsUnderWay attempts;
  LinkPacing link;
  const Connection connection;
  const UploadShare upload(attempts, {});

  EdgePacing pacing(link, {connection.fd()}, upload);
  pacing.look(Clock::now());

  QVERIFY(!connection.paced_to());
}

// The link's rate is what both carry together; each has its part of it, and all of it once the other has ended.
// The owner may say another thing at any time; to a peer on this machine, too.
void EdgePacingTest::a_limit_that_changes_holds_from_the_next_look_on() {
  AttemptsUnderWay attempts;
  LinkPacing link;
  Connection connection;
  std::optional<double> most;
  const UploadShare upload(attempts, [&] { return most; });
  EdgePacing pacing(link, {connection.fd()}, upload);
  QVERIFY(!connection.paced_to());

  for (const std::optional<double> now : {std::optional(1e6), std::optional(3e5), std::optional<double>()}) {
    most = now;
    pacing.look(Clock::now());
    QCOMPARE(connection.paced_to(), now);
  }
}

void EdgePacingTest::sockets_that_have_something_to_send_share_what_all_may() {
  AttemptsUnderWay attempts;
  LinkPacing link;
  const Connection first, second, third;
  const UploadShare upload(attempts, [] { return std::optional(6e5); });
  EdgePacing pacing(link, {first.fd()}, upload);
  QCOMPARE(first.paced_to(), std::optional(6e5));

  pacing.add(second.fd());
  pacing.add(third.fd());
  for (const Connection* one : {&first, &second, &third}) QCOMPARE(one->paced_to(), std::optional(2e5));

  for (const auto& [busy, each] : {std::pair<std::size_t, double>{2, 3e5}, {1, 6e5}, {3, 2e5}, {0, 2e5}}) {
    pacing.look(Clock::now(), busy);
    for (const Connection* one : {&first, &second, &third}) QCOMPARE(one->paced_to(), std::optional(each));
  }
}

void EdgePacingTest::contributions_and_their_edge_have_half_each() {
  AttemptsUnderWay attempts;
  const UploadShare upload(attempts, [] { return std::optional(1e6); });
  {
    const UploadShare::Contributions to_one(upload), to_another(upload);
    QCOMPARE(upload.most_bytes_per_second(), std::optional(5e5));
  }
  QCOMPARE(upload.most_bytes_per_second(), std::optional(1e6));
}

void EdgePacingTest::attempts_to_one_peer_share_what_its_link_carries() {
  AttemptsUnderWay attempts;
  LinkPacing link;
  Connection first, second;
  const UploadShare upload(
      attempts, [] { return std::optional(1e12); });  // so that a peer on this machine is paced, but by the link
  auto now = Clock::now();
  constexpr std::size_t kBytes = 1'000'000;
  constexpr auto kInterval = 1s;
  for (Connection* connection : {&first, &second}) connection->carry(kBytes);  // the queues are full
  EdgePacing pacing(link, {first.fd()}, upload);
  {
    const UploadShare other_upload(attempts, [] { return std::optional(1e12); });
    EdgePacing other(link, {second.fd()}, other_upload);
    for (int i = 0; i < 20; ++i) {
      first.carry(kBytes);
      second.carry(kBytes);
      now += kInterval;
      pacing.look(now);
      other.look(now);
    }

    const double rate = link.link_rate().value_or(0);
    // A frame or two of what was acknowledged may be counted in the next interval.
    QVERIFY2(std::abs(rate / (2.0 * kBytes) - 1) < 0.2, qPrintable(QString::number(rate)));
    QCOMPARE(first.paced_to(), second.paced_to());
    QVERIFY(std::abs(2 * *first.paced_to() / rate - 1) < 0.3);  // it may be climbing
  }
  const double of_two = *first.paced_to();

  pacing.look(now);

  QVERIFY(std::abs(*first.paced_to() / of_two - 2) < 1e-3);
}

void EdgePacingTest::a_link_whose_queue_overflows_delivers_its_rate() {
  QCOMPARE(overflowing_rate(0.4, 4e6, 5e5), std::optional(1e7));
  QCOMPARE(overflowing_rate(0.4, 4e6, 2e5), std::nullopt);  // 5 %: of a link that loses by itself
  QCOMPARE(overflowing_rate(0.1, 1e5, 5e4), std::nullopt);  // too few to tell
  QCOMPARE(overflowing_rate(0.2, 4e3, 2e5), std::nullopt);  // the way stood still
}

void EdgePacingTest::what_was_sent_last_is_waited_for_until_it_is_taken() {
  Connection connection;
  connection.carry(1);  // more than the peer's kernel takes waits

  wait_until_taken(connection.fd(), Deadline::after(50ms));
  QVERIFY(tcp_progress(connection.fd()).bytes_queued > 0);  // the peer reads nothing

  std::jthread reads([&] { connection.take_all(); });
  wait_until_taken(connection.fd(), Deadline::after(20s));
  QCOMPARE(tcp_progress(connection.fd()).bytes_queued, std::uint64_t{0});
}

void EdgePacingTest::bbr_begins_an_attempt_at_the_limit_that_its_socket_has_then_data() {
  QTest::addColumn<bool>("added");
  QTest::newRow("from the beginning") << false;
  QTest::newRow("one more") << true;
}

// Of an attempt before, when the link was not known yet, it has a lower one.
void EdgePacingTest::bbr_begins_an_attempt_at_the_limit_that_its_socket_has_then() {
  QFETCH(const bool, added);
  Connection first, joins;
  constexpr std::string_view kBbr = "bbr";
  if (::setsockopt(joins.fd(), IPPROTO_TCP, TCP_CONGESTION, kBbr.data(), kBbr.size()) != 0) QSKIP("no BBR here");
  constexpr double kBefore = 1e6, kNow = 8e6;
  joins.carry_all(std::size_t{64} << 10);
  limit_pacing(joins.fd(), kBefore);
  joins.carry_all(std::size_t{64} << 10);
  QCOMPARE(joins.pace(), kBefore);
  AttemptsUnderWay attempts;
  const UploadShare upload(attempts, [] { return std::optional(1e12); });
  LinkPacing link;
  link.begin_with(kNow);

  EdgePacing pacing(link, {added ? first.fd() : joins.fd()}, upload);
  if (added) pacing.add(joins.fd());

  QVERIFY(joins.paced_to() > kBefore);
  QVERIFY2(joins.pace() > kBefore, qPrintable(QString::number(joins.pace())));
}

namespace {

// What is known of a link that carries 10 MB/s, once the acknowledgements have been held up for a while, so that in
// each interval those of 60 ms come.
class HeldUp {
 public:
  static constexpr double kRate = 10e6;  // bytes/s

  // Of its receiver, and of one that is another link's.
  bool tells = false, another_tells = false;

  double rate_after(int intervals) {
    connection_.carry(1'000'000);  // the queues are full
    another_.carry(1'000'000);
    EdgePacing pacing(link_, {connection_.fd()}, upload_);
    for (int interval = 0; interval < 10; ++interval) pass(pacing, 0.1);
    for (int interval = 0; interval < intervals; ++interval) pass(pacing, 0.06);
    return link_.link_rate().value_or(0);
  }

 private:
  void pass(EdgePacing& pacing, double seconds) {
    connection_.carry(static_cast<std::size_t>(kRate * seconds));
    another_.carry(100'000);
    microseconds_ += static_cast<std::uint32_t>(seconds * 1e6);
    if (another_tells) link_.came(another_.fd(), another_.receipt(microseconds_));
    if (tells) link_.came(connection_.fd(), connection_.receipt(microseconds_));
    now_ += 100ms;
    pacing.look(now_);
  }

  AttemptsUnderWay attempts_;
  const UploadShare upload_{attempts_, [] { return std::optional(1e12); }};
  LinkPacing link_;
  Connection connection_, another_;
  Clock::time_point now_ = Clock::now();
  std::uint32_t microseconds_ = ~std::uint32_t{0} - 3'000'000;  // it wraps
};

}  // namespace

void EdgePacingTest::acknowledgements_that_come_late_slow_nobody_whose_receiver_tells_data() {
  QTest::addColumn<bool>("tells");
  QTest::addColumn<double>("rate");
  QTest::newRow("it does") << true << HeldUp::kRate;
  QTest::newRow("it does not") << false << 0.7 * HeldUp::kRate;  // and what a raise brings
}

void EdgePacingTest::acknowledgements_that_come_late_slow_nobody_whose_receiver_tells() {
  QFETCH(const bool, tells);
  QFETCH(const double, rate);
  HeldUp link;
  link.tells = tells;

  const double known = link.rate_after(30);

  QVERIFY2(std::abs(known / rate - 1) < 0.2, qPrintable(QString::number(known)));
}

void EdgePacingTest::what_is_told_of_another_links_socket_is_not_heard() {
  HeldUp link;
  link.tells = link.another_tells = true;

  const double known = link.rate_after(30);

  QVERIFY2(std::abs(known / HeldUp::kRate - 1) < 0.2, qPrintable(QString::number(known)));
}

QTEST_APPLESS_MAIN(EdgePacingTest)
#include "edge_pacing_test.moc"
