// What a connection may hear between two attempts, and be kept.
#include "net/collective/connection_pool.h"

#include <QtTest>
#include <thread>

#include "net/transport/peer_listener.h"
#include "net/transport/socket.h"
#include "tests/fakes/older_member.h"
#include "tests/fakes/test_run.h"
#include "tests/timing.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

RingReceipt some_receipt() {
  return {.round = OuterStep{1}, .attempt = Attempt{1}, .microseconds = 5, .bytes = kReceiptBytes};
}

Bytes bytes_of(const RingReceipt& receipt) {
  const RingReceiptMessage message = encode(receipt);
  return Bytes(message.begin(), message.end());
}

Deadline for_ever() { return Deadline::after(test::kForEver); }

}  // namespace

class ConnectionPoolTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void receipts_that_come_late_are_passed_over_data();
  void receipts_that_come_late_are_passed_over();
  void what_is_no_late_receipt_closes_the_connection_data();
  void what_is_no_late_receipt_closes_the_connection();
  void receipts_without_end_are_not_listened_to_for_ever();
  void a_connection_that_closes_behind_late_receipts_is_gone();

 private:
  // One that this island dialled, in the pool; its far end.
  TlsConnection keep(RingRole role = RingRole::kSends) {
    RingHello hello;
    hello.from = TestRun::island_id(1);
    hello.world_size = 2;
    hello.connection_count = 1;
    hello.bucket_numel = 1;
    auto near = TlsConnection::connect(address(), dial_context_, TestRun::island_id(0), for_ever());
    if (!near.ok() || !near->write_all(encode(hello), for_ever()).ok()) qFatal("cannot dial");
    auto edge = inbox_.take(hello, for_ever(), abort_);
    if (!edge.ok()) qFatal("%s", edge.error().message.c_str());
    std::vector<TlsConnection> kept;
    near_ = near->fd();
    kept.push_back(std::move(*near));
    pool_.give_back({TestRun::island_id(0), role}, address(), std::move(kept));
    return std::move(edge->connections.front());
  }
  Address address() const { return {"127.0.0.1", listener_->port()}; }
  int kept(RingRole role = RingRole::kSends) { return pool_.count({TestRun::island_id(0), role}, address()); }
  // All that the far end wrote is here.
  void wait_for_what_came(const TlsConnection& far) {
    QTRY_COMPARE(tcp_progress(far.fd()).bytes_queued, std::uint64_t{0});
  }

  TestRun run_;
  AbortSignal abort_;
  RingInbox inbox_;
  TlsContext dial_context_ = TlsContext::client(run_.island(1), kAlpnRing).value();
  std::unique_ptr<PeerListener> listener_ =
      PeerListener::start(
          {.bind = {"127.0.0.1", 0}}, TlsContext::island_server(run_.island(0)).value(),
          [](const PeerCertificate&) { return ok_status(); }, inbox_, [](TlsConnection, const AbortSignal&) {})
          .value();
  ConnectionPool pool_{dial_context_};
  int near_ = -1;
};

void ConnectionPoolTest::receipts_that_come_late_are_passed_over_data() {
  QTest::addColumn<QString>("who_asks");
  for (const char* who : {"count", "keep_warm", "take"}) QTest::newRow(who) << who;
}

void ConnectionPoolTest::receipts_that_come_late_are_passed_over() {
  QFETCH(const QString, who_asks);
  TlsConnection far = keep();
  for (std::uint64_t receipt = 0; receipt < kLateReceipts; ++receipt) {
    QVERIFY(far.write_all(encode(some_receipt()), for_ever()).ok());
  }
  wait_for_what_came(far);

  if (who_asks == "keep_warm") pool_.keep_warm();
  if (who_asks != "take") QCOMPARE(kept(), 1);

  auto taken = pool_.take({TestRun::island_id(0), RingRole::kSends}, address(), 1, for_ever(), abort_);
  QVERIFY(taken.ok());
  QCOMPARE(taken->reused, 1);
  QCOMPARE(taken->connections[0].fd(), near_);
  // Nor is anything of them left.
  std::byte next{};
  QCOMPARE(*taken->connections[0].try_read({&next, 1}), std::size_t{0});
}

void ConnectionPoolTest::what_is_no_late_receipt_closes_the_connection_data() {
  QTest::addColumn<int>("fault");
  QTest::newRow("one that says what no receipt does") << 0;
  QTest::newRow("half of one in a record") << 1;
  QTest::newRow("one from a sender") << 2;
  QTest::newRow("one where none was agreed upon") << 3;
  QTest::newRow("a byte") << 4;
  QTest::newRow("a keepalive") << 5;
}

void ConnectionPoolTest::what_is_no_late_receipt_closes_the_connection() {
  QFETCH(const int, fault);
  const RingRole role = fault == 2 ? RingRole::kReceives : RingRole::kSends;
  if (fault == 3) offer_no_receipts(dial_context_);
  TlsConnection far = keep(role);
  if (fault == 3) dial_context_ = TlsContext::client(run_.island(1), kAlpnRing).value();
  Bytes says = bytes_of(some_receipt());
  if (fault == 0) says[5] = std::byte{1};
  if (fault == 4) says = Bytes(1);
  if (fault == 1) says.resize(kRingReceiptBytes / 2);
  if (fault == 5) {
    std::array<std::byte, kRingFrameHeaderBytes> keepalive;
    encode(resting_keepalive(), keepalive);
    says.assign(keepalive.begin(), keepalive.end());
  }
  QCOMPARE(kept(role), 1);

  QVERIFY(far.write_all(says, for_ever()).ok());
  wait_for_what_came(far);

  QCOMPARE(kept(role), 0);
}

void ConnectionPoolTest::receipts_without_end_are_not_listened_to_for_ever() {
  TlsConnection far = keep();
  std::jthread flood([&] {
    const RingReceiptMessage receipt = encode(some_receipt());
    while (far.write_all(receipt, Deadline::after(20s)).ok()) {
    }
  });

  QTRY_COMPARE(kept(), 0);
}

void ConnectionPoolTest::a_connection_that_closes_behind_late_receipts_is_gone() {
  {
    TlsConnection far = keep();
    for (int receipt = 0; receipt < 3; ++receipt) QVERIFY(far.write_all(encode(some_receipt()), for_ever()).ok());
  }

  QTRY_COMPARE(kept(), 0);
}

QTEST_GUILESS_MAIN(ConnectionPoolTest)
#include "connection_pool_test.moc"
