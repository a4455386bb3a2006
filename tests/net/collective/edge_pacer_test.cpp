#include "net/collective/edge_pacer.h"

#include <QtTest>
#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr double kStep = 0.1;  // s
constexpr double kSentByBbr = 0.96;

// A bottleneck with a queue of 100 ms, and a sender that starts as TCP does: twice as fast each round trip.
class Link {
 public:
  Link(double bytes_per_second, double rtt) : rate_(bytes_per_second), rtt_(rtt) {}

  void change_rate(double bytes_per_second) { rate_ = bytes_per_second; }
  void let_others_queue(double seconds) { others_ = seconds; }
  // Packets are lost, BBR leaves out some of what it may send, and the receiver tells when data came.
  void lose_and_tell() { tells_ = true; }
  // Nothing passes, and then for `recovery` seconds only one of many connections is awake again.
  void break_for(EdgePacer& pacer, double seconds, double recovery) {
    for (double t = 0; t < seconds; t += kStep) pacer.observe({kStep, 0, true, rtt_, true, false});
    for (double t = 0; t < recovery; t += kStep) pacer.observe({kStep, rate_ * kStep / 16, true, rtt_, true, true});
  }

  void run(EdgePacer& pacer, double seconds, double demand = 1e12) {
    for (double t = 0; t < seconds; t += kStep) {
      window_rate_ *= 2;
      const double allowed = pacer.limit().value_or(1e12) * (tells_ ? kSentByBbr : 1);
      const double offered = std::min({demand, window_rate_, allowed});
      const double arrived = queue_ + offered * kStep;
      const double delivered = std::min(arrived, rate_ * kStep);
      queue_ = std::min(arrived - delivered, 0.1 * rate_);
      pacer.observe({kStep, delivered, offered < demand, rtt_ + queue_ / rate_ + others_, true, false, true, tells_});
      delivered_ += delivered;
    }
  }
  // Of what it could carry since this was asked, in so many seconds.
  double share_used(double seconds) { return std::exchange(delivered_, 0) / (rate_ * seconds); }
  // Next to nothing to send, and the round trip last seen is one of a queue.
  void idle(EdgePacer& pacer, double seconds) {
    for (double t = 0; t < seconds; t += kStep) pacer.observe({kStep, 100, false, rtt_ + 0.1, false, false});
  }
  double queue_seconds() const { return queue_ / rate_; }

 private:
  double rate_;
  double rtt_;
  double window_rate_ = 1e4;
  double queue_ = 0;
  double others_ = 0;
  double delivered_ = 0;
  bool tells_ = false;
};

bool near(double value, double expected) { return value > 0.88 * expected && value < 1.12 * expected; }

}  // namespace

class EdgePacerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void there_is_no_limit_until_the_link_is_full();
  void it_may_begin_with_what_another_link_carries_and_learns_its_own();
  void the_limit_settles_at_the_links_rate_with_a_short_queue();
  void it_follows_a_link_that_gets_slower_and_faster();
  void a_limit_that_is_far_too_low_is_left_soon();
  void what_came_through_while_the_ring_waited_now_and_then_counts();
  void waiting_for_the_ring_does_not_lower_it();
  void a_queue_that_others_keep_is_taken_for_the_way_after_a_while();
  void a_queue_that_does_not_shrink_is_not_drained_for_long();
  void after_a_pause_the_rate_is_still_known();
  void an_outage_is_not_taken_for_a_slow_link();
  void a_few_poor_intervals_after_a_guess_do_not_make_it_silent();
  void with_losses_a_short_queue_of_its_own_keeps_the_link_full_data();
  void with_losses_a_short_queue_of_its_own_keeps_the_link_full();
  void with_losses_it_follows_a_link_that_gets_slower_and_faster();
  void with_losses_a_delay_that_is_no_queue_of_its_own_does_not_starve_it_data();
  void with_losses_a_delay_that_is_no_queue_of_its_own_does_not_starve_it();
  void an_idle_edge_with_an_old_round_trip_is_not_taken_for_a_slow_link();
};

void EdgePacerTest::there_is_no_limit_until_the_link_is_full() {
  EdgePacer pacer;
  Link link(60e6, 0.08);

  link.run(pacer, 0.9);

  QVERIFY(!pacer.limit());
}

void EdgePacerTest::it_may_begin_with_what_another_link_carries_and_learns_its_own() {
  for (const double begins_with : {5e6, 10e6, 20e6}) {
    EdgePacer pacer;
    Link link(10e6, 0.08);

    pacer.begin_with(begins_with);
    QVERIFY(near(*pacer.limit(), begins_with));
    link.run(pacer, 5);

    QVERIFY(near(*pacer.limit(), 10e6));
    pacer.begin_with(1e6);  // it knows better
    QVERIFY(near(*pacer.limit(), 10e6));
  }
  EdgePacer nothing_known;
  nothing_known.begin_with(0);
  QVERIFY(!nothing_known.limit());
}

void EdgePacerTest::the_limit_settles_at_the_links_rate_with_a_short_queue() {
  for (const double rate : {1e6, 60e6, 1e9}) {
    EdgePacer pacer;
    Link link(rate, 0.08);

    link.run(pacer, 10);

    QVERIFY(pacer.limit());
    QVERIFY2(near(*pacer.limit(), rate), qPrintable(QString::number(*pacer.limit() / rate)));
    QVERIFY2(link.queue_seconds() < 0.05, qPrintable(QString::number(link.queue_seconds())));
  }
}

void EdgePacerTest::it_follows_a_link_that_gets_slower_and_faster() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.run(pacer, 5);

  link.change_rate(20e6);
  link.run(pacer, 5);
  QVERIFY2(near(*pacer.limit(), 20e6), qPrintable(QString::number(*pacer.limit())));

  link.change_rate(100e6);
  link.run(pacer, 5);
  QVERIFY2(near(*pacer.limit(), 100e6), qPrintable(QString::number(*pacer.limit())));
}

void EdgePacerTest::a_limit_that_is_far_too_low_is_left_soon() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  pacer.begin_with(20e6);

  link.run(pacer, 1.1);  // in which the window opens
  QVERIFY2(*pacer.limit() > 20e6, qPrintable(QString::number(*pacer.limit())));
  link.run(pacer, 1.2);

  QVERIFY2(*pacer.limit() > 0.9 * 60e6, qPrintable(QString::number(*pacer.limit())));
  double most = 0, longest_queue = 0;
  for (int interval = 0; interval < 30; ++interval) {
    link.run(pacer, kStep);
    most = std::max(most, *pacer.limit());
    longest_queue = std::max(longest_queue, link.queue_seconds());
  }
  QVERIFY2(most < 1.3 * 60e6, qPrintable(QString::number(most)));
  QVERIFY2(longest_queue < 0.08, qPrintable(QString::number(longest_queue)));
  QVERIFY2(near(*pacer.limit(), 60e6), qPrintable(QString::number(*pacer.limit())));
}

// Of an edge whose sender has nothing more in every other interval a rate is known all the same.
void EdgePacerTest::what_came_through_while_the_ring_waited_now_and_then_counts() {
  EdgePacer pacer;
  constexpr double kRate = 60e6;
  const auto observe = [&](double rate, bool saturated) {
    pacer.observe({kStep, rate * kStep, saturated, 0.08, true, false});
  };
  for (const double share : {0.01, 0.02, 0.04}) observe(share * kRate, true);  // the window opens
  for (int i = 0; i < 6; ++i) observe(kRate, false);
  for (int i = 0; i < 4; ++i) observe(0.05 * kRate, true);

  QVERIFY(pacer.limit());
  QVERIFY2(*pacer.limit() > 0.9 * kRate, qPrintable(QString::number(*pacer.limit())));
}

void EdgePacerTest::waiting_for_the_ring_does_not_lower_it() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.run(pacer, 5);
  const double before = *pacer.limit();

  link.run(pacer, 5, 1e6);

  QVERIFY(*pacer.limit() >= 0.85 * before);
}

void EdgePacerTest::a_queue_that_others_keep_is_taken_for_the_way_after_a_while() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.run(pacer, 5);

  link.let_others_queue(0.2);
  link.run(pacer, 30);

  QVERIFY2(near(*pacer.limit(), 60e6), qPrintable(QString::number(*pacer.limit())));
}

void EdgePacerTest::a_queue_that_does_not_shrink_is_not_drained_for_long() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.run(pacer, 5);
  link.let_others_queue(0.05);

  double least = 60e6;
  for (int interval = 0; interval < 100; ++interval) {
    link.run(pacer, kStep);
    least = std::min(least, *pacer.limit());
  }

  QVERIFY2(near(least, 60e6), qPrintable(QString::number(least)));
  QVERIFY2(link.queue_seconds() < 0.05, qPrintable(QString::number(link.queue_seconds())));
}

void EdgePacerTest::after_a_pause_the_rate_is_still_known() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.run(pacer, 5);

  pacer.resume();

  QVERIFY(pacer.limit());
  QVERIFY(near(*pacer.limit(), 60e6));
}

void EdgePacerTest::an_outage_is_not_taken_for_a_slow_link() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.run(pacer, 5);

  link.break_for(pacer, 3, 2);

  QVERIFY2(near(*pacer.limit(), 60e6), qPrintable(QString::number(*pacer.limit())));
}

// What then leaves at once would be paid for at the least limit, for seconds.
void EdgePacerTest::a_few_poor_intervals_after_a_guess_do_not_make_it_silent() {
  EdgePacer pacer;
  pacer.begin_with(25e6);
  const auto observe = [&](double bytes, bool saturated) {
    pacer.observe({0.15, bytes, saturated, 0.2, true, false, /*lossy=*/false});
  };
  observe(3e6, false);
  observe(3e6, true);

  double before = *pacer.limit();
  for (int interval = 0; interval < 3; ++interval) {
    observe(4e3, true);
    QVERIFY2(*pacer.limit() > 0.49 * before, qPrintable(QString::number(*pacer.limit())));
    before = *pacer.limit();
  }
}

void EdgePacerTest::with_losses_a_short_queue_of_its_own_keeps_the_link_full_data() {
  QTest::addColumn<double>("rtt");
  for (const int milliseconds : {20, 80, 150, 300}) QTest::addRow("%d ms", milliseconds) << milliseconds / 1000.;
}

void EdgePacerTest::with_losses_a_short_queue_of_its_own_keeps_the_link_full() {
  QFETCH(const double, rtt);
  EdgePacer pacer;
  Link link(25e6, rtt);
  link.lose_and_tell();
  link.run(pacer, 10);
  (void)link.share_used(10);

  double longest_queue = 0;
  for (int interval = 0; interval < 200; ++interval) {
    link.run(pacer, kStep);
    longest_queue = std::max(longest_queue, link.queue_seconds());
  }

  const double share = link.share_used(20);
  QVERIFY2(share > 0.99, qPrintable(QString::number(share)));
  QVERIFY2(longest_queue < std::max(0.01, 0.2 * rtt), qPrintable(QString::number(longest_queue)));
}

void EdgePacerTest::with_losses_it_follows_a_link_that_gets_slower_and_faster() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.lose_and_tell();
  link.run(pacer, 5);

  for (const double rate : {20e6, 100e6, 90e6, 110e6}) {
    link.change_rate(rate);
    link.run(pacer, 5);
    QVERIFY2(near(*pacer.limit(), rate), qPrintable(QString::number(*pacer.limit() / rate)));
  }
}

void EdgePacerTest::with_losses_a_delay_that_is_no_queue_of_its_own_does_not_starve_it_data() {
  QTest::addColumn<double>("others");
  for (const int milliseconds : {5, 10, 18, 25, 40, 100}) QTest::addRow("%d ms", milliseconds) << milliseconds / 1000.;
}

// Somebody else's queue on the way, or a least delay that was told before there was any load.
void EdgePacerTest::with_losses_a_delay_that_is_no_queue_of_its_own_does_not_starve_it() {
  QFETCH(const double, others);
  EdgePacer pacer;
  Link link(25e6, 0.15);
  link.lose_and_tell();
  link.run(pacer, 10);
  pacer.resume();
  link.run(pacer, 0.2);

  link.let_others_queue(others);
  (void)link.share_used(1);
  link.run(pacer, 60);

  const double share = link.share_used(60);
  QVERIFY2(share > 0.97, qPrintable(QString::number(share)));
  QVERIFY2(link.queue_seconds() < 0.06, qPrintable(QString::number(link.queue_seconds())));
}

void EdgePacerTest::an_idle_edge_with_an_old_round_trip_is_not_taken_for_a_slow_link() {
  EdgePacer pacer;
  Link link(60e6, 0.08);
  link.run(pacer, 5);

  link.idle(pacer, 3);

  QVERIFY2(near(*pacer.limit(), 60e6), qPrintable(QString::number(*pacer.limit())));
}

}  // namespace atl

QTEST_APPLESS_MAIN(atl::EdgePacerTest)
#include "edge_pacer_test.moc"
