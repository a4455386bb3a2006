// The optimiser's arithmetic, against the equations in double.
#include <QtTest>

#include <cmath>
#include <limits>
#include <vector>

#include "net/wire/run_config.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/schedule.h"

using namespace atl;

class OptimTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void adamw_follows_its_equations();
  void padding_stays_zero();
  void clipping_bounds_the_norm_and_never_enlarges();
  void schedule_warms_up_holds_and_decays();
  void schedule_without_an_end_never_decays();
  void impossible_schedules_are_refused();
  void a_run_says_its_schedule();
};

void OptimTest::adamw_follows_its_equations() {
  const AdamWHyper hyper;
  const std::vector<float> gradients{0.5f, -0.25f, 1e-4f, 3.0f, -2.0f, 0.125f, 0.75f, -1e-3f, 0.3f};
  std::vector<float> p(9, 1.0f), m(9), v(9);
  std::vector<double> p64(9, 1.0), m64(9), v64(9);

  for (int t = 1; t <= 10; ++t) {
    adamw_step({p, gradients, m, v}, hyper, 1e-2f, t, 0.5f);
    for (std::size_t i = 0; i < 9; ++i) {
      const double g = 0.5 * gradients[i];
      p64[i] *= 1 - 1e-2 * 0.1;
      m64[i] = 0.9 * m64[i] + 0.1 * g;
      v64[i] = 0.95 * v64[i] + 0.05 * g * g;
      p64[i] -= 1e-2 / (1 - std::pow(0.9, t)) * m64[i] / (std::sqrt(v64[i] / (1 - std::pow(0.95, t))) + 1e-8);
    }
  }

  for (std::size_t i = 0; i < 9; ++i) QVERIFY(std::abs(p[i] - p64[i]) < 1e-5);  // ten fp32 steps of size 1e-2
}

void OptimTest::padding_stays_zero() {
  std::vector<float> p(3), g(3), m(3), v(3);

  adamw_step({p, g, m, v}, AdamWHyper{}, 1e-2f, 1, 1.0f);

  QCOMPARE(p, std::vector<float>(3));
}

void OptimTest::clipping_bounds_the_norm_and_never_enlarges() {
  QVERIFY(std::abs(clip_factor(4.0, 1.0) - 0.25f) < 1e-6f);
  QCOMPARE(clip_factor(0.5, 1.0), 1.0f);
  QCOMPARE(clip_factor(100.0, 0.0), 1.0f);
  const std::vector<float> values(11, 2.0f);
  QCOMPARE(sum_of_squares(values), 44.0);
}

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
