#include "kernels/reduce.h"

#include <QtTest>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/instruction_set.h"
#include "kernels/reduce_simd.h"

using namespace atl;

namespace {

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// The sums of the lanes, as reduce.h says, of a row from which `outer` is subtracted first, where there is one.
std::array<double, kNormLanes> lanes_by_hand(std::span<const float> outer, std::span<float> row) {
  std::array<double, kNormLanes> lanes{};
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!outer.empty()) row[i] = outer[i] - row[i];
    lanes[i % kNormLanes] += static_cast<double>(row[i]) * row[i];
  }
  return lanes;
}

}  // namespace

class ReduceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void scaled_copy_multiplies_each_value_in_fp32();
  void all_finite_finds_one_bad_value_anywhere();
  void squared_norm_of_whole_numbers_is_exact();
  void squared_norm_is_close_to_a_long_double_sum();
  void squared_norm_of_nothing_is_zero();
  void squared_norm_adds_in_its_stated_order();
  void every_implementation_sums_a_row_to_the_same_bits();
  void a_row_that_is_subtracted_has_the_norm_of_the_differences_data();
  void a_row_that_is_subtracted_has_the_norm_of_the_differences();
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
  const std::vector<float> x = normal_values(2 * kNormRowNumel + 5, 2);
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

void ReduceTest::every_implementation_sums_a_row_to_the_same_bits() {
#if defined(__x86_64__)
  const std::vector<float> outer = normal_values(kNormRowNumel, 1), values = normal_values(kNormRowNumel, 2);
  std::vector<float> expected_row = values;
  const auto squares = lanes_by_hand({}, expected_row);
  const auto differences = lanes_by_hand(outer, expected_row);
  const auto check = [&](auto row_squares, auto subtract) {
    std::array<double, kNormLanes> lanes{};
    row_squares(values.data(), values.size(), lanes.data());
    QVERIFY(lanes == squares);
    std::vector<float> row = values;
    subtract(outer.data(), row.data(), row.size(), lanes.data());
    QVERIFY(lanes == differences);
    QCOMPARE(row, expected_row);
  };
  if (processor_has(InstructionSet::kAvx2)) check(avx2::row_squares, avx2::subtract_row);
  if (processor_has(InstructionSet::kAvx512)) check(avx512::row_squares, avx512::subtract_row);
#else
  QSKIP("there is one implementation on this processor");
#endif
}

void ReduceTest::a_row_that_is_subtracted_has_the_norm_of_the_differences_data() {
  QTest::addColumn<int>("count");
  for (const int count : {0, 1, 15, 16, 17, 4095, 4096}) QTest::newRow(qPrintable(QString::number(count))) << count;
}

void ReduceTest::a_row_that_is_subtracted_has_the_norm_of_the_differences() {
  QFETCH(const int, count);
  const std::vector<float> outer = normal_values(static_cast<std::size_t>(count), 3);
  std::vector<float> row = normal_values(static_cast<std::size_t>(count), 4), expected = row;
  for (std::size_t i = 0; i < row.size(); ++i) expected[i] = outer[i] - expected[i];
  const double norm = subtract_row(outer, row);
  QCOMPARE(row, expected);
  QCOMPARE(norm, squared_norm(expected));
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
