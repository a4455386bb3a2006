// The learning rate, step by step.
#include <QtTest>

#include <cmath>
#include <limits>
#include <vector>

#include "net/wire/run_config.h"
#include "trainer/optim/schedule.h"

using namespace atl;

class OptimTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void schedule_warms_up_holds_and_decays();
  void schedule_without_an_end_never_decays();
  void impossible_schedules_are_refused();
  void a_run_says_its_schedule();
};

void OptimTest::schedule_warms_up_holds_and_decays() {
  const WarmupStableDecay schedule{.peak = 1.0, .final_ratio = 0.1, .warmup = 10, .decay = 100, .total = 1000};
  QVERIFY(schedule.validate().ok());

  QCOMPARE(learning_rate_at(schedule, 0, 1), 0.1);
  QCOMPARE(learning_rate_at(schedule, 4, 1), 0.5);
  QCOMPARE(learning_rate_at(schedule, 9, 1), 1.0);
  QCOMPARE(learning_rate_at(schedule, 899, 1), 1.0);
  QCOMPARE(learning_rate_at(schedule, 925, 1), 0.1 + 0.9 * (1 - 0.5));
  QCOMPARE(learning_rate_at(schedule, 1000, 1), 0.1);
  QCOMPARE(learning_rate_at(schedule, 5000, 1), 0.1);
}

void OptimTest::schedule_without_an_end_never_decays() {
  const WarmupStableDecay schedule{.peak = 2.0};
  QCOMPARE(learning_rate_at(schedule, 0, 1), 2.0);
  QCOMPARE(learning_rate_at(schedule, std::int64_t{1} << 50, 1), 2.0);
}

void OptimTest::impossible_schedules_are_refused() {
  QVERIFY(!WarmupStableDecay({.peak = 0}).validate().ok());
  QVERIFY(!WarmupStableDecay({.peak = std::numeric_limits<double>::quiet_NaN()}).validate().ok());
  QVERIFY(!WarmupStableDecay({.decay = 10}).validate().ok());
  QVERIFY(!WarmupStableDecay({.warmup = 60, .decay = 60, .total = 100}).validate().ok());
}

void OptimTest::a_run_says_its_schedule() {
  InnerOptimizerConfig inner{.learning_rate = 2.0, .final_learning_rate = 0.5, .warmup_steps = 10};
  const WarmupStableDecay forever = schedule_of(inner);
  inner.decay_start_step = 900;
  inner.decay_steps = 100;
  const WarmupStableDecay schedule = schedule_of(inner);

  QVERIFY(forever.validate().ok() && schedule.validate().ok());
  QCOMPARE(learning_rate_at(forever, 1'000'000, 1), 2.0);
  QCOMPARE(learning_rate_at(schedule, 4, 1), 1.0);
  QCOMPARE(learning_rate_at(schedule, 900, 1), 2.0);
  QVERIFY(learning_rate_at(schedule, 901, 1) < 2.0);
  QCOMPARE(learning_rate_at(schedule, 925, 1), 0.5 + 1.5 * 0.5);
  QCOMPARE(learning_rate_at(schedule, 1000, 1), 0.5);
}

QTEST_GUILESS_MAIN(OptimTest)
#include "optim_test.moc"
