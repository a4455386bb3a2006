// What one worker does with its connections, real ones: which of them gets a frame.
#include "net/collective/ring_worker.h"

#include <QtTest>
#include <thread>

#include "net/collective/ring_edges.h"
#include "net/transport/socket.h"
#include "tests/net/collective/fault_parts.h"

using namespace atl;
using namespace std::chrono_literals;

class RingWorkerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_frame_goes_to_the_connection_on_which_least_waits();
};

void RingWorkerTest::a_frame_goes_to_the_connection_on_which_least_waits() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.connections_per_edge = 3;
  const std::vector<float> values(2 * kBlockNumel, 1.0f);  // one own frame
  const RingPayload payload = payload_of(spec, std::ssize(values));
  RingEdges peers;
  std::jthread peer([&] { peers = ring.edges_of(1, spec, payload.numel); });
  RingEdges edges = ring.edges_of(0, spec, payload.numel);
  peer.join();
  // The peer reads nothing yet: what two of the connections take ends up waiting in this end's kernel.
  const Bytes junk(std::size_t{1} << 20);
  for (const std::size_t laden : {0u, 2u}) {
    while (edges.to_next[laden].try_write(junk).value() == junk.size()) {
    }
    QTRY_VERIFY(bytes_unsent(edges.to_next[laden].fd()) > 0);
  }
  QCOMPARE(bytes_unsent(edges.to_next[1].fd()), std::size_t{0});

  Bytes canonical(static_cast<std::size_t>(encoded_bytes(spec.wire, payload.numel)));
  const PartialSums sums(spec.wire, values, 0.5f, {}, canonical);
  const EdgeSchedule outbound(payload, 2, Rank{0});
  const EdgeSchedule inbound(payload, 2, Rank{1});
  FrameBoard board(payload, outbound, inbound, edges.to_next.size(), 1);
  const std::function<void(std::size_t, std::size_t)> on_final;
  const AttemptContext attempt{spec.round, spec.attempt, spec.fragment, ring.id(1), ring.id(1), outbound,
                               inbound,    canonical,    sums,          board,      on_final,   nullptr};
  std::deque<SendLane> lanes;
  RingWorker worker(0, attempt);
  for (TlsConnection& connection : edges.to_next) worker.add(lanes.emplace_back(connection, attempt));
  std::jthread thread([&] { worker.run(); });
  board.inbound_joined(1);

  const auto free = std::ranges::find_if(peers.from_previous, [&](const TlsConnection& connection) {
    return remote_address(connection.fd()).port == local_port(edges.to_next[1].fd());
  });
  QVERIFY(free != peers.from_previous.end());
  Bytes header(kRingFrameHeaderBytes);
  const Status came = free->read_exact(header, Deadline::after(20s));
  board.fail({{ErrorCode::kAborted, "the test ends"}, {}, {}});
  thread.join();
  QVERIFY2(came.ok(), came.ok() ? "" : came.error().message.c_str());
  const auto expected = encoded(frame_header(spec, outbound, 0));
  QVERIFY(std::ranges::equal(header, expected));
}

QTEST_APPLESS_MAIN(RingWorkerTest)
#include "ring_worker_test.moc"
