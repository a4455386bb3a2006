// Series: what a view of any width shows, of few points and of a million.
#include "app/core/series.h"

#include <QtTest>
#include <cmath>
#include <random>

using namespace atl;

namespace {

SeriesPoint point(double x, double value) { return {.x = x, .mean = value, .low = value, .high = value}; }

Series line(std::size_t points, double step = 1) {
  Series series(SeriesAxis::kStep);
  for (std::size_t i = 0; i < points; ++i)
    series.append(point(static_cast<double>(i) * step, std::sin(static_cast<double>(i) / 50)));
  return series;
}

// As view() says of itself, by looking at every point.
std::vector<SeriesColumn> plain_view(const Series& series, double from, double to, std::size_t columns) {
  std::vector<SeriesColumn> seen;
  std::vector<std::size_t> inside;
  std::optional<std::size_t> before, after;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double x = series.at(i).x;
    if (x < from) before = i;
    if (x >= from && x <= to) inside.push_back(i);
    if (x > to && !after) after = i;
  }
  const auto add = [&](const std::vector<std::size_t>& part) {
    double sum = 0, count = 0, low = INFINITY, high = -INFINITY;
    for (const std::size_t i : part) {
      const SeriesPoint p = series.at(i);
      sum += p.mean * p.count;
      count += p.count;
      low = std::min(low, p.low);
      high = std::max(high, p.high);
    }
    seen.push_back({series.at(part.front()).x, static_cast<float>(sum / count), static_cast<float>(low),
                    static_cast<float>(high), false});
  };
  if (before) add({*before});
  if (inside.size() <= columns) {
    for (const std::size_t i : inside) add({i});
  } else {
    std::vector<std::vector<std::size_t>> pieces(columns);
    for (const std::size_t i : inside) {
      std::size_t piece = 0;
      while (piece + 1 < columns &&
             series.at(i).x >= from + (to - from) * static_cast<double>(piece + 1) / static_cast<double>(columns)) {
        ++piece;
      }
      pieces[piece].push_back(i);
    }
    for (const auto& piece : pieces) {
      if (!piece.empty()) add(piece);
    }
  }
  if (after) add({*after});
  return seen;
}

}  // namespace

class SeriesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_view_is_what_looking_at_every_point_shows();
  void a_view_of_few_points_shows_each_of_them();
  void the_nearest_point_beyond_each_side_is_in_the_view();
  void a_peak_of_one_point_in_a_million_is_seen();
  void a_long_step_is_a_gap_and_a_usual_one_is_none();
  void points_that_stand_for_many_are_apart_by_their_width();
  void points_out_of_order_or_not_finite_are_dropped();
  void a_part_is_replaced_by_what_is_finer();
  void thinning_keeps_extremes_counts_and_the_newer_half();
  void a_million_points_take_under_thirty_bytes_each();
  void a_view_of_a_million_points_costs_what_its_columns_cost();
  void the_nearest_point_is_found();
  void smoothing_is_the_plain_average_for_even_steps();
  void smoothing_goes_by_distance_not_by_points();
  void smoothing_is_unbiased_from_the_first_point();
};

void SeriesTest::a_view_is_what_looking_at_every_point_shows() {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> step(0.1, 3), value(-1, 1);
  std::uniform_int_distribution<int> size(1, 3000), columns(1, 400), count(1, 20);
  for (int round = 0; round < 60; ++round) {
    Series series(SeriesAxis::kTime);
    double x = 0;
    for (int i = size(random); i > 0; --i) {
      const double mean = value(random);
      series.append({.x = x += step(random),
                     .mean = mean,
                     .low = mean - 0.5,
                     .high = mean + 0.5,
                     .count = double(count(random))});
    }
    const double from = x * (0.3 * value(random) + 0.2), to = from + x * 0.6;
    const std::size_t wide = static_cast<std::size_t>(columns(random));

    const auto seen = series.view(from, to, wide, 1e9);

    const auto plain = plain_view(series, from, to, wide);
    QCOMPARE(seen.size(), plain.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      QCOMPARE(seen[i].x, plain[i].x);
      QCOMPARE(seen[i].low, plain[i].low);
      QCOMPARE(seen[i].high, plain[i].high);
      // Sums of floats in another order.
      QVERIFY2(std::abs(seen[i].mean - plain[i].mean) < 1e-5,
               qPrintable(QString::number(seen[i].mean - plain[i].mean)));
    }
  }
}

void SeriesTest::a_view_of_few_points_shows_each_of_them() {
  const Series series = line(10);

  const auto seen = series.view(2, 5, 100);

  QCOMPARE(seen.size(), 6u);  // 1, then 2 to 5, then 6
  QCOMPARE(seen[1].x, 2.0);
  QCOMPARE(seen[4].x, 5.0);
  QCOMPARE(Series(SeriesAxis::kTime).view(0, 1, 10).size(), 0u);
  QCOMPARE(series.view(5, 2, 10).size(), 0u);
  QCOMPARE(series.view(0, 9, 0).size(), 0u);
}

void SeriesTest::the_nearest_point_beyond_each_side_is_in_the_view() {
  const Series series = line(3, 1000);

  const auto between = series.view(100, 200, 50);

  QCOMPARE(between.size(), 2u);
  QCOMPARE(between[0].x, 0.0);
  QCOMPARE(between[1].x, 1000.0);
}

void SeriesTest::a_peak_of_one_point_in_a_million_is_seen() {
  Series series(SeriesAxis::kStep);
  for (int i = 0; i < 1'000'000; ++i) series.append(point(i, i == 777'777 ? 100 : 1));

  const auto seen = series.view(0, 999'999, 800);

  QVERIFY(seen.size() <= 800);
  QCOMPARE(std::ranges::max(seen, {}, &SeriesColumn::high).high, 100.0f);
  QVERIFY(std::ranges::max(seen, {}, &SeriesColumn::mean).mean < 1.1f);
}

void SeriesTest::a_long_step_is_a_gap_and_a_usual_one_is_none() {
  Series series(SeriesAxis::kTime);
  for (int i = 0; i < 100; ++i) series.append(point(i, 1));
  for (int i = 0; i < 100; ++i) series.append(point(130 + i, 1));   // an all-reduce of half a minute
  for (int i = 0; i < 100; ++i) series.append(point(1000 + i, 1));  // a pause

  const auto usual = series.view(0, 1100, 2000), narrow = series.view(0, 1100, 2000, 5);

  const auto gaps = [](const std::vector<SeriesColumn>& seen) {
    std::vector<double> at;
    for (const SeriesColumn& column : seen) {
      if (column.gap_before) at.push_back(column.x);
    }
    return at;
  };
  QCOMPARE(gaps(usual), (std::vector<double>{1000}));
  QCOMPARE(gaps(narrow), (std::vector<double>{130, 1000}));
  QCOMPARE(gaps(series.view(0, 1100, 30)).size(), 1u);
}

void SeriesTest::points_that_stand_for_many_are_apart_by_their_width() {
  Series series(SeriesAxis::kTime);
  const auto coarse = [](double x) { return SeriesPoint{.x = x, .mean = 1, .low = 0, .high = 2, .count = 4096}; };
  for (int i = 0; i < 50; ++i) series.append(coarse(4096.0 * i));
  series.append(coarse(4096.0 * 53));  // two pieces are empty
  for (int i = 0; i < 1000; ++i) series.append(point(4096.0 * 54 + i, 1));

  const auto seen = series.view(0, 4096.0 * 60, 5000);

  std::vector<double> gaps;
  for (const SeriesColumn& column : seen) {
    if (column.gap_before) gaps.push_back(column.x);
  }
  QCOMPARE(gaps, (std::vector<double>{4096.0 * 53}));
}

void SeriesTest::points_out_of_order_or_not_finite_are_dropped() {
  Series series(SeriesAxis::kStep);

  for (const SeriesPoint& p :
       {point(1, 1), point(0.5, 2), point(NAN, 3), point(2, NAN), point(INFINITY, 4), point(1, 5), point(3, 6)}) {
    series.append(p);
  }

  QCOMPARE(series.size(), 3u);  // 1, another one at 1, 3
  QCOMPARE(series.last(), 3.0);
}

void SeriesTest::a_part_is_replaced_by_what_is_finer() {
  Series series = line(1000);
  std::vector<SeriesPoint> finer;
  for (int i = 0; i <= 1000; ++i) finer.push_back(point(200 + i * 0.1, 5));

  series.replace(200, 300, finer);

  QCOMPARE(series.size(), 1000u - 101 + 1001);
  for (std::size_t i = 1; i < series.size(); ++i) QVERIFY(series.at(i).x >= series.at(i - 1).x);
  const auto seen = series.view(0, 999, 10);
  const auto plain = plain_view(series, 0, 999, 10);
  for (std::size_t i = 0; i < seen.size(); ++i) QCOMPARE(seen[i].high, plain[i].high);

  series.replace(-1e9, 1e9, {});
  QVERIFY(series.empty());
  series.append(point(1, 1));
  QCOMPARE(series.size(), 1u);
}

void SeriesTest::thinning_keeps_extremes_counts_and_the_newer_half() {
  Series series(SeriesAxis::kStep);
  for (int i = 0; i < 10'000; ++i) series.append(point(i, i == 17 ? 50 : 1));

  const auto thinned = series.thin(2000);

  QVERIFY(series.size() <= 2000);
  QVERIFY(thinned && *thinned < 10'000);
  double count = 0;
  for (std::size_t i = 0; i < series.size(); ++i) count += series.at(i).count;
  QCOMPARE(count, 10'000.0);
  QCOMPARE(series.view(0, 9'999, 1).front().high, 50.0f);
  QCOMPARE(series.at(series.size() - 1).count, 1.0);
  QCOMPARE(series.at(series.size() - 100).x, 9'900.0);
}

void SeriesTest::a_million_points_take_under_thirty_bytes_each() {
  const Series series = line(1'000'000);

  // 24 of the points, a seventh of 16 of the pyramid; a vector may have room for twice as much.
  QVERIFY2(series.memory_bytes() < 2 * 30'000'000, qPrintable(QString::number(series.memory_bytes())));
}

void SeriesTest::a_view_of_a_million_points_costs_what_its_columns_cost() {
  const Series series = line(1'000'000);
  QElapsedTimer timer;
  timer.start();
  std::size_t columns = 0;

  for (int i = 0; i < 60; ++i) columns += series.view(i * 1000.0, 999'999 - i * 1000.0, 2000).size();

  qInfo("%.2f ms a view", static_cast<double>(timer.nsecsElapsed()) / 60e6);
  QVERIFY(columns <= 60u * 2002);
}

void SeriesTest::the_nearest_point_is_found() {
  const Series series = line(100, 10);

  QCOMPARE(series.nearest(-5), 0u);
  QCOMPARE(series.nearest(14), 1u);
  QCOMPARE(series.nearest(16), 2u);
  QCOMPARE(series.nearest(1e9), 99u);
}

void SeriesTest::smoothing_is_the_plain_average_for_even_steps() {
  std::vector<SeriesPoint> points;
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 1);
  for (int i = 0; i < 500; ++i) points.push_back(point(i * 2.0, noise(random)));

  const auto smooth = smoothed(points, 0.9, 2);

  // TensorBoard's: last = last * w + (1 - w) * next, over 1 - w^n.
  double last = 0, bias = 1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    last = last * 0.9 + 0.1 * points[i].mean;
    bias *= 0.9;
    QVERIFY(std::abs(smooth[i].mean - last / (1 - bias)) < 1e-9);
  }
  const auto none = smoothed(points, 0, 2);
  QCOMPARE(none[100].mean, points[100].mean);
}

void SeriesTest::smoothing_goes_by_distance_not_by_points() {
  // A constant that jumps; then the same, with ten times the points after the jump.
  std::vector<SeriesPoint> sparse, dense;
  for (int i = 0; i < 20; ++i) sparse.push_back(point(i, i < 10 ? 0 : 1));
  for (int i = 0; i < 10; ++i) dense.push_back(point(i, 0));
  for (int i = 0; i < 100; ++i) dense.push_back(point(10 + i * 0.1, 1));

  const double one = smoothed(sparse, 0.9, 1)[19].mean, ten = smoothed(dense, 0.9, 1)[100].mean;

  QVERIFY2(std::abs(one - ten) < 0.06, qPrintable(QString("%1 %2").arg(one).arg(ten)));
}

void SeriesTest::smoothing_is_unbiased_from_the_first_point() {
  std::vector<SeriesPoint> points;
  for (int i = 0; i < 50; ++i) points.push_back(point(i * i, 7));  // two at no distance, too
  points.insert(points.begin(), point(0, 7));

  for (const double smoothing : {0.5, 0.99}) {
    for (const SeriesPoint& p : smoothed(points, smoothing, 1)) QVERIFY(std::abs(p.mean - 7) < 1e-9);
  }
}

QTEST_GUILESS_MAIN(SeriesTest)
#include "series_test.moc"
