// The learning rate, step by step.
#include <QtTest>

#include <cmath>
#include <limits>
#include <vector>

#include <algorithm>
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
  void a_decay_has_the_shape_that_was_asked_for();
  void a_decided_decay_takes_the_place_of_the_runs_own();
  void a_decay_that_begins_in_the_warm_up_falls_from_what_it_has_reached();
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

void OptimTest::a_decay_has_the_shape_that_was_asked_for() {
  WarmupStableDecay schedule{.peak = 2.0, .final_ratio = 0.5, .decay = 100, .total = 1000};
  const auto rates = [&](DecayShape shape) {
    schedule.shape = shape;
    return std::vector{learning_rate_at(schedule, 900, 1), learning_rate_at(schedule, 925, 1),
                       learning_rate_at(schedule, 950, 1), learning_rate_at(schedule, 1000, 1)};
  };
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) < 1e-12; });
  };
  QVERIFY(near(rates(DecayShape::kOneMinusSqrt), {2, 1.5, 2 - std::sqrt(0.5), 1}));
  QVERIFY(near(rates(DecayShape::kLinear), {2, 1.75, 1.5, 1}));
  QVERIFY(near(rates(DecayShape::kCosine), {2, 1 + (1 + std::sqrt(0.5)) / 2, 1.5, 1}));
}

void OptimTest::a_decided_decay_takes_the_place_of_the_runs_own() {
  const InnerOptimizerConfig inner{.learning_rate = 2.0,
                                   .final_learning_rate = 0.5,
                                   .warmup_steps = 10,
                                   .decay_start_step = 9000,
                                   .decay_steps = 1000};
  const WarmupStableDecay schedule =
      with_decay(schedule_of(inner),
                 {.from_round = 30, .rounds = 4, .final_learning_rate = 1.0, .shape = DecayShape::kLinear}, 25);
  QVERIFY(schedule.validate().ok());
  QCOMPARE(learning_rate_at(schedule, 4, 1), 1.0);  // the warm-up stays
  QCOMPARE(learning_rate_at(schedule, 30 * 25, 1), 2.0);
  QCOMPARE(learning_rate_at(schedule, 32 * 25, 1), 1.5);
  QCOMPARE(learning_rate_at(schedule, 34 * 25, 1), 1.0);
  QCOMPARE(learning_rate_at(schedule, 9500, 1), 1.0);
}

void OptimTest::a_decay_that_begins_in_the_warm_up_falls_from_what_it_has_reached() {
  const WarmupStableDecay schedule =
      with_decay({.peak = 1.0, .warmup = 100},
                 {.from_round = 5, .rounds = 10, .final_learning_rate = 0.1, .shape = DecayShape::kLinear}, 10);
  QCOMPARE(learning_rate_at(schedule, 49, 1), 0.5);
  double before = learning_rate_at(schedule, 50, 1);
  QCOMPARE(before, 0.51);
  for (std::int64_t step = 51; step < 160; ++step) {
    const double rate = learning_rate_at(schedule, step, 1);
    QVERIFY(rate <= before && rate >= 0.1);
    before = rate;
  }
  QCOMPARE(before, 0.1);
}

QTEST_GUILESS_MAIN(OptimTest)
#include "optim_test.moc"
