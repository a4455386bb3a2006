#include "net/collective/progress_meter.h"

#include <QtTest>
#include <vector>

using namespace atl;
using namespace std::chrono_literals;

namespace {

const Clock::time_point kStart = Clock::time_point(std::chrono::hours(100));

struct Told {
  std::vector<AllReduceProgress> all;
  ProgressMeter::Tell tell() {
    return [this](const AllReduceProgress& progress) { all.push_back(progress); };
  }
};

RingPayload two_buckets() { return {WireFormat::kFp32, 2 * 6 * kBlockNumel, 6 * kBlockNumel, {}}; }

}  // namespace

class ProgressMeterTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void however_often_it_looks_it_tells_four_times_a_second_at_most();
  void rates_are_those_of_the_last_second();
  void bytes_say_which_step_and_phase_is_under_way_data();
  void bytes_say_which_step_and_phase_is_under_way();
  void contributions_past_the_ring_come_first();
  void the_end_is_told_of_what_took_long_enough_to_be_told_of();
};

void ProgressMeterTest::however_often_it_looks_it_tells_four_times_a_second_at_most() {
  const EdgeSchedule inbound(two_buckets(), 3, Rank{0});
  Told told;
  ProgressMeter meter(inbound, 0, told.tell());

  for (int i = 0; i <= 10'000; i += 10) meter.look({}, kStart + std::chrono::milliseconds(i));
  meter.finish({inbound.bytes(), 0, 0}, kStart + 10s);

  QVERIFY(told.all.size() >= 29 && told.all.size() <= 31);
  QCOMPARE(told.all.back().bytes_done, told.all.back().bytes_total);
  QCOMPARE(told.all.back().step, told.all.back().steps);
}

void ProgressMeterTest::rates_are_those_of_the_last_second() {
  const EdgeSchedule inbound(two_buckets(), 3, Rank{0});
  Told told;
  ProgressMeter meter(inbound, 0, told.tell());

  // 1000 bytes/s for ten seconds, then nothing. What the sockets had carried before counts for nothing.
  for (std::uint64_t tenth = 0; tenth <= 100; ++tenth) {
    meter.look({tenth * 100, 0, 5'000'000 + tenth * 200}, kStart + tenth * 100ms);
  }
  const AllReduceProgress steady = told.all.back();
  for (std::uint64_t tenth = 101; tenth <= 130; ++tenth) {
    meter.look({10'000, 0, 5'020'000}, kStart + tenth * 100ms);
  }

  QCOMPARE(steady.received_bytes_per_second, 1000.0);
  QCOMPARE(steady.sent_bytes_per_second, 2000.0);
  QCOMPARE(told.all.back().received_bytes_per_second, 0.0);
}

void ProgressMeterTest::bytes_say_which_step_and_phase_is_under_way_data() {
  QTest::addColumn<int>("chunks");  // that came, of six values' blocks in two buckets of three chunks
  QTest::addColumn<int>("step");
  QTest::addColumn<bool>("gathers");
  QTest::newRow("nothing yet") << 0 << 0 << false;
  QTest::newRow("within the reduce-scatter") << 1 << 1 << false;
  QTest::newRow("its end") << 2 << 2 << true;
  QTest::newRow("the next bucket") << 4 << 4 << false;
  QTest::newRow("all") << 8 << 8 << true;
}

void ProgressMeterTest::bytes_say_which_step_and_phase_is_under_way() {
  QFETCH(int, chunks);
  QFETCH(int, step);
  QFETCH(bool, gathers);
  const EdgeSchedule inbound(two_buckets(), 3, Rank{0});
  const std::uint64_t chunk = 2 * kBlockNumel * sizeof(float);
  QCOMPARE(inbound.bytes(), 8 * chunk);
  Told told;
  ProgressMeter meter(inbound, 0, told.tell());
  const ProgressMeter::Counts counts{static_cast<std::uint64_t>(chunks) * chunk, 0, 0};

  meter.look(counts, kStart);
  meter.look(counts, kStart + 1s);

  QCOMPARE(told.all.back().steps, 8u);
  QCOMPARE(told.all.back().step, static_cast<std::uint32_t>(step));
  QCOMPARE(told.all.back().phase == RingPhase::kAllGather, gathers);
  QCOMPARE(told.all.back().bytes_done, counts.ring_bytes);
  QCOMPARE(told.all.back().bytes_total, 8 * chunk);
}

void ProgressMeterTest::contributions_past_the_ring_come_first() {
  const EdgeSchedule inbound({WireFormat::kInt4E3m0, 6 * kBlockNumel, 6 * kBlockNumel, {}}, 3, Rank{0});
  Told told;
  ProgressMeter meter(inbound, 1000, told.tell());

  meter.look({0, 0, 0}, kStart);
  meter.look({0, 999, 0}, kStart + 1s);
  meter.look({0, 1000, 0}, kStart + 2s);

  QCOMPARE(told.all.front().phase, RingPhase::kReduceScatter);
  QCOMPARE(told.all.back().phase, RingPhase::kAllGather);
  QCOMPARE(told.all.back().steps, 2u);
  QCOMPARE(told.all.back().bytes_total, inbound.bytes() + 1000);
  QCOMPARE(told.all.back().bytes_done, std::uint64_t{1000});
}

void ProgressMeterTest::the_end_is_told_of_what_took_long_enough_to_be_told_of() {
  const EdgeSchedule inbound(two_buckets(), 3, Rank{0});
  Told told;
  ProgressMeter meter(inbound, 0, told.tell());

  meter.look({}, kStart);
  meter.finish({inbound.bytes(), 0, 0}, kStart + 100ms);

  QVERIFY(told.all.empty());
}

QTEST_GUILESS_MAIN(ProgressMeterTest)
#include "progress_meter_test.moc"
