// Plots: what they show of series, and how a person moves about in them.
#include <cmath>

#include <QtTest>

#include "app/gui/plot/bar_plot.h"
#include "app/gui/plot/csv_export.h"
#include "app/gui/plot/history_lines.h"
#include "app/gui/plot/history_plot.h"
#include "app/gui/plot/readout.h"
#include "tests/app/gui/gui_scene.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

Series series_of(std::size_t points, double gap_at = -1) {
  Series series(SeriesAxis::kStep);
  for (std::size_t i = 0; i < points; ++i) {
    const auto x = static_cast<double>(i) + (gap_at >= 0 && static_cast<double>(i) >= gap_at ? 10'000 : 0);
    const double value = 2 + std::sin(static_cast<double>(i) / 7);
    series.append({.x = x, .mean = value, .low = value - 0.1, .high = value + 0.1});
  }
  return series;
}

double roughness(const std::vector<SeriesColumn>& columns) {
  double sum = 0;
  for (std::size_t i = 1; i < columns.size(); ++i) sum += std::abs(columns[i].mean - columns[i - 1].mean);
  return sum;
}

// A plot of a series that the test holds.
struct Shown {
  explicit Shown(Series given) : series(std::move(given)), plot("A curve") {
    plot.addLine({"Loss",
                  {.band = true},
                  [this](double from, double to, std::size_t columns) {
                    ++asked;
                    return series.view(from, to, columns);
                  },
                  compact_values()});
    plot.resize(640, 300);
    plot.show();
    plot.setExtent(series.first(), series.last());
    QTest::qWait(30);
  }
  Series series;
  int asked = 0;
  Plot plot;
};

}  // namespace

class PlotTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }

  void a_plot_begins_with_all_there_is_and_goes_along_as_it_grows() {
    Shown shown(series_of(1000));
    QCOMPARE(shown.plot.from(), 0.0);
    QCOMPARE(shown.plot.to(), 999.0);

    shown.plot.setExtent(0, 1200);

    QCOMPARE(shown.plot.to(), 1200.0);
    QVERIFY(shown.plot.showsAll());
  }

  void a_view_of_the_end_follows_it_and_one_of_the_past_stays() {
    Shown shown(series_of(1000));
    shown.plot.setRange(899, 999);
    shown.plot.setExtent(0, 1009);
    QCOMPARE(shown.plot.from(), 909.0);
    QCOMPARE(shown.plot.to(), 1009.0);

    shown.plot.setRange(100, 200);
    shown.plot.setExtent(0, 1100);

    QCOMPARE(shown.plot.from(), 100.0);
    QCOMPARE(shown.plot.to(), 200.0);
  }

  void the_keyboard_zooms_pans_and_shows_all() {
    Shown shown(series_of(1000));

    QTest::keyClick(&shown.plot, Qt::Key_Plus);
    const double width = shown.plot.to() - shown.plot.from();
    QVERIFY(width < 900);
    QCOMPARE((shown.plot.to() + shown.plot.from()) / 2, 499.5);
    QTest::keyClick(&shown.plot, Qt::Key_Right);
    QVERIFY((shown.plot.to() + shown.plot.from()) / 2 > 500);
    QCOMPARE(shown.plot.to() - shown.plot.from(), width);
    for (int i = 0; i < 40; ++i) QTest::keyClick(&shown.plot, Qt::Key_Right);
    QCOMPARE(shown.plot.to(), 999.0);  // not beyond the end
    QTest::keyClick(&shown.plot, Qt::Key_Minus);
    QTest::keyClick(&shown.plot, Qt::Key_Home);

    QVERIFY(shown.plot.showsAll());
  }

  void the_wheel_zooms_about_the_pointer_and_drag_pans() {
    Shown shown(series_of(1000));
    const QPointF pointer(360, 150);
    QWheelEvent wheel(pointer, pointer, {}, {0, 240}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(&shown.plot, &wheel);
    const double from = shown.plot.from();
    QVERIFY(shown.plot.to() - from < 700);

    QTest::mousePress(&shown.plot, Qt::LeftButton, {}, {300, 150});
    QTest::mouseMove(&shown.plot, {380, 150});
    QMouseEvent move(QEvent::MouseMove, QPointF(380, 150), QPointF(380, 150), Qt::NoButton, Qt::LeftButton, {});
    QCoreApplication::sendEvent(&shown.plot, &move);
    QTest::mouseRelease(&shown.plot, Qt::LeftButton, {}, {380, 150});

    QVERIFY2(shown.plot.from() < from, qPrintable(QString("%1 %2").arg(shown.plot.from()).arg(from)));
    QTest::mouseDClick(&shown.plot, Qt::LeftButton, {}, {380, 150});
    QVERIFY(shown.plot.showsAll());
  }

  void values_are_read_with_the_keyboard_alone() {
    Shown shown(series_of(100));
    shown.plot.setXText(compact_values(), "Step");
    QCOMPARE(shown.plot.readout(), QString());

    QTest::keyClick(&shown.plot, Qt::Key_Right, Qt::ShiftModifier);
    QVERIFY2(shown.plot.readout().startsWith("Step 0: Loss 2 (1.9 to 2.1)"), qPrintable(shown.plot.readout()));
    QTest::keyClick(&shown.plot, Qt::Key_Right, Qt::ShiftModifier);

    QVERIFY2(shown.plot.readout().startsWith("Step 1: Loss 2.14"), qPrintable(shown.plot.readout()));
    QCOMPARE(shown.plot.accessibleDescription(), shown.plot.readout());
  }

  void many_changes_ask_the_lines_once_a_turn_of_the_event_loop() {
    Shown shown(series_of(1000));
    shown.asked = 0;

    for (int i = 0; i < 100; ++i) shown.plot.setRange(i, 500 + i);
    QTest::qWait(20);

    QCOMPARE(shown.asked, 1);
  }

  void a_picture_of_it_has_the_scale_that_was_asked_for() {
    Shown shown(series_of(1000));
    const QImage picture = shown.plot.picture(2);
    QCOMPARE(picture.size(), QSize(1280, 600));
    QSet<QRgb> colours;
    for (int x = 200; x < 1200; ++x) colours.insert(picture.pixel(x, 300));
    QVERIFY(colours.size() > 3);
  }

  void smoothing_0_changes_nothing_and_more_is_smoother() {
    const Series series = series_of(2000);
    const auto raw = series.view(0, 1999, 500);

    const auto none = smoothed_columns(series, 0, 1999, 500, 0);
    const auto some = smoothed_columns(series, 0, 1999, 500, 0.6);
    const auto much = smoothed_columns(series, 0, 1999, 500, 0.99);

    QCOMPARE(none.size(), raw.size());
    QCOMPARE(roughness(none), roughness(raw));
    QVERIFY(roughness(some) < roughness(raw));
    QVERIFY(roughness(much) < 0.3 * roughness(some));
  }

  void a_smoothed_line_is_the_same_however_far_one_zooms_in() {
    const Series series = series_of(2000);

    const auto whole = smoothed_columns(series, 0, 1999, 2000, 0.9);
    const auto part = smoothed_columns(series, 1500, 1600, 2000, 0.9);

    for (const SeriesColumn& column : part) {
      if (column.x < 1500 || column.x > 1600) continue;
      const SeriesColumn* same = column_near(whole, column.x, 10);
      QVERIFY(same != nullptr);
      // What lay before the part is known as columns of several points: close, not equal.
      QVERIFY2(std::abs(same->mean - column.mean) < 0.05, qPrintable(QString::number(same->mean - column.mean)));
    }
  }

  void gaps_stay_gaps_in_smoothed_lines() {
    const Series series = series_of(1000, 500);
    const auto columns = smoothed_columns(series, series.first(), series.last(), 400, 0.8);
    QCOMPARE(std::count_if(columns.begin(), columns.end(), [](const SeriesColumn& c) { return c.gap_before; }), 1);
  }

  void nothing_is_read_within_a_gap() {
    const Series series = series_of(1000, 500);
    const auto columns = series.view(series.first(), series.last(), 400);
    const double span = series.last() - series.first();
    QVERIFY(column_near(columns, 5000, span) == nullptr);
    QVERIFY(column_near(columns, 100, span) != nullptr);
  }

  void rounds_are_marked_where_they_ended_with_their_number() {
    Series syncs(SeriesAxis::kStep);
    for (int i = 1; i <= 5; ++i) syncs.append({.x = 500.0 * i, .mean = 30, .low = 30, .high = 30});
    std::vector<RoundRow> rows;
    for (std::uint32_t round = 44; round >= 41; --round) {
      RoundRow row;
      row.round = round;
      if (round < 44) row.ended = row.sync_seconds = 1;  // the newest is under way
      rows.push_back(row);
    }

    const auto marks = round_marks(syncs, rows, 900, 2600);

    QCOMPARE(marks.size(), 4u);
    QCOMPARE(marks[3].x, 2500.0);
    QCOMPARE(marks[3].number, std::optional(44u));
    QCOMPARE(marks[1].number, std::optional(42u));
    QVERIFY(!marks[0].number);  // not known here
  }

  void short_times_are_written_in_a_unit_that_fits_their_ticks() {
    const ValueText seconds = second_values();
    QCOMPARE(seconds(2.5, 0.5), QString("2.5 s"));
    QCOMPARE(seconds(0.25, 0.05), QString("250 ms"));
    QCOMPARE(seconds(0.0015, 0.0005), QString("1.5 ms"));
    QCOMPARE(seconds(0.00016, 0.00002), QString("160 \u00B5s"));
    QCOMPARE(seconds(0.00016, 0), QString("160 \u00B5s"));
  }

  void a_distribution_counts_every_value_once_in_readable_bars() {
    std::vector<double> values;
    for (int i = 0; i < 200; ++i) values.push_back(20 + i * 0.1);
    values.push_back(std::nan(""));

    const Distribution distribution = distribution_of(values, 18);

    QCOMPARE(distribution.width, 2.0);
    QCOMPARE(std::accumulate(distribution.counts.begin(), distribution.counts.end(), 0.0), 200.0);
    QCOMPARE(distribution.middles.front(), 21.0);
    QVERIFY(std::abs(distribution.median - 29.95) < 0.01);
    QVERIFY(distribution.slow > 38 && distribution.slow < 40);
    QCOMPARE(distribution_of({}, 10).counts.size(), 0u);
    QCOMPARE(distribution_of({3, 3, 3}, 10).counts.size(), 1u);
  }

  void an_export_writes_what_is_shown_a_row_a_point() {
    GuiScene scene;
    scene.agent.set_history(1000);
    Node node(LocalNode{}, scene.agent.open(), scene.commands.run());
    node.start();
    QTRY_COMPARE(node.link().state(), LinkState::kConnected);
    QTRY_VERIFY(!node.history().series("validation_loss_nats", SeriesAxis::kStep).empty());
    const Series& series = node.history().series("validation_loss_nats", SeriesAxis::kStep);
    const QString file = scene.directory.filePath("out.csv");

    auto* writing = new CsvExport(node.history(),
                                  {.file = file,
                                   .metrics = {"validation_loss_nats"},
                                   .axis = SeriesAxis::kStep,
                                   .from = series.at(2).x,
                                   .to = series.at(5).x},
                                  nullptr);
    bool ended = false;
    connect(writing, &CsvExport::ended, this, [&ended](const Status& status) { ended = status.ok(); });
    writing->start();

    QTRY_VERIFY(ended);
    QFile in(file);
    QVERIFY(in.open(QIODevice::ReadOnly));
    const QStringList lines = QString::fromUtf8(in.readAll()).split('\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), 5);
    QCOMPARE(lines[0], QString("metric,step,mean,low,high,points"));
    QVERIFY2(lines[1].startsWith(QString("validation_loss_nats,%1,").arg(series.at(2).x)), qPrintable(lines[1]));
  }

  void an_export_that_cannot_be_written_says_so() {
    GuiScene scene;
    Node node(LocalNode{}, scene.agent.open(), scene.commands.run());
    auto* writing = new CsvExport(node.history(), {.file = "/no/such/directory/out.csv"}, nullptr);
    std::string problem;
    connect(writing, &CsvExport::ended, this, [&problem](const Status& status) {
      if (!status.ok()) problem = status.error().message;
    });
    writing->start();
    QTRY_VERIFY(!problem.empty());
  }
};

QTEST_MAIN(PlotTest)
#include "plot_test.moc"
