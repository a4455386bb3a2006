#include "net/collective/ring_schedule.h"

#include <QtTest>
#include <vector>

using namespace atl;

Q_DECLARE_METATYPE(atl::WireFormat)

class RingScheduleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void sub_chunks_cover_the_payload_in_whole_blocks_data() { add_rows(); }
  void sub_chunks_cover_the_payload_in_whole_blocks();
  void what_is_sent_after_the_own_frames_is_what_was_received_data() { add_rows(); }
  void what_is_sent_after_the_own_frames_is_what_was_received();
  void each_edge_carries_all_but_two_chunks_twice();

 private:
  static void add_rows();
};

void RingScheduleTest::add_rows() {
  QTest::addColumn<WireFormat>("wire");
  QTest::addColumn<int>("world_size");
  QTest::addColumn<qint64>("numel");
  for (const int world_size : {2, 3, 7}) {
    for (const qint64 numel : {0, 1, 256, 257, 1'000'000, 10'000'019}) {
      QTest::addRow("fp32 N=%d numel=%lld", world_size, numel) << WireFormat::kFp32 << world_size << numel;
      QTest::addRow("int8 N=%d numel=%lld", world_size, numel) << WireFormat::kInt8Block << world_size << numel;
    }
  }
}

void RingScheduleTest::sub_chunks_cover_the_payload_in_whole_blocks() {
  QFETCH(WireFormat, wire);
  QFETCH(int, world_size);
  QFETCH(qint64, numel);

  // The own frames of all ranks are a partition of the payload.
  std::vector<RingSubChunk> all;
  for (int rank = 0; rank < world_size; ++rank) {
    const EdgeSchedule edge(wire, numel, world_size, Rank{rank});
    for (std::uint32_t i = 0; i < edge.own_frames(); ++i) all.push_back(edge.frame(i));
  }

  std::int64_t value = 0;
  std::uint64_t byte = 0;
  for (const RingSubChunk& sub_chunk : all) {
    QCOMPARE(sub_chunk.first_value, value);
    QCOMPARE(sub_chunk.first_byte, byte);
    QCOMPARE(value % kBlockNumel, 0);
    QVERIFY(sub_chunk.numel > 0 && sub_chunk.bytes <= kSubChunkBytes);
    value += sub_chunk.numel;
    byte += sub_chunk.bytes;
  }
  QCOMPARE(value, numel);
  QCOMPARE(byte, static_cast<std::uint64_t>(encoded_bytes(wire, numel)));
}

void RingScheduleTest::what_is_sent_after_the_own_frames_is_what_was_received() {
  QFETCH(WireFormat, wire);
  QFETCH(int, world_size);
  QFETCH(qint64, numel);

  for (int rank = 0; rank < world_size; ++rank) {
    const EdgeSchedule out(wire, numel, world_size, Rank{rank});
    const EdgeSchedule in(wire, numel, world_size, Rank{(rank + world_size - 1) % world_size});
    for (std::uint32_t i = out.own_frames(); i < out.frames(); ++i) {
      const RingSubChunk sent = out.frame(i);
      const RingSubChunk received = in.frame(i - out.own_frames());
      QCOMPARE(sent.first_value, received.first_value);
      QCOMPARE(sent.numel, received.numel);
    }
  }
}

void RingScheduleTest::each_edge_carries_all_but_two_chunks_twice() {
  const int world_size = 5;
  const std::int64_t numel = 5 * 1'000 * kBlockNumel;
  const EdgeSchedule edge(WireFormat::kInt8Block, numel, world_size, Rank{3});

  std::int64_t values[2] = {0, 0};
  for (std::uint32_t i = 0; i < edge.frames(); ++i) {
    const RingSubChunk sub_chunk = edge.frame(i);
    values[static_cast<int>(sub_chunk.phase)] += sub_chunk.numel;
  }

  QCOMPARE(values[0], numel / world_size * (world_size - 1));
  QCOMPARE(values[1], numel / world_size * (world_size - 1));
}

QTEST_APPLESS_MAIN(RingScheduleTest)
#include "ring_schedule_test.moc"
