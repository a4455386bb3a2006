#include "net/collective/ring_schedule.h"

#include <QtTest>
#include <set>
#include <vector>

using namespace atl;

Q_DECLARE_METATYPE(atl::WireFormat)

namespace {
constexpr std::int64_t kBucket = 4'000 * kBlockNumel;
}

class RingScheduleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void sub_chunks_cover_the_payload_in_whole_blocks_data() { add_rows(); }
  void sub_chunks_cover_the_payload_in_whole_blocks();
  void owners_share_the_payload_as_the_ring_leaves_it_to_them_data() { add_rows(); }
  void owners_share_the_payload_as_the_ring_leaves_it_to_them();
  void a_small_chunk_is_cut_finer();
  void what_is_not_own_was_received_once_data() { add_rows(); }
  void what_is_not_own_was_received_once();
  void a_place_is_overwritten_only_by_the_result_of_what_was_sent_from_it_data() { add_rows(); }
  void a_place_is_overwritten_only_by_the_result_of_what_was_sent_from_it();
  void each_edge_carries_all_but_two_chunks_twice();
  void final_buckets_do_not_travel();

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
      QTest::addRow("int4 N=%d numel=%lld", world_size, numel) << WireFormat::kInt4E3m0 << world_size << numel;
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
    const EdgeSchedule edge({wire, numel, kBucket, {}}, world_size, Rank{rank});
    for (auto i = edge.next_own(0); i < edge.frames(); i = edge.next_own(i + 1)) all.push_back(edge.frame(i));
  }
  std::ranges::sort(all, {}, &RingSubChunk::first_value);

  std::int64_t value = 0;
  std::uint64_t byte = 0;
  for (const RingSubChunk& sub_chunk : all) {
    QCOMPARE(sub_chunk.first_value, value);
    QCOMPARE(sub_chunk.first_byte, byte);
    QCOMPARE(value % block_numel(wire), 0);
    QVERIFY(sub_chunk.numel > 0 && sub_chunk.bytes <= kSubChunkBytes);
    value += sub_chunk.numel;
    byte += sub_chunk.bytes;
  }
  QCOMPARE(value, numel);
  QCOMPARE(byte, static_cast<std::uint64_t>(encoded_bytes(wire, numel)));
}

// What a rank owns the sum of is what it sends as the first of its all-gather.
void RingScheduleTest::owners_share_the_payload_as_the_ring_leaves_it_to_them() {
  QFETCH(WireFormat, wire);
  QFETCH(int, world_size);
  QFETCH(qint64, numel);
  const RingPayload payload{wire, numel, kBucket, {false, true}};
  if (payload.buckets() > 2) return;
  for (int rank = 0; rank < world_size; ++rank) {
    const EdgeSchedule outbound(payload, world_size, Rank{rank});
    const EdgeSchedule inbound(payload, world_size, Rank{(rank + world_size - 1) % world_size});
    std::set<std::uint64_t> owned, sent_first;
    for (const RingSubChunk& sub_chunk : owned_sub_chunks(payload, world_size, Rank{rank})) {
      QVERIFY(owned.insert(sub_chunk.first_byte).second);
    }
    for (std::uint32_t i = 0; i < inbound.frames(); ++i) {
      const auto forwarded = inbound.forwarded(i, outbound);
      const bool is_sum = inbound.frame(i).phase == RingPhase::kReduceScatter && inbound.makes_final(i);
      if (is_sum && forwarded) sent_first.insert(outbound.frame(*forwarded).first_byte);
    }
    if (!sums_hop_by_hop(wire)) {
      for (auto i = outbound.next_own(0); i < outbound.frames(); i = outbound.next_own(i + 1)) {
        sent_first.insert(outbound.frame(i).first_byte);
      }
    }
    QVERIFY(owned == sent_first);
  }
}

void RingScheduleTest::a_small_chunk_is_cut_finer() {
  const auto bytes_of_first = [](std::int64_t numel) {
    return sub_chunk_at(WireFormat::kInt8Block, 0, numel, 0).bytes;
  };

  QVERIFY(sub_chunk_count(WireFormat::kInt8Block, 400'000) >= 32);
  QVERIFY(sub_chunk_count(WireFormat::kInt8Block, 100'000) >= 12);
  QVERIFY(bytes_of_first(100'000) > kLeastSubChunkBytes * 9 / 10);  // no finer: each has a header
  QVERIFY(bytes_of_first(100'000'000) > kSubChunkBytes * 9 / 10);
}

void RingScheduleTest::what_is_not_own_was_received_once() {
  QFETCH(WireFormat, wire);
  QFETCH(int, world_size);
  QFETCH(qint64, numel);
  const RingPayload payload{wire, numel, kBucket, {}};

  for (int rank = 0; rank < world_size; ++rank) {
    const EdgeSchedule out(payload, world_size, Rank{rank});
    const EdgeSchedule in(payload, world_size, Rank{(rank + world_size - 1) % world_size});
    std::vector<int> times(out.frames(), 0);
    for (auto i = out.next_own(0); i < out.frames(); i = out.next_own(i + 1)) ++times[i];
    for (std::uint32_t i = 0; i < in.frames(); ++i) {
      const auto forwarded = in.forwarded(i, out);
      if (!forwarded) continue;
      ++times[*forwarded];
      QCOMPARE(out.frame(*forwarded).first_value, in.frame(i).first_value);
      QCOMPARE(out.frame(*forwarded).bytes, in.frame(i).bytes);
    }
    for (const int count : times) QCOMPARE(count, 1);
  }
}

void RingScheduleTest::a_place_is_overwritten_only_by_the_result_of_what_was_sent_from_it() {
  QFETCH(WireFormat, wire);
  QFETCH(int, world_size);
  QFETCH(qint64, numel);
  const RingPayload payload{wire, numel, kBucket, {}};

  for (int rank = 0; rank < world_size; ++rank) {
    const EdgeSchedule out(payload, world_size, Rank{rank});
    const EdgeSchedule in(payload, world_size, Rank{(rank + world_size - 1) % world_size});
    std::set<std::int64_t> written;
    std::int64_t final_values = 0;
    for (std::uint32_t i = 0; i < in.frames(); ++i) {
      const RingSubChunk sub_chunk = in.frame(i);
      const auto before = in.replaces(i, out);
      if (before) {
        QCOMPARE(out.frame(*before).first_value, sub_chunk.first_value);
        QCOMPARE(out.frame(*before).phase, RingPhase::kReduceScatter);
      } else {
        QVERIFY(written.insert(sub_chunk.first_value).second);
        // In formats that are not summed hop by hop sums come alone, into places of which nothing was sent.
        QCOMPARE(sub_chunk.phase, sums_hop_by_hop(wire) ? RingPhase::kReduceScatter : RingPhase::kAllGather);
      }
      if (in.makes_final(i)) final_values += sub_chunk.numel;
    }
    for (auto i = out.next_own(0); !out.encodes_own() && i < out.frames(); i = out.next_own(i + 1)) {
      final_values += out.frame(i).numel;  // which this rank has summed
    }
    QCOMPARE(final_values, numel);
  }
}

void RingScheduleTest::each_edge_carries_all_but_two_chunks_twice() {
  const int world_size = 5;
  const std::int64_t numel = 5 * 1'000 * kBlockNumel;
  const EdgeSchedule edge({WireFormat::kInt8Block, numel, numel, {}}, world_size, Rank{3});

  std::int64_t values[2] = {0, 0};
  for (std::uint32_t i = 0; i < edge.frames(); ++i) {
    const RingSubChunk sub_chunk = edge.frame(i);
    values[static_cast<int>(sub_chunk.phase)] += sub_chunk.numel;
  }

  QCOMPARE(values[0], numel / world_size * (world_size - 1));
  QCOMPARE(values[1], numel / world_size * (world_size - 1));
}

void RingScheduleTest::final_buckets_do_not_travel() {
  const RingPayload payload{WireFormat::kInt8Block, 4 * kBucket + 100, kBucket, {true, false, true, false, true}};

  for (int rank = 0; rank < 3; ++rank) {
    const EdgeSchedule edge(payload, 3, Rank{rank});
    std::int64_t values = 0;
    for (std::uint32_t i = 0; i < edge.frames(); ++i) {
      const RingSubChunk sub_chunk = edge.frame(i);
      QVERIFY(!payload.is_final(sub_chunk.first_value / kBucket));
      values += sub_chunk.numel;
    }
    QVERIFY(std::abs(values - 2 * kBucket * 4 / 3) <= 8 * kBlockNumel);
  }
}

QTEST_APPLESS_MAIN(RingScheduleTest)
#include "ring_schedule_test.moc"
