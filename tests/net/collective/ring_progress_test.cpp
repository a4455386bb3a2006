// What a running all-reduce tells of itself, by either schedule.
#include <QtTest>
#include <thread>

#include "net/collective/ring_schedule.h"
#include "tests/net/collective/loopback_ring.h"
#include "tests/net/collective/slow_link.h"

using namespace atl;

Q_DECLARE_METATYPE(atl::WireFormat)
Q_DECLARE_METATYPE(atl::Schedule)

namespace {

constexpr int kIslands = 3;
constexpr std::size_t kNumel = 4'000'000;

}  // namespace

class RingProgressTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_all_reduce_says_how_far_it_is_from_its_beginning_to_its_end_data();
  void an_all_reduce_says_how_far_it_is_from_its_beginning_to_its_end();
};

void RingProgressTest::an_all_reduce_says_how_far_it_is_from_its_beginning_to_its_end_data() {
  QTest::addColumn<WireFormat>("wire");
  QTest::addColumn<Schedule>("schedule");
  QTest::newRow("int8") << WireFormat::kInt8Block << Schedule::kRing;
  QTest::newRow("int4, not summed hop by hop") << WireFormat::kInt4E3m0 << Schedule::kRing;
  QTest::newRow("directly") << WireFormat::kInt8Block << Schedule::kDirect;
}

void RingProgressTest::an_all_reduce_says_how_far_it_is_from_its_beginning_to_its_end() {
  QFETCH(WireFormat, wire);
  QFETCH(Schedule, schedule);
  LoopbackRing ring(kIslands);
  AllReduceSpec spec = ring.spec(wire);
  spec.schedule = schedule;
  // Slow for some seconds, on the edge from rank 0 to rank 1.
  const SlowLink link(spec.order[1].address, 2'000'000);
  spec.order[1].address = link.address();
  const std::vector<float> input(kNumel, 0.5f);
  std::vector<AllReduceProgress> told;
  const auto began = Clock::now();
  {
    std::vector<std::jthread> others;
    for (int rank : {0, 2}) {
      others.emplace_back([&, rank] { QVERIFY(ring.run_member(rank, spec, input, ring.abort).ok()); });
    }
    AllReduceSpec watched = spec;
    watched.on_progress = [&](const AllReduceProgress& progress) { told.push_back(progress); };
    const MemberResult result = ring.run_member(1, watched, input, ring.abort);
    QVERIFY2(result.ok(), result.ok() ? "" : result.failure().error.message.c_str());
    if (sums_hop_by_hop(wire)) {
      const auto frames = static_cast<double>(result.report().bytes_received);
      QVERIFY(static_cast<double>(told.back().bytes_total) > 0.99 * frames);
      QVERIFY(static_cast<double>(told.back().bytes_total) <= frames);
    }
  }
  const double seconds = Seconds(Clock::now() - began).count();

  QVERIFY(told.size() >= 2);
  QVERIFY(static_cast<double>(told.size()) <= 4 * seconds + 1);
  std::uint64_t before = 0;
  double fastest = 0, fastest_sent = 0;
  for (const AllReduceProgress& progress : told) {
    QVERIFY(progress.bytes_done >= before && progress.bytes_done <= progress.bytes_total);
    QVERIFY(progress.step <= progress.steps);
    before = progress.bytes_done;
    fastest = std::max(fastest, progress.received_bytes_per_second);
    fastest_sent = std::max(fastest_sent, progress.sent_bytes_per_second);
  }
  QVERIFY(fastest > 0 && fastest_sent > 0);
  QCOMPARE(told.back().bytes_done, told.back().bytes_total);
  QCOMPARE(told.back().step, told.back().steps);
  QCOMPARE(told.back().phase, RingPhase::kAllGather);
}

QTEST_GUILESS_MAIN(RingProgressTest)
#include "ring_progress_test.moc"
