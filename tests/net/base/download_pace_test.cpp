// What an island receives keeps to its owner's limit, whoever in it receives. Times are made up.
#include "net/base/download_pace.h"
#include <thread>

#include <QtTest>

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr double kMega = 1e6;
using Use = DownloadPace::Use;

// Whoever reads whenever it may: bytes in that time.
double read_within(DownloadPace& pace, Use use, Clock::time_point from, Clock::duration time) {
  double read = 0;
  for (Clock::time_point now = from; now < from + time; now = std::max(now, pace.may_read_at(use, now))) {
    if (pace.may_read_at(use, now) > now) continue;
    pace.has_read(use, pace.at_once(use), now);
    read += static_cast<double>(pace.at_once(use));
    if (read > 1e12) break;  // no limit
  }
  return read;
}

}  // namespace

class DownloadPaceTest : public QObject {
  Q_OBJECT

  const Clock::time_point begin_ = Clock::now() + 1s;

 private Q_SLOTS:
  void without_a_limit_nobody_waits();
  void the_owners_limit_holds_data();
  void the_owners_limit_holds();
  void ring_and_fetches_together_keep_to_it();
  void what_is_owed_is_paid_at_the_new_rate();
  void a_limit_that_is_lifted_lets_go_at_once();
  void who_waits_is_woken_by_a_new_limit_and_by_an_abort();
};

void DownloadPaceTest::without_a_limit_nobody_waits() {
  DownloadPace pace;
  pace.has_read(Use::kFetch, 1 << 30, begin_);
  QVERIFY(pace.may_read_at(Use::kFetch, begin_) == begin_);
  QVERIFY(pace.may_read_at(Use::kRing, begin_) == begin_);
  QCOMPARE(pace.at_once(Use::kRing), DownloadPace::kMostAtOnce);
}

void DownloadPaceTest::the_owners_limit_holds_data() {
  QTest::addColumn<double>("limit");
  QTest::newRow("least") << 125e3;
  QTest::newRow("usual") << 5 * kMega;
  QTest::newRow("fast") << 500 * kMega;
}

void DownloadPaceTest::the_owners_limit_holds() {
  QFETCH(double, limit);
  DownloadPace pace(limit);
  const double read = read_within(pace, Use::kFetch, begin_, 10s);
  // Beside the rate: 50 ms of it made up for at the beginning, and the last read.
  QVERIFY2(read <= limit * 10.05 + DownloadPace::kMostAtOnce && read >= limit * 9.9, qPrintable(QString::number(read)));
}

void DownloadPaceTest::ring_and_fetches_together_keep_to_it() {
  const double limit = 2 * kMega;
  DownloadPace pace(limit);
  const DownloadPace::Attempt attempt(pace);
  const double ring = read_within(pace, Use::kRing, begin_, 10s);
  const double fetched = read_within(pace, Use::kFetch, begin_, 10s);
  QVERIFY(ring + fetched <= limit * 10.05 + 2 * DownloadPace::kMostAtOnce);
  QVERIFY(ring >= limit * 7.4 && fetched >= limit * 2.4);
}

// Read at 1 MB/s: ten seconds' worth. At 10 MB/s it is one second's.
void DownloadPaceTest::what_is_owed_is_paid_at_the_new_rate() {
  DownloadPace pace(kMega);
  const auto now = Clock::now();
  (void)pace.may_read_at(Use::kFetch, now);
  pace.has_read(Use::kFetch, 10'000'000, now);
  QVERIFY(pace.may_read_at(Use::kFetch, now) >= now + 9s);

  pace.allow(10 * kMega);

  const auto when = pace.may_read_at(Use::kFetch, now);
  QVERIFY(when <= now + 1100ms);
  QVERIFY(when >= now + 500ms);
}

void DownloadPaceTest::a_limit_that_is_lifted_lets_go_at_once() {
  DownloadPace pace(kMega);
  pace.has_read(Use::kRing, 10'000'000, begin_);
  pace.allow({});
  QVERIFY(pace.may_read_at(Use::kRing, begin_) == begin_);
  // What was read meanwhile is not owed later.
  pace.has_read(Use::kRing, 1 << 30, begin_);
  pace.allow(kMega);
  QVERIFY(pace.may_read_at(Use::kRing, begin_ + 1s) == begin_ + 1s);
}

void DownloadPaceTest::who_waits_is_woken_by_a_new_limit_and_by_an_abort() {
  DownloadPace pace(1000);  // what is read here would take a day
  pace.has_read(Use::kFetch, 100'000'000, Clock::now());
  AbortSignal abort;
  std::jthread lifts([&] {
    QThread::msleep(50);
    pace.allow({});
  });
  QVERIFY(pace.wait(Use::kFetch, abort) > 0s);
  lifts.join();

  pace.allow(1000);
  pace.has_read(Use::kFetch, 100'000'000, Clock::now());
  abort.raise("the island stops");
  (void)pace.wait(Use::kFetch, abort);  // returns
  QVERIFY(pace.may_read_at(Use::kFetch, Clock::now()) > Clock::now() + 1h);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::DownloadPaceTest)
#include "download_pace_test.moc"
