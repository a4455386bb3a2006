#include "kernels/reduce.h"

#include <QtTest>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace atl;

class ReduceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void scaled_copy_multiplies_each_value_in_fp32();
  void all_finite_finds_one_bad_value_anywhere();
  void squared_norm_of_whole_numbers_is_exact();
  void squared_norm_is_close_to_a_long_double_sum();
  void squared_norm_of_nothing_is_zero();
  void squared_norm_adds_in_its_stated_order();
  void finite_squared_norm_refuses_what_all_finite_refuses();
};

void ReduceTest::scaled_copy_multiplies_each_value_in_fp32() {
  std::vector<float> x{1.0f, -3.0f, 1e-30f};
  const float third = 1.0f / 3.0f;

  scaled_copy(x, third, x);

  QCOMPARE(x, (std::vector<float>{third, third * -3.0f, third * 1e-30f}));
}

void ReduceTest::all_finite_finds_one_bad_value_anywhere() {
  std::vector<float> x(10'000, std::numeric_limits<float>::max());
  QVERIFY(all_finite(x));
  QVERIFY(all_finite({}));

  for (const std::size_t position : {0u, 4095u, 4096u, 9'999u}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      auto spoiled = x;
      spoiled[position] = bad;
      QVERIFY(!all_finite(spoiled));
    }
  }
}

void ReduceTest::squared_norm_of_whole_numbers_is_exact() {
  for (const std::size_t numel : {1u, 15u, 16u, 17u, 1000u}) {
    std::vector<float> x(numel);
    for (std::size_t i = 0; i < numel; ++i) x[i] = static_cast<float>(i + 1);
    const double n = static_cast<double>(numel);

    QCOMPARE(squared_norm(x), n * (n + 1) * (2 * n + 1) / 6);
  }
}

void ReduceTest::squared_norm_is_close_to_a_long_double_sum() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(100'003);
  long double exact = 0;
  for (float& value : x) {
    value = normal(random);
    exact += static_cast<long double>(value) * value;
  }

  const double sum = squared_norm(x);

  // Some 300 additions on the way of each value, each off by at most 2^-53 of the sum.
  QVERIFY(std::abs(sum - static_cast<double>(exact)) <= 300 * 0x1p-53 * static_cast<double>(exact));
}

void ReduceTest::squared_norm_of_nothing_is_zero() { QCOMPARE(squared_norm({}), 0.0); }

void ReduceTest::squared_norm_adds_in_its_stated_order() {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(2 * kNormRowNumel + 5);
  for (float& value : x) value = normal(random);
  double rows[3];
  for (std::size_t row = 0; row < 3; ++row) {
    double lanes[kNormLanes] = {};
    for (std::size_t i = row * kNormRowNumel; i < std::min(x.size(), (row + 1) * kNormRowNumel); ++i) {
      lanes[i % kNormLanes] += static_cast<double>(x[i]) * x[i];
    }
    for (std::size_t half = kNormLanes / 2; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    rows[row] = lanes[0];
  }

  // Rows 0 and 2 meet last: the three sums are lanes of a row of their own, folded in halves.
  QCOMPARE(squared_norm(x), (rows[0] + rows[2]) + rows[1]);
}

void ReduceTest::finite_squared_norm_refuses_what_all_finite_refuses() {
  std::vector<float> x(10'000, std::numeric_limits<float>::max());
  QCOMPARE(finite_squared_norm(x), squared_norm(x));
  QCOMPARE(finite_squared_norm({}), 0.0);

  for (const std::size_t position : {0u, 4095u, 4096u, 9'999u}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      auto spoiled = x;
      spoiled[position] = bad;
      QVERIFY(!finite_squared_norm(spoiled));
    }
  }
}

QTEST_APPLESS_MAIN(ReduceTest)
#include "reduce_test.moc"
