// A week of events, shown in the window in seconds: memory does not grow, nothing looks old, and at the end every page
// shows what was said last. At a real agent's pace: tests/bench/replay_week.
#include <QTemporaryDir>
#include <QtTest>

#include "tests/app/core/resident.h"
#include "tests/app/gui/week_replay.h"
#include "tests/timing.h"

using namespace atl::test;

class ReplayWeekTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }
  void a_week_in_the_window_grows_nothing_and_ends_as_it_ended() {
    const QTemporaryDir directory;
    const QString file = directory.filePath("week.jsonl");
    const WeekEnd end = record_week(file, {.step_seconds = 4.5,
                                           .inner_steps = 250,
                                           .sync_seconds = 20,
                                           .progress_seconds = 5,
                                           .gpus = 4,
                                           .gpu_seconds = 120,
                                           .state_seconds = 4.6});

    const WeekReplay replay = replay_week(file, end, 200'000);

    qInfo("%llu events in %.1f s, %.1f MiB more than after an eighth, longest turn %lld ms (%.0f ms of work), %d pages",
          static_cast<unsigned long long>(replay.events), replay.seconds,
          (static_cast<double>(replay.late_bytes) - static_cast<double>(replay.early_bytes)) / (1 << 20),
          replay.longest_turn_ms, replay.longest_work_ms, replay.pages_shown);
    QCOMPARE(replay.wrong.join("; "), QString());
    QCOMPARE(replay.events, end.events);
    QCOMPARE(replay.looked_old, 0u);
    QVERIFY(replay.late_bytes < replay.early_bytes + (32u << 20) + kOfSanitizer);
    QVERIFY2(replay.longest_work_ms <= 100 * timing_slack(), qPrintable(QString::number(replay.longest_work_ms)));
  }
};

QTEST_MAIN(ReplayWeekTest)
#include "replay_week_test.moc"
