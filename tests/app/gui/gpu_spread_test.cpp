// What the lines of many GPUs come to.
#include <QtTest>

#include "app/gui/parts/gpu_spread.h"

using namespace atl;

namespace {

using Line = std::vector<SeriesColumn>;

SeriesColumn column(double x, float mean, bool gap_before = false) {
  return {.x = x, .mean = mean, .low = mean - 1, .high = mean + 1, .gap_before = gap_before};
}

Line spread(const std::vector<Line>& lines) { return spread_of(lines); }

}  // namespace

class GpuSpreadTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void at_each_place_it_is_the_mean_the_least_and_the_greatest() {
    const Line all = spread({{column(1, 10), column(2, 20)}, {column(1, 30), column(2, 30)}});

    QCOMPARE(all.size(), 2u);
    QCOMPARE(all[0].mean, 20.0F);
    QCOMPARE(all[0].low, 9.0F);
    QCOMPARE(all[0].high, 31.0F);
    QCOMPARE(all[1].mean, 25.0F);
    QVERIFY(!all[0].gap_before && !all[1].gap_before);
  }

  void a_line_that_has_no_column_at_a_place_stays_as_it_was() {
    const Line all = spread({{column(1, 10), column(3, 50)}, {column(1, 30), column(2, 40), column(3, 50)}});

    QCOMPARE(all.size(), 3u);
    QCOMPARE(all[1].mean, 25.0F);
    QCOMPARE(all[1].low, 9.0F);
  }

  void before_its_first_and_after_its_last_column_a_line_does_not_count() {
    const Line all =
        spread({{column(1, 10), column(2, 10), column(3, 10), column(4, 10)}, {column(2, 30), column(3, 30)}});

    QCOMPARE(all[0].mean, 10.0F);
    QCOMPARE(all[1].mean, 20.0F);
    QCOMPARE(all[3].mean, 10.0F);
    QCOMPARE(all[3].high, 11.0F);
  }

  void where_all_lines_have_a_gap_there_is_one() {
    const Line all = spread({{column(1, 10), column(9, 10, true)}, {column(1, 30), column(9, 30, true)}});

    QCOMPARE(all.size(), 2u);
    QVERIFY(all[1].gap_before);
  }

  void within_a_gap_of_one_line_the_others_go_on() {
    const Line all = spread({{column(1, 10), column(9, 10, true)}, {column(1, 30), column(5, 30), column(9, 30)}});

    QCOMPARE(all.size(), 3u);
    QCOMPARE(all[1].mean, 30.0F);
    QVERIFY(!all[1].gap_before && !all[2].gap_before);
    QCOMPARE(all[2].mean, 20.0F);
  }

  void of_nothing_it_is_nothing() {
    QVERIFY(spread({}).empty());
    QVERIFY(spread({{}, {}}).empty());
    QCOMPARE(spread({{}, {column(1, 10)}}).size(), 1u);
  }
};

QTEST_APPLESS_MAIN(GpuSpreadTest)
#include "gpu_spread_test.moc"
