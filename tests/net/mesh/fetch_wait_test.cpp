// How much of a run's time is given to waits for those who fetch, whoever they are.
#include <QtTest>
#include <algorithm>
#include <functional>

#include "net/mesh/fetch_wait.h"

namespace atl {
namespace {

using namespace std::chrono_literals;
using Asked = FetchWait::Asked;

constexpr Clock::duration kMost = 40s;
constexpr Clock::duration kTick = 50ms;

// A run of rounds as short as a tick: one could begin at each. Time is since the run's beginning.
struct Run {
  FetchWait wait{kMost};
  Clock::time_point start{1h};
  Clock::duration time{}, waited{}, longest{}, this_one{};

  bool tick(const std::optional<Asked>& asked) {
    const bool waits = wait.waits(asked, start + time);
    time += kTick;
    this_one = waits ? this_one + kTick : Clock::duration{};
    if (waits) waited += kTick;
    longest = std::max(longest, this_one);
    return waits;
  }
  void idle(Clock::duration until) {
    while (time < until) tick(std::nullopt);
  }
};

// One that comes at `begins`, and is in after `needs` without a new state, beside whoever else asks; when it is.
Clock::duration gets_in(Run& run, Clock::duration needs, const std::function<Clock::duration(Clock::duration)>& liar) {
  const Clock::duration begins = run.time;
  Clock::duration fetched{};
  while (fetched < needs && run.time - begins < 24h) {
    const Clock::duration age = std::max(run.time - begins, liar(run.time));
    fetched = run.tick(Asked{age}) ? fetched + kTick : Clock::duration{};
  }
  return run.time - begins;
}

Clock::duration nobody_else(Clock::duration) { return {}; }

}  // namespace

class FetchWaitTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void whoever_asks_gets_a_tenth_of_the_time_data();
  void whoever_asks_gets_a_tenth_of_the_time();
  void a_fetch_of_any_length_ends_within_a_wait_data();
  void a_fetch_of_any_length_ends_within_a_wait();
  void what_was_saved_is_spent_at_once();
  void nobody_fetches_and_nothing_waits();
  void the_end_of_an_average_costs_later_waits_and_not_this_one();
};

void FetchWaitTest::whoever_asks_gets_a_tenth_of_the_time_data() {
  QTest::addColumn<int>("comes_again_after");  // seconds; 0: stays
  QTest::addColumn<int>("idle_before");
  QTest::newRow("one liar for ever") << 0 << 0;
  QTest::newRow("who leaves and comes again under another name") << 3 << 0;
  QTest::newRow("ten staggered, each for half a minute") << 30 << 0;
  QTest::newRow("after a long quiet time") << 7 << 100'000;
}

void FetchWaitTest::whoever_asks_gets_a_tenth_of_the_time() {
  QFETCH(const int, comes_again_after);
  QFETCH(const int, idle_before);
  Run run;
  run.idle(std::chrono::seconds(idle_before));
  const Clock::duration begins = run.time;
  while (run.time - begins < 2h) {
    Clock::duration age = run.time - begins;
    if (comes_again_after > 0) age %= std::chrono::seconds(comes_again_after);
    run.tick(Asked{age});
    QVERIFY(run.waited <= (run.time - begins) / 10 + kMost + kTick);
  }

  QVERIFY(run.waited > 10min);  // it is given, too
}

void FetchWaitTest::a_fetch_of_any_length_ends_within_a_wait_data() {
  QTest::addColumn<int>("needs_ms");
  QTest::addColumn<int>("liar_comes_again_after");  // seconds; -1: there is none, 0: it stays, for a day before
  for (const int liar : {-1, 0, 2, 30}) {
    for (const int needs : {300, 6'000, 30'000, 39'000}) {
      QTest::addRow("%d ms, liar %d", needs, liar) << needs << liar;
    }
  }
}

void FetchWaitTest::a_fetch_of_any_length_ends_within_a_wait() {
  QFETCH(const int, needs_ms);
  QFETCH(const int, liar_comes_again_after);
  Run run;
  const auto liar = [&](Clock::duration time) -> Clock::duration {
    if (liar_comes_again_after < 0) return {};
    return liar_comes_again_after == 0 ? time : time % std::chrono::seconds(liar_comes_again_after);
  };
  while (liar_comes_again_after >= 0 && run.time < 1h) run.tick(Asked{liar(run.time)});

  const auto needs = std::chrono::milliseconds(needs_ms);
  const Clock::duration took = gets_in(run, needs, liar);

  // A liar's age makes waits longer, and the time between them: eight times the longest, and what one took just before.
  const Clock::duration bound = std::max<Clock::duration>(40 * needs, liar_comes_again_after < 0 ? 10s : 10 * kMost);
  QVERIFY2(took <= bound, qPrintable(QString::number(Seconds(took).count())));
}

void FetchWaitTest::what_was_saved_is_spent_at_once() {
  Run run;
  run.idle(1h);

  QVERIFY(gets_in(run, 30s, nobody_else) <= 30s + 2 * kTick);
}

void FetchWaitTest::nobody_fetches_and_nothing_waits() {
  Run run;
  run.idle(1h);
  QVERIFY(run.tick(Asked{1s}));
  QVERIFY(run.wait.left() > 0s);

  QVERIFY(!run.tick(std::nullopt));
  QCOMPARE(run.wait.left(), Clock::duration{});
}

void FetchWaitTest::the_end_of_an_average_costs_later_waits_and_not_this_one() {
  Run run;
  run.idle(1h);
  const Clock::duration begins = run.time;
  while (run.time - begins < 100s) QVERIFY(run.tick(Asked{run.time - begins, /*stands_still=*/false}));

  QVERIFY(gets_in(run, 39s, nobody_else) <= 39s + 2 * kTick);
  const Clock::duration ended = run.time;
  run.tick(std::nullopt);
  while (!run.tick(Asked{})) {
  }

  QVERIFY(run.time - ended >= 10 * 99s);  // all but what was saved
}

}  // namespace atl

QTEST_APPLESS_MAIN(atl::FetchWaitTest)
#include "fetch_wait_test.moc"
