// What an edge believes of what its receiver tells.
#include "net/collective/arrivals.h"

#include <QtTest>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr double kStep = 0.005;  // s
constexpr double kRate = 1e6;    // bytes/s, of one connection's way
constexpr double kWay = 0.04;    // s, one way
constexpr std::uint32_t kHalf = std::uint32_t{1} << 31, kAll = ~std::uint32_t{0};
constexpr double kWrap = 4294.967296;  // s

Clock::time_point time_of(double seconds) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(Seconds(seconds)));
}

// A connection's way, with a queue before it. What comes is told every 50 ms.
struct Way {
  double sends = 0.9 * kRate, carries = kRate;
  bool has_more = true, tells = true;
  double sent = 0, passed = 0;
  std::vector<double> history{};  // that had passed, of each step
};

// Connections of one link, looked at every 50 ms.
class PlayedLink {
 public:
  explicit PlayedLink(Arrivals& arrivals, std::uint32_t ahead = 0, double begins = 1000)
      : arrivals_(arrivals), ahead_(ahead), begins_(begins) {}

  Way& operator[](int connection) { return ways_[connection]; }
  // Of the receiver's clock, which goes so much faster from now on.
  void drift(double share) { drift_ = share; }
  // One machine's clock stands still meanwhile, and nothing is sent.
  void suspend_receiver(std::uint32_t seconds) {
    steps_ += static_cast<int>(seconds / kStep + 0.5);
    ahead_ -= seconds * 1'000'000;
  }
  void suspend_sender(std::uint32_t seconds) { ahead_ += seconds * 1'000'000; }

  void run(double seconds) {
    const int until = steps_ + static_cast<int>(seconds / kStep + 0.5);
    for (; steps_ < until; ++steps_) {
      drifted_ += drift_ * kStep;
      const double now = steps_ * kStep;
      for (auto& [connection, way] : ways_) pass(connection, way, now);
    }
  }

 private:
  static constexpr int kStepsOfWay = 8, kStepsOfLook = 10;
  static_assert(kStepsOfWay * kStep == kWay);

  void pass(int connection, Way& way, double now) {
    way.sent += way.sends * kStep;
    way.passed = std::min(way.sent, way.passed + way.carries * kStep);
    way.history.push_back(way.passed);
    if (steps_ % kStepsOfLook != 0) return;
    arrivals_.sent(connection, time_of(begins_ + now), static_cast<std::uint64_t>(way.sent), way.has_more);
    if (!way.tells || way.history.size() <= kStepsOfWay) return;
    const double came = way.history[way.history.size() - 1 - kStepsOfWay];
    const std::uint32_t told = microseconds_of(time_of(begins_ + now + drifted_)) + ahead_;
    arrivals_.came(connection, told, static_cast<std::uint64_t>(came));
  }

  Arrivals& arrivals_;
  std::uint32_t ahead_;
  double begins_;
  double drift_ = 0, drifted_ = 0;
  int steps_ = 0;
  std::map<int, Way> ways_;
};

bool is_about(double value, double expected, double within) { return std::abs(value - expected) <= within; }

constexpr double kExact = 0.003;  // s, of a delay: what a step of the played link leaves open
constexpr double kRtt = 2 * kWay;

// What acknowledgements say of 100 ms in which all was sent that may be.
EdgePacer::Interval acknowledged(double rtt = kRtt, double rate = 0.9 * kRate) {
  return {0.1, rate * 0.1, true, rtt, true, false, /*lossy=*/false};
}

EdgePacer::Interval told(Arrivals& arrivals, EdgePacer::Interval interval = acknowledged()) {
  arrivals.put_into(interval);
  return interval;
}

}  // namespace

class ArrivalsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rate_and_delay_are_the_datas_whatever_the_clocks_say_data();
  void rate_and_delay_are_the_datas_whatever_the_clocks_say();
  void a_queue_is_told_as_long_as_it_is_data();
  void a_queue_is_told_as_long_as_it_is();
  void who_waits_for_what_was_lost_makes_no_queue();
  void while_one_connection_tells_nothing_new_no_rate_is_known();
  void of_a_connection_that_had_nothing_more_to_send_no_delay_is_known();
  void what_cannot_be_is_not_believed_data();
  void what_cannot_be_is_not_believed();
  void a_clock_that_steps_until_no_time_has_passed_tells_no_rate();
  void an_attempt_begins_with_another_clock();
  void a_connection_that_was_forgotten_is_a_new_one();
  void between_two_looks_all_was_sent_evenly();
  void threads_that_look_late_break_nothing();
  void a_receiver_that_wakes_late_is_timed_by_when_it_came();
  void an_interval_has_the_datas_round_trip_and_rate();
  void on_a_lossy_link_the_delay_is_the_datas_and_the_rate_what_is_acknowledged();
  void no_more_is_believed_than_twice_what_was_acknowledged();
  void a_machine_that_was_suspended_hides_no_queue_data();
  void a_machine_that_was_suspended_hides_no_queue();
  void clocks_that_drift_apart_for_hours_hide_no_queue_data();
  void clocks_that_drift_apart_for_hours_hide_no_queue();
  void who_falls_silent_is_believed_no_longer();
  void who_has_nothing_to_send_is_not_silent();
};

void ArrivalsTest::rate_and_delay_are_the_datas_whatever_the_clocks_say_data() {
  QTest::addColumn<std::uint32_t>("ahead");
  QTest::addColumn<double>("begins");
  QTest::newRow("one clock") << 0u << 1000.0;
  QTest::newRow("the sender's wraps") << 0u << kWrap - 1;
  QTest::newRow("the receiver's wraps") << kAll - 1'000'000'000u + 500'000u << 1000.0;
  QTest::newRow("both wrap") << 100'000u << kWrap - 1;
  QTest::newRow("half of all apart") << kHalf << 1000.0;
  QTest::newRow("a little less than half") << kHalf - 40'000u << 1000.0;
  QTest::newRow("their difference wraps") << kAll - 20'000u << 1000.0;
  QTest::newRow("their difference wraps by the way") << kAll - 40'000u << kWrap - 1;
}

void ArrivalsTest::rate_and_delay_are_the_datas_whatever_the_clocks_say() {
  QFETCH(const std::uint32_t, ahead);
  QFETCH(const double, begins);
  Arrivals arrivals;
  PlayedLink link(arrivals, ahead, begins);
  link[1].sends = link[2].sends = 0.9 * kRate;
  link.run(0.5);
  (void)arrivals.look();

  for (int interval = 0; interval < 20; ++interval) {
    link.run(0.1);
    const Arrivals::Seen seen = arrivals.look();
    QVERIFY(is_about(seen.bytes_per_second, 2 * 0.9 * kRate, 0.01 * kRate));
    QVERIFY(seen.delay_seconds);
    QVERIFY2(is_about(*seen.delay_seconds, 0, kExact), qPrintable(QString::number(*seen.delay_seconds)));
  }
}

void ArrivalsTest::a_queue_is_told_as_long_as_it_is_data() {
  QTest::addColumn<std::uint32_t>("ahead");
  QTest::newRow("one clock") << 0u;
  QTest::newRow("as it grows the difference of the clocks wraps") << kAll - 60'000u;
  QTest::newRow("as it grows it is half of all") << kHalf - 60'000u;
}

void ArrivalsTest::a_queue_is_told_as_long_as_it_is() {
  QFETCH(const std::uint32_t, ahead);
  Arrivals arrivals;
  PlayedLink link(arrivals, ahead);
  link[1].sends = 0.9 * kRate;
  link.run(0.5);
  (void)arrivals.look();

  link[1].sends = 1.1 * kRate;  // each second 0.1 s more
  link.run(1);
  (void)arrivals.look();
  link.run(0.1);
  const Arrivals::Seen seen = arrivals.look();

  // What has come now was sent before, when the queue was shorter.
  QVERIFY2(is_about(*seen.delay_seconds, 0.09, 0.01), qPrintable(QString::number(*seen.delay_seconds)));
  QVERIFY(is_about(seen.bytes_per_second, kRate, 0.01 * kRate));  // no more comes than the link carries
  link[1].sends = 0;
  link[1].has_more = false;
  link.run(0.5);
  link[1].sends = 0.9 * kRate;
  link[1].has_more = true;
  link.run(0.5);
  (void)arrivals.look();
  link.run(0.1);
  QVERIFY(is_about(*arrivals.look().delay_seconds, 0, kExact));
}

void ArrivalsTest::who_waits_for_what_was_lost_makes_no_queue() {
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = link[2].sends = 0.9 * kRate;
  link.run(0.5);
  (void)arrivals.look();

  link[1].carries = 0.01 * kRate;
  for (int interval = 0; interval < 5; ++interval) {
    link.run(0.1);
    QVERIFY(is_about(*arrivals.look().delay_seconds, 0, kExact));
  }
  link[2].carries = 0.01 * kRate;  // of both it is the way
  link.run(0.3);
  (void)arrivals.look();
  link.run(0.1);
  QVERIFY(arrivals.look().delay_seconds.value_or(0) > 0.1);
}

void ArrivalsTest::while_one_connection_tells_nothing_new_no_rate_is_known() {
  Arrivals arrivals;
  QCOMPARE(arrivals.look().bytes_per_second, 0.0);
  PlayedLink link(arrivals);
  link[1].sends = link[2].sends = 0.9 * kRate;
  link.run(0.5);
  QVERIFY(arrivals.look().bytes_per_second > 0);

  link[2].tells = false;
  link.run(0.1);
  const Arrivals::Seen seen = arrivals.look();
  QCOMPARE(seen.bytes_per_second, 0.0);
  QVERIFY(seen.delay_seconds);

  link[2].tells = true;
  link.run(0.1);
  QVERIFY(is_about(arrivals.look().bytes_per_second, 2 * 0.9 * kRate, 0.02 * kRate));  // nor was it lost
}

void ArrivalsTest::of_a_connection_that_had_nothing_more_to_send_no_delay_is_known() {
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].has_more = false;

  link.run(0.5);
  const Arrivals::Seen seen = arrivals.look();

  QVERIFY(!seen.delay_seconds);
  QVERIFY(is_about(seen.bytes_per_second, 0.9 * kRate, 0.02 * kRate));
}

void ArrivalsTest::what_cannot_be_is_not_believed_data() {
  QTest::addColumn<int>("connection");
  QTest::addColumn<std::uint32_t>("microseconds");
  QTest::addColumn<std::uint64_t>("bytes");
  QTest::newRow("more than was sent") << 1 << 2'000'000u << std::uint64_t{200'001};
  QTest::newRow("all that there can be") << 1 << 2'000'000u << std::numeric_limits<std::uint64_t>::max();
  QTest::newRow("as much as before") << 1 << 2'000'000u << std::uint64_t{50'000};
  QTest::newRow("less than before") << 1 << 2'000'000u << std::uint64_t{49'999};
  QTest::newRow("at the same time") << 1 << 1'000'000u << std::uint64_t{100'000};
  QTest::newRow("before") << 1 << 999'999u << std::uint64_t{100'000};
  QTest::newRow("half of all later, or before") << 1 << 1'000'000u + kHalf << std::uint64_t{100'000};
  QTest::newRow("of a connection that is none") << 7 << 2'000'000u << std::uint64_t{100'000};
}

void ArrivalsTest::what_cannot_be_is_not_believed() {
  QFETCH(const int, connection);
  QFETCH(const std::uint32_t, microseconds);
  QFETCH(const std::uint64_t, bytes);
  Arrivals arrivals;
  for (int look = 0; look <= 20; ++look) {
    arrivals.sent(1, time_of(1 + 0.05 * look), static_cast<std::uint64_t>(10'000 * look), true);
  }
  arrivals.came(1, 1'000'000, 50'000);
  (void)arrivals.look();

  arrivals.came(connection, microseconds, bytes);
  const Arrivals::Seen seen = arrivals.look();

  QCOMPARE(seen.bytes_per_second, 0.0);
  QVERIFY(!seen.delay_seconds);
  arrivals.came(1, 1'500'000, 100'000);
  QCOMPARE(arrivals.look().bytes_per_second, 1e5);
}

void ArrivalsTest::a_clock_that_steps_until_no_time_has_passed_tells_no_rate() {
  for (const std::uint32_t last : {0u, 1u, kHalf}) {
    Arrivals arrivals;
    arrivals.sent(1, time_of(1), 0, true);
    arrivals.sent(1, time_of(2), 1'000'000, true);
    arrivals.came(1, 0, 1'000);
    (void)arrivals.look();

    std::uint64_t bytes = 1'000;
    for (const std::uint32_t quarter : {1u, 2u, 3u}) arrivals.came(1, quarter << 30, bytes += 1'000);
    arrivals.came(1, last, bytes + 1'000);

    const double rate = arrivals.look().bytes_per_second;
    QVERIFY2(std::isfinite(rate) && rate >= 0 && rate <= 4'000 / 1e-6, qPrintable(QString::number(rate)));
    if (last != 1u) QCOMPARE(rate, 0.0);
  }
}

void ArrivalsTest::an_attempt_begins_with_another_clock() {
  Arrivals arrivals;
  {
    PlayedLink link(arrivals, 5'000'000);
    link[1].sends = 0.9 * kRate;
    link.run(0.5);
    QVERIFY(is_about(told(arrivals).rtt_seconds, kRtt, kExact));
  }

  arrivals.begin();

  QVERIFY(!told(arrivals).one_way);
  PlayedLink link(arrivals, 123);
  link[1].sends = 0.9 * kRate;
  link.run(0.5);
  const Arrivals::Seen seen = arrivals.look();
  QVERIFY(seen.delay_seconds);
  QVERIFY(is_about(*seen.delay_seconds, 0, kExact));
}

// Its number may be that of a socket made later.
void ArrivalsTest::a_connection_that_was_forgotten_is_a_new_one() {
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = link[2].sends = 0.9 * kRate;
  link.run(0.5);
  (void)arrivals.look();
  arrivals.forget(2);
  link[2] = Way{};

  link.run(0.2);
  (void)arrivals.look();
  link.run(0.1);

  const Arrivals::Seen seen = arrivals.look();
  QVERIFY(is_about(seen.bytes_per_second, 2 * 0.9 * kRate, 0.02 * kRate));
  QVERIFY(is_about(*seen.delay_seconds, 0, kExact));
  arrivals.forget(2);
  link.run(0);
  QVERIFY(arrivals.look().bytes_per_second <= 0.9 * kRate);
}

void ArrivalsTest::between_two_looks_all_was_sent_evenly() {
  Arrivals arrivals;
  for (const int look : {0, 1, 2}) {
    arrivals.sent(1, time_of(1 + 0.1 * look), 100'000 * static_cast<std::uint64_t>(look), true);
  }

  for (const std::uint64_t bytes : {10'000u, 60'000u, 99'999u, 100'000u, 150'000u, 199'000u}) {
    arrivals.came(1, microseconds_of(time_of(1 + static_cast<double>(bytes) * 1e-6 + kWay)), bytes);
    const auto delay = arrivals.look().delay_seconds;
    QVERIFY(delay && is_about(*delay, 0, 1e-5));
  }
}

// What each saw is older than what the one before it has told already.
void ArrivalsTest::threads_that_look_late_break_nothing() {
  Arrivals arrivals;
  double worst = 0;
  for (int look = 0; look < 100; ++look) {
    const double now = 1 + 0.05 * look;
    const std::uint64_t bytes = 50'000 * static_cast<std::uint64_t>(look);
    arrivals.sent(1, time_of(now), bytes, true);
    if (look == 0) continue;
    if (look % 2 == 0) arrivals.sent(1, time_of(now - 0.01), bytes - 10'000, true);
    arrivals.came(1, microseconds_of(time_of(now)), bytes - 25'000);
    if (const auto seen = arrivals.look(); seen.delay_seconds) worst = std::max(worst, std::abs(*seen.delay_seconds));
  }
  QVERIFY2(worst < 1e-4, qPrintable(QString::number(worst)));
}

// Receipts that were read late, many at once, tell the same.
void ArrivalsTest::a_receiver_that_wakes_late_is_timed_by_when_it_came() {
  Arrivals arrivals;
  const auto receipt = [&](int look) {
    arrivals.came(1, microseconds_of(time_of(1 + 0.05 * look + kWay)), 50'000 * static_cast<std::uint64_t>(look) - 9);
  };
  for (int look = 0; look <= 100; ++look) {
    arrivals.sent(1, time_of(1 + 0.05 * look), 50'000 * static_cast<std::uint64_t>(look), true);
    if (look == 3) receipt(1);
  }
  for (int look = 2; look <= 60; ++look) receipt(look);

  const Arrivals::Seen seen = arrivals.look();

  QVERIFY(is_about(seen.bytes_per_second, 1e6, 1e3));
  QVERIFY(is_about(seen.delay_seconds.value_or(1), 0, 1e-4));
}

void ArrivalsTest::an_interval_has_the_datas_round_trip_and_rate() {
  Arrivals arrivals;
  QVERIFY(!told(arrivals).one_way);
  PlayedLink link(arrivals, 77);
  link[1].sends = 0.9 * kRate;
  link.run(0.5);
  QVERIFY(is_about(told(arrivals).rtt_seconds, kRtt, kExact));

  // Another's queue holds the acknowledgements up: they come slower, and later.
  link.run(0.1);
  EdgePacer::Interval interval = told(arrivals, acknowledged(kRtt + 0.07, 0.6 * kRate));
  QVERIFY(interval.one_way);
  QVERIFY(is_about(interval.rtt_seconds, kRtt, kExact));
  QVERIFY(is_about(interval.bytes_delivered, 0.09 * kRate, 0.002 * kRate));

  // Its own queue is one, though acknowledgements come faster.
  link[1].sends = 1.2 * kRate;
  link.run(0.5);
  (void)told(arrivals);
  link.run(0.1);
  interval = told(arrivals, acknowledged(kRtt + 0.03, 1.1 * kRate));
  QVERIFY(interval.rtt_seconds > kRtt + 0.06);
  QVERIFY(is_about(interval.bytes_delivered, 0.1 * kRate, 0.002 * kRate));
}

void ArrivalsTest::on_a_lossy_link_the_delay_is_the_datas_and_the_rate_what_is_acknowledged() {
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = 0.9 * kRate;
  double acknowledged_after = kRtt;
  for (int interval = 0; interval < 10; ++interval) {
    link.run(0.1);
    EdgePacer::Interval lossy = acknowledged(acknowledged_after, 0.3 * kRate);
    lossy.lossy = true;
    const EdgePacer::Interval heard = told(arrivals, lossy);
    QVERIFY(heard.one_way || interval == 0);
    QVERIFY(is_about(heard.rtt_seconds, kRtt, kExact));
    QCOMPARE(heard.bytes_delivered, lossy.bytes_delivered);
    acknowledged_after = kRtt + 0.07;  // behind another's queue
  }

  link.run(0.1);  // nothing is lost any more
  const EdgePacer::Interval interval = told(arrivals);
  QVERIFY(interval.one_way);
  QVERIFY(is_about(interval.bytes_delivered, 0.09 * kRate, 0.002 * kRate));
}

void ArrivalsTest::no_more_is_believed_than_twice_what_was_acknowledged() {
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = 0.9 * kRate;
  link.run(0.5);

  const EdgePacer::Interval interval = told(arrivals, acknowledged(kRtt, 0.01 * kRate));

  QVERIFY(interval.one_way);
  QCOMPARE(interval.bytes_delivered, 2 * 0.001 * kRate);
}

void ArrivalsTest::a_machine_that_was_suspended_hides_no_queue_data() {
  QTest::addColumn<std::uint32_t>("of_receiver");
  QTest::addColumn<std::uint32_t>("of_sender");
  QTest::newRow("the receiver's") << 10u << 0u;
  QTest::newRow("the receiver's, for half a wrap of the clock") << 2'148u << 0u;
  QTest::newRow("the receiver's, for an hour") << 3'600u << 0u;
  QTest::newRow("the sender's") << 0u << 10u;
}

// Else each round trip would be the least there is, or all of them long ones, of which a long queue is a small part.
void ArrivalsTest::a_machine_that_was_suspended_hides_no_queue() {
  QFETCH(const std::uint32_t, of_receiver);
  QFETCH(const std::uint32_t, of_sender);
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = 0.9 * kRate;
  link.run(0.5);
  (void)told(arrivals);

  link.suspend_receiver(of_receiver);
  link.suspend_sender(of_sender);
  link.run(0.2);
  QVERIFY(told(arrivals).rtt_seconds >= 0);
  link.run(0.1);
  QVERIFY(is_about(told(arrivals).rtt_seconds, kRtt, kExact));
  link[1].sends = 1.1 * kRate;
  link.run(0.5);
  (void)told(arrivals, acknowledged(kRtt + 0.05));
  link.run(0.1);

  const EdgePacer::Interval interval = told(arrivals, acknowledged(kRtt + 0.055));
  QVERIFY2(is_about(interval.rtt_seconds, kRtt + 0.05, 0.01), qPrintable(QString::number(interval.rtt_seconds)));
}

void ArrivalsTest::clocks_that_drift_apart_for_hours_hide_no_queue_data() {
  QTest::addColumn<double>("drift");
  QTest::newRow("the receiver's is faster") << 100e-6;
  QTest::newRow("the receiver's is slower") << -100e-6;
}

void ArrivalsTest::clocks_that_drift_apart_for_hours_hide_no_queue() {
  QFETCH(const double, drift);
  constexpr int kIntervals = 3 * 36'000;  // 3 hours: by which they are a second apart, and have wrapped
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = 0.9 * kRate;
  link.drift(drift);
  link.run(0.5);
  double least = 1, most = 0;
  for (int interval = 0; interval < kIntervals; ++interval) {
    link.run(0.1);
    const double rtt = told(arrivals).rtt_seconds;
    least = std::min(least, rtt);
    most = std::max(most, rtt);
    if (interval % 1000 == 0) link[1].history.erase(link[1].history.begin(), link[1].history.end() - 100);
  }
  QVERIFY2(least > 0 && most <= 2 * kRtt + kExact, qPrintable(QString("%1 to %2").arg(least).arg(most)));
  const double before = told(arrivals).rtt_seconds;

  link[1].sends = 1.1 * kRate;
  link.run(0.3);
  (void)told(arrivals, acknowledged(kRtt + 0.03));
  link.run(0.1);

  QVERIFY(told(arrivals, acknowledged(kRtt + 0.035)).rtt_seconds > before + 0.02);
}

void ArrivalsTest::who_falls_silent_is_believed_no_longer() {
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = 0.9 * kRate;
  link.run(0.5);
  QVERIFY(told(arrivals).one_way);

  link[1].tells = false;
  int intervals = 0;
  for (; intervals < 100 && told(arrivals).one_way; ++intervals) link.run(0.1);
  QVERIFY2(intervals > 5 && intervals < 30, qPrintable(QString::number(intervals)));
  QCOMPARE(told(arrivals).rtt_seconds, kRtt);

  link[1].tells = true;
  link.run(0.5);
  QVERIFY(told(arrivals).one_way);
}

void ArrivalsTest::who_has_nothing_to_send_is_not_silent() {
  Arrivals arrivals;
  PlayedLink link(arrivals);
  link[1].sends = 0.9 * kRate;
  link.run(0.5);
  (void)told(arrivals);
  EdgePacer::Interval waits = acknowledged();
  waits.saturated = false;

  link[1].tells = false;
  for (int interval = 0; interval < 100; ++interval) {
    link.run(0.1);
    QVERIFY(told(arrivals, waits).one_way);
  }
}

QTEST_APPLESS_MAIN(ArrivalsTest)
#include "arrivals_test.moc"
