// Receipts in a ring: who gives them to whom, and that members with and without them make the same averages.
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <QtTest>
#include <thread>

#include "net/transport/socket.h"
#include "tests/net/collective/fault_parts.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

// Of this machine, by which it is reached like any other: between loopback addresses nobody gives receipts. Empty: it
// has none.
std::string own_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    const bool is_up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!is_up || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, NI_MAXHOST> host{};
    if (::getnameinfo(one->ifa_addr, sizeof(sockaddr_in), host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) == 0) {
      found = host.data();
    }
  }
  ::freeifaddrs(all);
  return found;
}

constexpr std::int64_t kNumel = 3'000'000;

// Those of `hidden` dial both their edges.
AllReduceSpec spec_of(LoopbackRing& ring, const std::vector<int>& hidden) {
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  for (const int rank : hidden) {
    spec.order[static_cast<std::size_t>(rank)].dials_previous = true;
    ring.island(rank).listener.reset();
  }
  return spec;
}

// Of all connections of an edge, which are left open.
std::vector<RingReceipt> receipts_of(std::vector<TlsConnection>& connections) {
  std::vector<RingReceipt> receipts;
  for (TlsConnection& connection : connections) {
    for (;;) {
      RingReceiptMessage message;
      const auto read = connection.try_read(message);
      if (!read.ok() || *read == 0) break;
      const auto receipt = decode_ring_receipt(ByteView(message).first(*read));
      if (!receipt.ok()) qFatal("something else came against the ring's direction");
      receipts.push_back(*receipt);
    }
  }
  return receipts;
}

}  // namespace

Q_DECLARE_METATYPE(std::vector<int>)

class RingReceiptsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_receiver_tells_what_came_data();
  void a_receiver_tells_what_came();
  void members_with_and_without_receipts_make_the_same_average_data();
  void members_with_and_without_receipts_make_the_same_average();
  void receipts_that_come_late_cost_no_connection_data();
  void receipts_that_come_late_cost_no_connection();

 private:
  const std::string host_ = own_address();
};

void RingReceiptsTest::a_receiver_tells_what_came_data() {
  QTest::addColumn<bool>("older");
  QTest::addColumn<bool>("local");
  QTest::addColumn<bool>("receiver_dials");
  QTest::addColumn<bool>("tells");
  QTest::newRow("by the newer protocol") << false << false << false << true;
  QTest::newRow("by the newer protocol, where it dials") << false << false << true << true;
  QTest::newRow("by the older one nothing") << true << false << false << false;
  QTest::newRow("by the older one nothing, where it dials") << true << false << true << false;
  QTest::newRow("nor on one machine") << false << true << false << false;
}

// The test plays rank 1, which sends to rank 0.
void RingReceiptsTest::a_receiver_tells_what_came() {
  QFETCH(const bool, older);
  QFETCH(const bool, local);
  QFETCH(const bool, receiver_dials);
  QFETCH(const bool, tells);
  if (host_.empty()) QSKIP("this machine has no address but its loopback's");
  // Whoever dials is the older one.
  const std::vector<int> older_ones = older ? std::vector{receiver_dials ? 0 : 1} : std::vector<int>{};
  LoopbackRing ring(2, older_ones, local ? "127.0.0.1" : host_);
  AllReduceSpec spec = spec_of(ring, receiver_dials ? std::vector{0} : std::vector<int>{});
  spec.connections_per_edge = 2;
  const EdgeSchedule edge(payload_of(spec, kNumel), 2, Rank{1});
  const Inputs inputs = some_inputs(2, kNumel);
  AbortSignal end;
  MemberResult result;
  std::jthread receiver([&] { result = ring.run_member(0, spec, inputs[0], end); });
  RingEdges edges = ring.edges_of(1, spec, kNumel);
  for (const TlsConnection& connection : edges.to_next) {
    QCOMPARE(connection.alpn(), older ? kAlpnRing : kAlpnRingReceipts);
  }

  std::vector<RingReceipt> receipts;
  std::uint32_t sequence = 0;
  // What may be sent before anything is received: the first half. At no more than one frame in 20 ms.
  for (; sequence < edge.frames() / 2 && sequence < 12; ++sequence) {
    const RingFrameHeader header = frame_header(spec, edge, sequence);
    TlsConnection& to_next = edges.to_next[sequence % 2];
    QVERIFY(to_next.write_all(encoded(header), Deadline::after(test::kForEver)).ok());
    QVERIFY(to_next.write_all(Bytes(header.length), Deadline::after(test::kForEver)).ok());
    std::this_thread::sleep_for(20ms);
    const auto came = receipts_of(edges.to_next);
    receipts.insert(receipts.end(), came.begin(), came.end());
  }
  if (tells && receipts.empty()) {
    QTRY_VERIFY(!(receipts = receipts_of(edges.to_next)).empty());
  }
  std::uint64_t sent = 0;
  for (const TlsConnection& connection : edges.to_next) sent += tcp_progress(connection.fd()).bytes_sent;
  end.raise("the test ends");
  receiver.join();

  QCOMPARE(!receipts.empty(), tells);
  QVERIFY(receipts.size() <= sent / kReceiptBytes);
  for (const RingReceipt& receipt : receipts) {
    QVERIFY(receipt.round == spec.round && receipt.attempt == spec.attempt && receipt.fragment == spec.fragment);
    QVERIFY(receipt.bytes >= kReceiptBytes && receipt.bytes <= sent);
  }
}

void RingReceiptsTest::members_with_and_without_receipts_make_the_same_average_data() {
  QTest::addColumn<int>("world_size");
  QTest::addColumn<std::vector<int>>("older");
  QTest::addColumn<std::vector<int>>("hidden");
  for (const std::vector<int>& hidden : {std::vector<int>{}, {0}, {1}}) {
    const int number = hidden.empty() ? -1 : hidden[0];
    QTest::addRow("two, hidden %d", number) << 2 << std::vector<int>{} << hidden;
    QTest::addRow("one of two older, hidden %d", number) << 2 << std::vector<int>{0} << hidden;
    QTest::addRow("the other of two older, hidden %d", number) << 2 << std::vector<int>{1} << hidden;
    QTest::addRow("both older, hidden %d", number) << 2 << std::vector<int>{0, 1} << hidden;
    QTest::addRow("one of three older, hidden %d", number) << 3 << std::vector<int>{2} << hidden;
    QTest::addRow("two of four older, hidden %d", number) << 4 << std::vector<int>{1, 2} << hidden;
  }
}

void RingReceiptsTest::members_with_and_without_receipts_make_the_same_average() {
  QFETCH(const int, world_size);
  QFETCH(const std::vector<int>, older);
  QFETCH(const std::vector<int>, hidden);
  const Inputs inputs = some_inputs(world_size, kNumel);
  LoopbackRing reference(world_size);
  const auto expected = reference.run(reference.spec(WireFormat::kInt8Block), inputs);
  verify_all_succeeded(expected);
  if (QTest::currentTestFailed()) return;

  LoopbackRing ring(world_size, older, host_.empty() ? "127.0.0.1" : host_);
  const auto results = ring.run(spec_of(ring, hidden), inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : results) QVERIFY(result.canonical == expected[0].canonical);
}

void RingReceiptsTest::receipts_that_come_late_cost_no_connection_data() {
  QTest::addColumn<std::vector<int>>("hidden");
  QTest::newRow("where the sender dialled") << std::vector<int>{};
  QTest::newRow("where one receiver did") << std::vector{1};
}

void RingReceiptsTest::receipts_that_come_late_cost_no_connection() {
  QFETCH(const std::vector<int>, hidden);
  if (host_.empty()) QSKIP("this machine has no address but its loopback's");
  LoopbackRing ring(2, {}, host_);
  AllReduceSpec spec = spec_of(ring, hidden);
  spec.connections_per_edge = 3;
  const Inputs inputs = some_inputs(2, kNumel);

  for (std::uint32_t attempt = 1; attempt <= 6; ++attempt) {
    spec.attempt = Attempt{attempt};
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, attempt == 1 ? 0 : 3);
  }
}

QTEST_GUILESS_MAIN(RingReceiptsTest)
#include "ring_receipts_test.moc"
