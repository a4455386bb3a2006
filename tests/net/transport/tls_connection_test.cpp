#include "net/transport/tls_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <QtTest>
#include <csignal>
#include <thread>

#include "net/transport/socket.h"
#include "tests/fakes/test_run.h"
#include "tests/timing.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

// A listening port on 127.0.0.1 and what it makes of the first connection.
class Port {
 public:
  Port() : socket_(listen_tcp({"127.0.0.1", 0}).value()) {}
  Address address() const { return {"127.0.0.1", local_port(socket_.get())}; }
  UniqueFd accept_tcp() {
    (void)wait_ready(socket_.get(), POLLIN, Deadline::after(5s), nullptr, "accept");
    return UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  Result<TlsConnection> accept(const TlsContext& context) {
    return TlsConnection::accept(accept_tcp(), context, Deadline::after(5s));
  }

 private:
  UniqueFd socket_;
};

struct Pair {
  Result<TlsConnection> dialled;
  Result<TlsConnection> accepted;
};

}  // namespace

class TlsConnectionTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void both_ends_know_each_other_by_name();
  void bytes_arrive_whole_whatever_the_buffers();
  void what_has_come_is_seen_and_stays_until_the_peer_closes();
  void an_orderly_end_is_no_error_to_read_some_and_one_to_read_exact();
  void a_reset_connection_is_a_lost_peer_and_no_signal();
  void an_island_at_the_wrong_address_is_a_certificate_error();
  void an_island_of_another_run_learns_why_it_is_refused();
  void a_port_where_nobody_listens_is_unreachable();
  void a_name_without_address_is_unreachable();
  void a_server_that_says_nothing_is_a_timeout();
  void a_read_ends_at_its_deadline();
  void abort_ends_a_read_at_once();

 private:
  Pair connect_pair();
  TestRun run_;
  std::optional<TlsContext> client_;
  std::optional<TlsContext> server_;
  Port port_;
};

void TlsConnectionTest::init() {
  client_.emplace(TlsContext::client(run_.island(1), kAlpnRing).value());
  server_.emplace(TlsContext::island_server(run_.island(2)).value());
}

Pair TlsConnectionTest::connect_pair() {
  Result<TlsConnection> accepted = Error{};
  std::jthread server([&] { accepted = port_.accept(*server_); });
  auto dialled = TlsConnection::connect(port_.address(), *client_, TestRun::island_id(2), Deadline::after(5s));
  server.join();
  return {std::move(dialled), std::move(accepted)};
}

void TlsConnectionTest::both_ends_know_each_other_by_name() {
  const Pair pair = connect_pair();

  QVERIFY(pair.dialled.ok() && pair.accepted.ok());
  QCOMPARE(pair.dialled->peer().value, TestRun::island_id(2).value);
  QCOMPARE(pair.accepted->peer().value, TestRun::island_id(1).value);
  QCOMPARE(pair.accepted->alpn(), kAlpnRingReceipts);
  QVERIFY(pair.dialled->description() == TestRun::island_id(2).value + " at " + to_string(port_.address()));
}

void TlsConnectionTest::bytes_arrive_whole_whatever_the_buffers() {
  Pair pair = connect_pair();
  Bytes sent(3'000'001);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7);
  Bytes received(sent.size());
  const int small = 4096;
  (void)::setsockopt(pair.dialled->fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);

  Status written;
  std::jthread writer([&] { written = pair.dialled->write_all(sent, Deadline::after(10s)); });
  const Status read = pair.accepted->read_exact(received, Deadline::after(10s));
  writer.join();

  QVERIFY(written.ok());
  QVERIFY(read.ok());
  QVERIFY(received == sent);
}

void TlsConnectionTest::what_has_come_is_seen_and_stays_until_the_peer_closes() {
  Pair pair = connect_pair();
  QVERIFY(!pair.accepted->has_come().value());

  const Bytes said(3, std::byte{7});
  QVERIFY(pair.dialled->write_all(said, Deadline::after(5s)).ok());
  QTRY_VERIFY(pair.accepted->has_come().value());
  QVERIFY(pair.accepted->has_come().value());
  Bytes heard(3);
  QVERIFY(pair.accepted->read_exact(heard, Deadline::after(5s)).ok());
  QCOMPARE(heard, said);
  QVERIFY(!pair.accepted->has_come().value());

  QVERIFY(pair.dialled->write_all(said, Deadline::after(5s)).ok());
  pair.dialled = Error{};  // closed
  QTRY_VERIFY(!pair.accepted->has_come().ok());
  QCOMPARE(pair.accepted->has_come().error().code, ErrorCode::kPeerLost);
}

void TlsConnectionTest::an_orderly_end_is_no_error_to_read_some_and_one_to_read_exact() {
  for (const bool exact : {false, true}) {
    Pair pair = connect_pair();
    pair.dialled = Error{};  // closed
    std::byte buffer[4];

    if (exact) {
      const Status status = pair.accepted->read_exact(buffer, Deadline::after(5s));
      QCOMPARE(status.error().code, ErrorCode::kPeerLost);
      QVERIFY(status.error().message.find(TestRun::island_id(1).value) != std::string::npos);
    } else {
      QCOMPARE(pair.accepted->read_some(buffer, Deadline::after(5s)).value(), std::size_t{0});
    }
  }
}

void TlsConnectionTest::a_reset_connection_is_a_lost_peer_and_no_signal() {
  std::signal(SIGPIPE, SIG_DFL);  // which would end this process
  Pair pair = connect_pair();
  const linger reset{1, 0};
  (void)::setsockopt(pair.accepted->fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  (void)::shutdown(pair.accepted->fd(), SHUT_WR);  // so that no goodbye is said
  pair.accepted = Error{};

  const Bytes bytes(100'000);
  Status status;
  for (int i = 0; i < 50 && status.ok(); ++i) status = pair.dialled->write_all(bytes, Deadline::after(5s));

  QVERIFY(!status.ok());
  QCOMPARE(status.error().code, ErrorCode::kPeerLost);
}

void TlsConnectionTest::an_island_at_the_wrong_address_is_a_certificate_error() {
  Result<TlsConnection> accepted = Error{};
  std::jthread server([&] { accepted = port_.accept(*server_); });

  const auto dialled = TlsConnection::connect(port_.address(), *client_, TestRun::island_id(7), Deadline::after(5s));

  QVERIFY(!dialled.ok());
  QCOMPARE(dialled.error().code, ErrorCode::kCertificate);
  for (const int number : {2, 7}) {
    QVERIFY(dialled.error().message.find(TestRun::island_id(number).value) != std::string::npos);
  }
}

void TlsConnectionTest::an_island_of_another_run_learns_why_it_is_refused() {
  // It trusts our authority, so that only the server refuses: the verdict comes after the client's handshake.
  TestRun other("fedcba9876543210");
  Identity stranger = other.island(1);
  stranger.authority_pem = run_.island(1).authority_pem;
  const TlsContext context = TlsContext::client(stranger, kAlpnRing).value();
  Result<TlsConnection> accepted = Error{};
  std::jthread server([&] { accepted = port_.accept(*server_); });

  auto dialled = TlsConnection::connect(port_.address(), context, TestRun::island_id(2), Deadline::after(5s));
  Status verdict = dialled.ok() ? ok_status() : Status(dialled.error());
  if (dialled.ok()) {
    std::byte byte;
    verdict = dialled->read_exact({&byte, 1}, Deadline::after(5s));
  }
  server.join();

  QVERIFY(!accepted.ok());
  QCOMPARE(accepted.error().code, ErrorCode::kCertificate);
  QVERIFY(!verdict.ok());
  QCOMPARE(verdict.error().code, ErrorCode::kCertificate);
}

void TlsConnectionTest::a_port_where_nobody_listens_is_unreachable() {
  Address nobody;
  {
    const Port closed;
    nobody = closed.address();
  }

  const auto dialled = TlsConnection::connect(nobody, *client_, TestRun::island_id(2), Deadline::after(5s));

  QCOMPARE(dialled.error().code, ErrorCode::kUnreachable);
  QVERIFY(dialled.error().message.find(to_string(nobody)) != std::string::npos);
}

void TlsConnectionTest::a_name_without_address_is_unreachable() {
  const auto dialled =
      TlsConnection::connect({"no..such..name", 1}, *client_, TestRun::island_id(2), Deadline::after(5s));

  QCOMPARE(dialled.error().code, ErrorCode::kUnreachable);
}

void TlsConnectionTest::a_server_that_says_nothing_is_a_timeout() {
  const auto begin = Clock::now();

  const auto dialled = TlsConnection::connect(port_.address(), *client_, TestRun::island_id(2), Deadline::after(200ms));
  const UniqueFd never_answered = port_.accept_tcp();

  QCOMPARE(dialled.error().code, ErrorCode::kTimeout);
  QVERIFY(Clock::now() - begin < test::kForEver);
}

void TlsConnectionTest::a_read_ends_at_its_deadline() {
  Pair pair = connect_pair();
  std::byte byte;

  const Status status = pair.dialled->read_exact({&byte, 1}, Deadline::after(100ms));

  QCOMPARE(status.error().code, ErrorCode::kTimeout);
}

void TlsConnectionTest::abort_ends_a_read_at_once() {
  Pair pair = connect_pair();
  AbortSignal abort;
  std::byte byte;
  Clock::time_point ended;
  Status status;

  std::jthread reader([&] {
    status = pair.dialled->read_exact({&byte, 1}, Deadline::after(2 * test::kForEver), &abort);
    ended = Clock::now();
  });
  std::this_thread::sleep_for(50ms);
  const auto raised = Clock::now();
  abort.raise("enough");
  reader.join();

  QVERIFY(ended - raised < test::kForEver);
  QCOMPARE(status.error().code, ErrorCode::kAborted);
}

QTEST_GUILESS_MAIN(TlsConnectionTest)
#include "tls_connection_test.moc"
