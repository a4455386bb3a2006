// What one worker does with its connections, real ones: which of them gets a frame.
#include "net/collective/edge_pacing.h"
#include "net/collective/ring_worker.h"

#include <QtTest>
#include <deque>
#include <thread>

#include "net/collective/ring_edges.h"
#include "net/transport/socket.h"
#include "tests/net/collective/fault_parts.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

// What rank 0 of two has: one own frame, and connections to the other, which reads nothing.
struct Sender {
  LoopbackRing ring{2};
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  std::vector<float> values = std::vector<float>(2 * kBlockNumel, 1.0f);
  RingPayload payload = payload_of(spec, std::ssize(values));
  RingEdges edges, of_peer;
  Bytes canonical = Bytes(static_cast<std::size_t>(encoded_bytes(spec.wire, payload.numel)));
  PartialSums sums{spec.wire, values, 0.5f, {}, canonical};
  EdgeSchedule outbound{payload, 2, Rank{0}};
  EdgeSchedule inbound{payload, 2, Rank{1}};
  FrameBoard board;
  std::function<void(std::size_t, std::size_t)> on_final;
  LinkPacing link;
  AttemptContext attempt{spec.round, spec.attempt, spec.fragment, ring.id(1), ring.id(1), outbound, inbound,
                         canonical,  sums,         board,         on_final,   nullptr,    link};

  Sender(int connections, std::size_t workers)
      : board(payload, outbound, inbound, static_cast<std::size_t>(connections), workers) {
    spec.connections_per_edge = connections;
    std::jthread peer([&] { of_peer = ring.edges_of(1, spec, payload.numel); });
    edges = ring.edges_of(0, spec, payload.numel);
  }
  // More than the peer's kernel takes waits in this end's.
  void lade(std::size_t connection) {
    const Bytes junk(std::size_t{1} << 20);
    while (edges.to_next[connection].try_write(junk).value() == junk.size()) {
    }
    QTRY_VERIFY(bytes_unsent(edges.to_next[connection].fd()) > 0);
  }
  bool comes_by(std::size_t connection) {
    for (TlsConnection& inbound_end : of_peer.from_previous) {
      if (remote_address(inbound_end.fd()).port != local_port(edges.to_next[connection].fd())) continue;
      Bytes header(kRingFrameHeaderBytes);
      return inbound_end.read_exact(header, Deadline::after(20s)).ok() &&
             std::ranges::equal(header, encoded(frame_header(spec, outbound, 0)));
    }
    return false;
  }
};

}  // namespace

class RingWorkerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_frame_goes_to_the_connection_on_which_least_waits();
  void a_laden_connection_leaves_a_frame_to_another_worker();
};

void RingWorkerTest::a_frame_goes_to_the_connection_on_which_least_waits() {
  Sender sender(3, 1);
  for (const std::size_t laden : {0u, 2u}) sender.lade(laden);
  std::deque<SendLane> lanes;
  RingWorker worker(0, sender.attempt);
  for (TlsConnection& connection : sender.edges.to_next) worker.add(lanes.emplace_back(connection, sender.attempt));
  std::jthread thread([&] { worker.run(); });

  sender.board.inbound_joined(1);

  const bool came = sender.comes_by(1);
  sender.board.fail({{ErrorCode::kAborted, "the test ends"}, {}, {}});
  QVERIFY(came);
}

void RingWorkerTest::a_laden_connection_leaves_a_frame_to_another_worker() {
  Sender sender(2, 2);
  sender.lade(0);
  SendLane laden(sender.edges.to_next[0], sender.attempt);
  SendLane other(sender.edges.to_next[1], sender.attempt);
  QVERIFY(laden.unsent() > 0 && other.unsent() == 0);
  QVERIFY(sender.board.may_sleep(1, sender.board.version(), other.unsent()));
  sender.board.inbound_joined(1);

  const auto moved = laden.pump();

  QVERIFY(moved.ok() && *moved == 0 && sender.board.has_to_send());
  sender.board.woke(1);
  QVERIFY(other.pump().ok() && !sender.board.has_to_send());
  QVERIFY(sender.comes_by(1));
}

QTEST_APPLESS_MAIN(RingWorkerTest)
#include "ring_worker_test.moc"
