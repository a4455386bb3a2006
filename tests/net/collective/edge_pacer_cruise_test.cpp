// What a pacer does on a link without losses, where it cruises after a raise in vain.
#include <QtTest>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "net/collective/edge_pacer.h"
#include "tests/net/collective/two_paced_ends.h"

namespace atl {
namespace {

// A link without losses whose edge always has more to send. Sent more than it carries, its queue grows by 3 ms each
// interval; else it shrinks by 1 ms: what is raised seldom never makes a queue that is seen.
class FullLink {
 public:
  static constexpr double kRtt = 0.2;  // s, and as long an interval

  // Of the limit so much is sent.
  explicit FullLink(double bytes_per_second, double of_limit = 1) : rate_(bytes_per_second), of_limit_(of_limit) {}

  void change_rate(double bytes_per_second) { rate_ = bytes_per_second; }
  void lose() { lossy_ = true; }
  void lose_nothing() { lossy_ = false; }
  void pass(EdgePacer& pacer) {
    const double sent = of_limit_ * pacer.limit().value_or(1e12);
    queue_ = std::max(0.0, queue_ + (sent > 1.01 * rate_ ? 0.003 : -0.001));
    pacer.observe({kRtt, std::min(sent, rate_) * kRtt, true, kRtt + queue_, true, false, lossy_});
  }

 private:
  double rate_;
  double of_limit_;
  double queue_ = 0;
  bool lossy_ = false;
};

bool is_about(double value, double expected) { return std::abs(value / expected - 1) < 1e-3; }
double gain_of(const EdgePacer& pacer) { return *pacer.limit() / *pacer.link_rate(); }
bool cruises(const EdgePacer& pacer) { return is_about(gain_of(pacer), 1); }

constexpr double kFull = 10e6;  // bytes/s
constexpr double kRaisedGain = 1.05, kRaisedGainOfLossy = 1.08;

// The lengths of the first cruises, and of what is between them.
struct Cruises {
  std::vector<int> cruises, raised;
};
Cruises first_cruises(unsigned seed, std::size_t number) {
  EdgePacer pacer(seed);
  FullLink link(kFull);
  pacer.begin_with(kFull);
  Cruises seen;
  bool cruised = true;
  for (int interval = 0; interval < 500 && seen.cruises.size() <= number; ++interval) {
    link.pass(pacer);
    std::vector<int>& lengths = cruises(pacer) ? seen.cruises : seen.raised;
    if (std::exchange(cruised, cruises(pacer)) != cruised) lengths.push_back(0);
    if (!lengths.empty()) ++lengths.back();
  }
  if (seen.cruises.size() > number) seen.cruises.pop_back();  // it goes on
  return seen;
}

// Its next cruise, of those that last for 8 intervals or more, has begun.
void cruise_for_long(EdgePacer& pacer, FullLink& link) {
  pacer.begin_with(kFull);
  int begun = 0;
  for (int interval = 0; interval < 500 && begun < 4; ++interval) {
    const bool cruised = cruises(pacer);
    link.pass(pacer);
    begun += !cruised && cruises(pacer) ? 1 : 0;
  }
  QCOMPARE(begun, 4);
}

}  // namespace

class EdgePacerCruiseTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_raise_in_vain_is_followed_by_a_cruise_that_lasts_longer_each_time_data();
  void a_raise_in_vain_is_followed_by_a_cruise_that_lasts_longer_each_time();
  void two_ends_do_not_cruise_for_the_same_time();
  void a_link_with_losses_is_never_cruised();
  void a_cruise_goes_on_while_the_link_carries_as_much_as_before();
  void a_raise_is_not_in_vain_while_less_comes_through_than_before();
  void a_raise_that_makes_no_queue_is_not_in_vain();
  void only_what_was_sent_while_it_was_raised_can_be_in_vain();
  void a_queue_is_filled_up_only_where_packets_are_lost_data();
  void a_queue_is_filled_up_only_where_packets_are_lost();
  void a_cruise_ends_at_once_when_less_comes_through();
  void a_cruise_ends_at_once_when_packets_are_lost();
  void a_faster_link_is_found_again_after_a_cruise_data();
  void a_faster_link_is_found_again_after_a_cruise();
  void once_a_faster_link_was_found_cruises_are_short_again();
  void acknowledgements_of_a_longer_time_make_no_faster_link_data();
  void acknowledgements_of_a_longer_time_make_no_faster_link();
  void a_guess_is_corrected_soon_data();
  void a_guess_is_corrected_soon();
  void of_two_ends_alike_neither_starves_the_other_data();
  void of_two_ends_alike_neither_starves_the_other();
};

void EdgePacerCruiseTest::a_raise_in_vain_is_followed_by_a_cruise_that_lasts_longer_each_time_data() {
  QTest::addColumn<unsigned>("seed");
  for (unsigned seed = 1; seed <= 10; ++seed) QTest::addRow("seed %u", seed) << seed;
}

void EdgePacerCruiseTest::a_raise_in_vain_is_followed_by_a_cruise_that_lasts_longer_each_time() {
  QFETCH(const unsigned, seed);

  const Cruises seen = first_cruises(seed, 7);

  QCOMPARE(seen.cruises.size(), std::size_t{7});
  int patience = 1;
  for (const int cruise : seen.cruises) {
    patience = std::min(16, 2 * patience);
    QVERIFY2(cruise >= patience / 2 && cruise < patience / 2 + patience, qPrintable(QString::number(cruise)));
  }
  for (const int raised : seen.raised) QVERIFY2(raised <= 3, qPrintable(QString::number(raised)));
}

void EdgePacerCruiseTest::two_ends_do_not_cruise_for_the_same_time() {
  std::set<int> lengths;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Cruises seen = first_cruises(seed, 5);
    QCOMPARE(seen.cruises.size(), std::size_t{5});
    lengths.insert(seen.cruises.back());
  }

  QVERIFY2(lengths.size() >= 5, qPrintable(QString::number(lengths.size())));
}

void EdgePacerCruiseTest::a_link_with_losses_is_never_cruised() {
  EdgePacer pacer;
  FullLink link(kFull);
  link.lose();
  pacer.begin_with(kFull);

  for (int interval = 0; interval < 100; ++interval) {
    link.pass(pacer);
    QVERIFY2(std::abs(gain_of(pacer) - 1) > 0.02, qPrintable(QString::number(gain_of(pacer))));
  }
}

void EdgePacerCruiseTest::a_cruise_goes_on_while_the_link_carries_as_much_as_before() {
  EdgePacer pacer;
  FullLink link(kFull);
  cruise_for_long(pacer, link);

  for (int interval = 0; interval < 6; ++interval) {
    link.pass(pacer);
    QVERIFY(cruises(pacer));
    QVERIFY2(*pacer.limit() > 0.97 * kFull, qPrintable(QString::number(*pacer.limit())));
  }
}

// Else it would cruise at a rate that the link no longer has.
void EdgePacerCruiseTest::a_raise_is_not_in_vain_while_less_comes_through_than_before() {
  EdgePacer pacer;
  FullLink link(kFull);
  cruise_for_long(pacer, link);

  link.change_rate(0.9 * kFull);
  for (int interval = 0; interval < 6; ++interval) {
    link.pass(pacer);
    QVERIFY(!cruises(pacer));
  }
}

void EdgePacerCruiseTest::a_raise_that_makes_no_queue_is_not_in_vain() {
  EdgePacer pacer;
  pacer.begin_with(kFull);

  for (int interval = 0; interval < 50; ++interval) {
    pacer.observe({0.1, kFull * 0.1, true, 0.08, true, false, false});
    QVERIFY(!cruises(pacer));
  }
}

void EdgePacerCruiseTest::only_what_was_sent_while_it_was_raised_can_be_in_vain() {
  EdgePacer pacer;
  pacer.begin_with(kFull);
  const auto observe = [&](double rtt) { pacer.observe({0.2, kFull * 0.2, true, rtt, true, false, false}); };
  for (int interval = 0; interval < 5; ++interval) observe(0.2);
  observe(0.25);  // a queue, so that less is sent
  observe(0.202);

  observe(0.206);
  QVERIFY2(is_about(gain_of(pacer), kRaisedGain), qPrintable(QString::number(gain_of(pacer))));
  observe(0.21);
  QVERIFY(cruises(pacer));
}

void EdgePacerCruiseTest::a_queue_is_filled_up_only_where_packets_are_lost_data() {
  QTest::addColumn<bool>("lossy");
  QTest::addColumn<double>("gain");
  QTest::newRow("without losses") << false << 0.98;
  QTest::newRow("with losses, where BBR sends less than it may") << true << 1.03;
}

void EdgePacerCruiseTest::a_queue_is_filled_up_only_where_packets_are_lost() {
  QFETCH(const bool, lossy);
  QFETCH(const double, gain);
  EdgePacer pacer;
  pacer.begin_with(kFull);

  for (const double rtt : {0.2, 0.2, 0.2, 0.25}) pacer.observe({0.2, kFull * 0.2, true, rtt, true, false, lossy});

  QVERIFY2(is_about(gain_of(pacer), gain), qPrintable(QString::number(gain_of(pacer))));
}

void EdgePacerCruiseTest::a_cruise_ends_at_once_when_less_comes_through() {
  EdgePacer pacer;
  FullLink link(kFull);
  cruise_for_long(pacer, link);

  link.change_rate(0.9 * kFull);
  link.pass(pacer);

  QVERIFY2(is_about(gain_of(pacer), kRaisedGain), qPrintable(QString::number(gain_of(pacer))));
}

void EdgePacerCruiseTest::a_cruise_ends_at_once_when_packets_are_lost() {
  EdgePacer pacer;
  FullLink link(kFull);
  cruise_for_long(pacer, link);

  link.lose();
  link.pass(pacer);
  QVERIFY2(is_about(gain_of(pacer), kRaisedGainOfLossy), qPrintable(QString::number(gain_of(pacer))));

  link.lose_nothing();
  link.pass(pacer);
  QVERIFY2(is_about(gain_of(pacer), kRaisedGain), qPrintable(QString::number(gain_of(pacer))));
}

void EdgePacerCruiseTest::a_faster_link_is_found_again_after_a_cruise_data() {
  QTest::addColumn<double>("faster");
  QTest::addColumn<int>("intervals");  // of the longest cruise, which are 23, and of climbing
  QTest::newRow("a little") << 1.1 << 40;
  QTest::newRow("a third") << 1.33 << 45;
  QTest::newRow("four times") << 4.0 << 65;
}

void EdgePacerCruiseTest::a_faster_link_is_found_again_after_a_cruise() {
  QFETCH(const double, faster);
  QFETCH(const int, intervals);
  EdgePacer pacer;
  FullLink link(kFull, 0.98);
  cruise_for_long(pacer, link);

  link.change_rate(faster * kFull);
  double most = 0;
  for (int interval = 0; interval < intervals; ++interval) {
    link.pass(pacer);
    most = std::max(most, *pacer.link_rate());
  }

  QVERIFY2(most > 0.95 * faster * kFull, qPrintable(QString::number(most / kFull)));
}

void EdgePacerCruiseTest::once_a_faster_link_was_found_cruises_are_short_again() {
  EdgePacer pacer;
  FullLink link(kFull);
  cruise_for_long(pacer, link);

  link.change_rate(1.33 * kFull);
  for (int interval = 0; interval < 50 && *pacer.link_rate() < 1.2 * kFull; ++interval) link.pass(pacer);
  for (int interval = 0; interval < 20 && !cruises(pacer); ++interval) link.pass(pacer);
  int cruise = 0;
  for (; cruises(pacer) && cruise < 10; ++cruise) link.pass(pacer);

  QVERIFY2(cruise >= 1 && cruise <= 2, qPrintable(QString::number(cruise)));
}

void EdgePacerCruiseTest::acknowledgements_of_a_longer_time_make_no_faster_link_data() {
  QTest::addColumn<bool>("lossy");
  QTest::newRow("without losses") << false;
  QTest::newRow("with losses, where the fastest counts") << true;
}

// The queue of another end, which holds them up, gets longer and shorter by a tenth of the time.
void EdgePacerCruiseTest::acknowledgements_of_a_longer_time_make_no_faster_link() {
  QFETCH(const bool, lossy);
  EdgePacer pacer;
  pacer.begin_with(kFull);
  constexpr double kSeconds = 0.2, kGrowth = 0.02;

  double rtt = 0.2, most = 0;
  for (int interval = 0; interval < 60; ++interval) {
    const double growth = interval % 10 < 5 ? kGrowth : -kGrowth;
    rtt += growth;
    pacer.observe({kSeconds, kFull * (kSeconds - growth), true, rtt, true, false, lossy});
    if (interval >= 10) most = std::max(most, *pacer.link_rate());
  }

  QVERIFY2(lossy ? most > 1.08 * kFull : most < 1.02 * kFull, qPrintable(QString::number(most / kFull)));
}

void EdgePacerCruiseTest::a_guess_is_corrected_soon_data() {
  QTest::addColumn<double>("guess");
  QTest::addColumn<bool>("lossy");
  QTest::addColumn<int>("intervals");
  QTest::addColumn<bool>("is_corrected");
  for (const double guess : {1.3, 2.0, 4.0}) {
    QTest::addRow("%.1f times, without losses", guess) << guess << false << 4 << true;
    QTest::addRow("%.1f times, with losses, soon", guess) << guess << true << 8 << false;
    QTest::addRow("%.1f times, with losses, later", guess) << guess << true << 14 << true;
  }
  QTest::newRow("0.8 times, without losses") << 0.8 << false << 8 << true;
  QTest::newRow("a quarter, without losses") << 0.25 << false << 22 << true;
  QTest::newRow("a thirtieth, without losses") << 0.03 << false << 44 << true;
}

void EdgePacerCruiseTest::a_guess_is_corrected_soon() {
  QFETCH(const double, guess);
  QFETCH(const bool, lossy);
  QFETCH(const int, intervals);
  QFETCH(const bool, is_corrected);
  EdgePacer pacer;
  FullLink link(kFull);
  if (lossy) link.lose();

  pacer.begin_with(guess * kFull);
  for (int interval = 0; interval < intervals; ++interval) link.pass(pacer);

  const double rate = *pacer.link_rate() / kFull;
  QVERIFY2((rate > 0.97 && rate < 1.03) == is_corrected, qPrintable(QString::number(rate)));
}

void EdgePacerCruiseTest::of_two_ends_alike_neither_starves_the_other_data() {
  QTest::addColumn<double>("first");
  QTest::addColumn<double>("second");
  QTest::addColumn<bool>("receipts");
  QTest::addColumn<double>("least");
  const auto row = [](const char* name, double first, double second, double least) {
    QTest::newRow(name) << first << second << false << least;
    QTest::addRow("%s, and hears of arrivals", name) << first << second << true << 0.97;
  };
  row("both know their link", 1.0, 1.0, 0.955);
  row("the first begins with less", 0.85, 1.0, 0.955);
  row("the second begins with less", 1.0, 0.85, 0.955);
  row("the first begins with too much", 1.2, 1.0, 0.955);
  row("the first begins with half", 0.5, 1.0, 0.93);
  row("the first begins with a quarter", 0.25, 1.0, 0.88);
}

// On the mean over many runs: in one alone, an end may have as little as 0.9 of its link after all those attempts.
void EdgePacerCruiseTest::of_two_ends_alike_neither_starves_the_other() {
  QFETCH(const double, first);
  QFETCH(const double, second);
  QFETCH(const bool, receipts);
  QFETCH(const double, least);
  constexpr unsigned kRuns = 100;
  constexpr int kAttempts = 8, kMeasured = 4, kIntervals = 6;

  double worse = 0;
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    TwoPacedEnds ends({first, second}, /*lossy=*/false, receipts, seed);
    for (int attempt = 0; attempt < kAttempts; ++attempt) ends.attempt(kIntervals);
    for (int attempt = 0; attempt < kMeasured; ++attempt) {
      worse += std::ranges::min(ends.attempt(kIntervals)) / (kRuns * kMeasured);
    }
  }

  QVERIFY2(worse > least, qPrintable(QString::number(worse)));
}

}  // namespace atl

QTEST_APPLESS_MAIN(atl::EdgePacerCruiseTest)
#include "edge_pacer_cruise_test.moc"
