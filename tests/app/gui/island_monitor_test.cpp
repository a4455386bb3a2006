// The monitor between a real control server and a receiver on this thread.
#include "app/core/island_monitor.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/app/gui/fake_trainer.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr MonitorTiming kFast{.interval = 20ms, .answer_time = 500ms};

}  // namespace

class IslandMonitorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { home_.directory = directory_.filePath(QString::number(++counter_)).toStdString(); }

  void a_home_without_join_file_is_not_joined() {
    watch();

    QTRY_COMPARE(last_.link, IslandLink::kNotJoined);
    QVERIFY(!last_.state);
  }

  void joined_without_trainer_is_not_running_and_names_the_run() {
    join();
    watch();

    QTRY_COMPARE(last_.link, IslandLink::kNotRunning);
    QCOMPARE(last_.run_name, std::string("gcide-demo"));
  }

  void an_unreadable_join_file_is_said() {
    join();
    QVERIFY(std::filesystem::remove(home_.join_file()));
    QVERIFY(std::filesystem::create_directory(home_.join_file()));
    watch();

    QTRY_COMPARE(last_.link, IslandLink::kFailed);
    QVERIFY(QString::fromStdString(last_.problem).contains("join.json"));
  }

  void joining_starting_and_ending_a_trainer_is_seen_without_a_restart() {
    watch();
    QTRY_COMPARE(last_.link, IslandLink::kNotJoined);

    join();
    QTRY_COMPARE(last_.link, IslandLink::kNotRunning);
    auto trainer = std::make_unique<FakeTrainer>(home_);
    QTRY_COMPARE(last_.link, IslandLink::kConnected);
    QCOMPARE(last_.state->round, 42u);
    trainer.reset();
    QTRY_COMPARE(last_.link, IslandLink::kNotRunning);
    QVERIFY(last_.state);  // the last seen, with its age
    trainer = std::make_unique<FakeTrainer>(home_);
    QTRY_COMPARE(last_.link, IslandLink::kConnected);
  }

  void a_silent_trainer_is_told_apart_and_heard_when_it_answers_again() {
    join();
    FakeTrainer trainer(home_);
    watch();
    QTRY_COMPARE(last_.link, IslandLink::kConnected);

    trainer.fall_silent();
    QTRY_COMPARE(last_.link, IslandLink::kSilent);
    IslandState state = training_state();
    state.round = 43;
    trainer.say(state);
    trainer.answer_again();

    QTRY_COMPARE(last_.link, IslandLink::kConnected);
    QCOMPARE(last_.state->round, 43u);
  }

  void it_ends_after_one_answer_time_while_the_trainer_is_silent() {
    join();
    FakeTrainer trainer(home_);
    watch();
    QTRY_COMPARE(last_.link, IslandLink::kConnected);
    trainer.fall_silent();
    QTRY_COMPARE(last_.link, IslandLink::kSilent);

    QElapsedTimer ending;
    ending.start();
    monitor_.reset();

    QVERIFY2(ending.elapsed() < 3000, qPrintable(QString::number(ending.elapsed())));
  }

  void a_state_is_live_for_five_seconds() {
    const auto now = Clock::now();
    IslandReport report;
    QVERIFY(!is_live(report, now));
    report.state = training_state();
    report.state_time = now;

    report.link = IslandLink::kConnected;
    QVERIFY(is_live(report, now + 4999ms));
    QVERIFY(!is_live(report, now + 5s));
    QCOMPARE(age_of(report, now + 12s)->count(), 12.0);
    report.link = IslandLink::kSilent;
    QVERIFY(is_live(report, now + 4999ms));
    report.link = IslandLink::kNotRunning;
    QVERIFY(!is_live(report, now));
  }

  void cleanup() { monitor_.reset(); }

 private:
  void join() {
    std::filesystem::create_directories(home_.directory);
    QVERIFY(save_join_file(home_.join_file(), test_join_file()).ok());
  }
  void watch() {
    last_ = IslandReport{};
    monitor_ = std::make_unique<IslandMonitor>(home_, kFast);
    connect(monitor_.get(), &IslandMonitor::reported, this, [this](const IslandReport& report) {
      QCOMPARE(QThread::currentThread(), thread());
      last_ = report;
    });
    monitor_->start();
  }

  QTemporaryDir directory_;
  int counter_ = 0;
  IslandHome home_;
  IslandReport last_;
  std::unique_ptr<IslandMonitor> monitor_;
};

QTEST_GUILESS_MAIN(IslandMonitorTest)
#include "island_monitor_test.moc"
